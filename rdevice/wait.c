/* Gathers the facts about a rank that waits, asks wait_policy.h what to do, and does it.
 *
 * MPI_Test asks for progress once and returns; MPI_Wait asks again and again. So a call of MPI that
 * asks a second time waits (rdevice/calls.h). */
#include "rdevice/wait.h"
#include "common/clock.h"
#include "rdevice/calls.h"
#include "rdevice/channel.h"
#include "rdevice/lock.h"
#include "rdevice/next.h"
#include "rdevice/real.h"
#include "rdevice/wait_policy.h"

#include <poll.h>
#include <sched.h>

#define FAR_LOOK_NS 1000000ull /* asleep at the channel memory: between two looks at the relay */
#define CHANNEL_BESIDE_MS 10   /* beside a descriptor: between two looks at the channel memory */

void wait_begin(struct waiter *w, struct cw_wire *wire, uint32_t ranks, uint64_t spin_ns)
{
    *w = (struct waiter){.wire = wire, .ranks = ranks, .spin_ns = spin_ns};
}

static bool has_rings(const struct waiter *w)
{
    return w->wire->mode == CW_WIRE_RINGS;
}

/* --- where this rank runs --------------------------------------------------------------------- */

/* Returns how many cores this rank may run on, and which in *all; 0: not known. */
static uint32_t count_cores(struct waiter *w, cpu_set_t *all)
{
    w->syscalls++;
    return real_affinity(all) == 0 ? (uint32_t)CPU_COUNT(all) : 0;
}

static bool bind_to(struct waiter *w, const cpu_set_t *cores)
{
    w->syscalls++;
    return sched_setaffinity(0, sizeof(*cores), cores) == 0;
}

/* Binds this rank to the core that it runs on, if it should be bound while it sleeps. Returns
 * whether it is bound; then let_go_of_core() is to be called. */
static bool keep_core(struct waiter *w, cpu_set_t *all, cpu_set_t *here)
{
    uint32_t cores = count_cores(w, all);
    int cpu = cw_cpu();

    if (cpu < 0 || !wait_keeps_core(w->spin_ns, w->threads, w->ranks, cores))
        return false;
    CPU_ZERO(here);
    CPU_SET(cpu, here);
    return bind_to(w, here);
}

/* Unless somebody else has set other cores meanwhile, as taskset(1) does. */
static void let_go_of_core(struct waiter *w, const cpu_set_t *all, const cpu_set_t *here)
{
    cpu_set_t now;

    if (count_cores(w, &now) && CPU_EQUAL(&now, here))
        bind_to(w, all);
}

/* The kernel moves this rank to another core, and may move it back later. */
static void leave_core(struct waiter *w, int cpu)
{
    cpu_set_t all;
    cpu_set_t others;
    uint32_t cores = count_cores(w, &all);

    if (!wait_has_core(w->ranks, cores) || cores < 2)
        return;
    others = all;
    CPU_CLR(cpu, &others);
    if (bind_to(w, &others))
        let_go_of_core(w, &all, &others);
}

/* Whether one whom this rank talks to was last seen on this core, and is not to leave it. */
static bool is_beside(const struct waiter *w, int cpu)
{
    if (!w->channel)
        return cpu == cw_wire_other_cpu(w->wire);
    cw_channel_runs_on(&w->channel->memory, w->channel->rank, cpu);
    return cw_channel_shares_cpu(&w->channel->memory, w->channel->rank, cpu);
}

/* After a yield on a core that others want as well. */
static void look_at_place(struct waiter *w)
{
    uint64_t now = w->spin.yielded_ns;
    int cpu = cw_cpu();
    struct wait_place place = {.talks = wait_talks(w->gap_ns),
                               .beside_relay = is_beside(w, cpu),
                               .moved_ns = now - w->moved_ns};

    place.slow_yields = w->slow_yields = wait_slow_yields(w->slow_yields, w->spin.taken_ns);
    if (cpu < 0 || !wait_is_misplaced(&place))
        return;
    w->moved_ns = now;
    leave_core(w, cpu);
}

/* --- steps ------------------------------------------------------------------------------------ */

static void yield(struct waiter *w, uint64_t now)
{
    if (!cw_spin_turn(&w->spin, now))
        return;
    w->wire->rang = false;
    w->syscalls++;
    if (has_rings(w) && cw_spin_shared(&w->spin))
        look_at_place(w);
}

/* Until the relay says something. */
static bool sleep_at_socket(struct pollfd *p, uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};

    return NEXT(ppoll)(p, 1, &t, NULL) > 0;
}

static void doze_at_wire(struct waiter *w, bool in, bool out, uint64_t ns)
{
    struct pollfd p = {.fd = w->wire->fd, .events = cw_wire_sleep(w->wire, in, out)};
    bool readable = false;

    if (p.events)
        readable = sleep_at_socket(&p, ns);
    cw_wire_woke(w->wire, readable);
}

/* Until the relay says something, or another rank of the host rings. */
static void doze_at_both(struct waiter *w, bool in, bool out, uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    struct pollfd p[] = {{.fd = w->wire->fd, .events = cw_wire_sleep(w->wire, in, out)},
                         {.fd = w->channel->bell.fd, .events = POLLIN}};

    if (channel_goes_to_sleep(w->channel) && p[0].events)
        NEXT(ppoll)(p, 2, &t, NULL);
    channel_woke(w->channel);
    if (p[1].revents)
        bell_hear(&w->channel->bell);
    cw_wire_woke(w->wire, p[0].revents != 0);
}

/* For a bounded time: what the relay says to one who sleeps at the channel alone is found after
 * that. The affinity is a thread's, its children inherit it, and the program can ask for it: it is
 * restored at once. */
static void doze(struct waiter *w, bool in, bool out, uint64_t waited_ns)
{
    uint64_t ns = wait_sleep_ns(waited_ns, w->threads);
    cpu_set_t all;
    cpu_set_t here;
    bool bound = keep_core(w, &all, &here);

    if (w->channel && w->channel->bell.fd >= 0)
        doze_at_both(w, in, out, ns);
    else if (w->channel)
        channel_sleep(w->channel, w->channel->far && ns > FAR_LOOK_NS ? FAR_LOOK_NS : ns);
    else
        doze_at_wire(w, in, out, ns);
    if (bound)
        let_go_of_core(w, &all, &here);
    w->sleeps++;
    w->syscalls++;
}

/* --- facts ------------------------------------------------------------------------------------ */

static void tell_relay(struct waiter *w, bool waits)
{
    w->told_talks = wait_talks(w->gap_ns);
    cw_wire_wait(w->wire, waits, w->told_talks);
}

/* The program was outside of MPI, or in other calls of it. */
static void come_back(struct waiter *w, uint64_t now)
{
    w->gap_ns = wait_gap(w->gap_ns, now - w->left_ns);
    if (w->told_talks != wait_talks(w->gap_ns))
        tell_relay(w, false);
}

static void note_caller(struct waiter *w, uint64_t now)
{
    if (!w->threads || pthread_equal(w->caller, pthread_self()))
        return;
    w->caller = pthread_self();
    w->others_ns = now;
}

/* --- calls ------------------------------------------------------------------------------------ */

void wait_left(struct waiter *w)
{
    w->left_ns = cw_clock_ns();
}

void wait_ended(struct waiter *w)
{
    if (wait_lets_relay_on(w->wire->rang, w->spin_ns)) {
        w->wire->rang = false;
        w->syscalls++;
        sched_yield();
    }
    if (w->call != calls_made)
        come_back(w, cw_clock_ns());
    w->call = calls_made;
    w->vain = 0;
    wait_left(w);
}

/* What comes through channel memory needs no relay to run on this core, and mostly comes sooner
 * than a yield returns: NetPIPE, 1 B: up to 1.3 (without a log). */
static void begin_wait(struct waiter *w, uint64_t now)
{
    w->since_ns = now;
    if (w->channel)
        cw_spin_begin(&w->spin, now);
}

/* What a call for progress should do that found nothing. */
static enum wait_step choose(struct waiter *w, uint64_t now)
{
    bool again = w->call == calls_made;

    if (!again) {
        w->asks = w->vain == 1;
        w->vain = 0;
    }
    if (w->vain == 1)
        begin_wait(w, now);
    return wait_choose(&(struct wait_facts){.spin_ns = w->spin_ns,
                                            .waits = w->vain > 0,
                                            .polls = w->asks,
                                            .waited_ns = now - w->since_ns,
                                            .others_call = w->threads && again,
                                            .others_ns = now - w->others_ns});
}

bool wait_idle(struct waiter *w)
{
    uint64_t now = cw_clock_ns();
    enum wait_step step;

    note_caller(w, now);
    step = choose(w, now);
    w->call = calls_made;
    if (step == WAIT_HAND_OVER) {
        lock_owe_yield();
        return false;
    }
    w->vain++;
    if (w->vain == 1)
        come_back(w, now);
    if (w->vain == 2)
        tell_relay(w, true);
    if (step == WAIT_YIELD)
        yield(w, now);
    wait_left(w);
    return step == WAIT_SLEEP;
}

void wait_sleep(struct waiter *w)
{
    doze(w, true, false, cw_clock_ns() - w->since_ns);
    tell_relay(w, true);
    wait_left(w);
}

bool wait_beside(struct waiter *w, int fd, bool in, bool out, bool *ended)
{
    short events = in || out ? cw_wire_sleep(w->wire, in, out) : POLLRDHUP;
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = w->wire->fd, .events = events}};

    if (w->channel)
        cw_channel_sleep(&w->channel->memory, w->channel->rank);
    NEXT(poll)(p, 2, !events ? 0 : w->channel ? CHANNEL_BESIDE_MS : -1);
    if (w->channel)
        cw_channel_woke(&w->channel->memory, w->channel->rank);
    if (in || out)
        cw_wire_woke(w->wire, p[1].revents != 0);
    w->sleeps++;
    w->syscalls++;
    *ended = !in && p[1].revents != 0;
    return p[0].revents != 0;
}

void wait_wire(struct waiter *w, bool in, bool out, uint64_t since_ns)
{
    uint64_t now = cw_clock_ns();
    enum wait_step step = wait_choose(
        &(struct wait_facts){.spin_ns = w->spin_ns, .waits = true, .waited_ns = now - since_ns});

    if (step == WAIT_YIELD)
        yield(w, now);
    else
        doze(w, in, out, now - since_ns);
}
