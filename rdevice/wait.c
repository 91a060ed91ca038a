/* Waiting in two steps: yield for a bounded time since something last happened, then sleep in
 * poll() for a bounded time. A program that only looks in now and then (MPI_Test between
 * computations) is never put to sleep: only calls that follow each other closely count as waiting.
 */
#include "common/clock.h"
#include "rdevice/device.h"

#include <poll.h>
#include <sched.h>

#define CLOSE_NS 5000ull          /* calls no further apart than this are one wait */
#define CLOSE_COLD_NS 100000ull   /* ... after a sleep, when nothing is in the caches */
#define SLEEP_MIN_NS 1000000ull   /* the first sleeps */
#define SLEEP_MAX_NS 20000000ull  /* ... when nothing has happened for long */
#define SLEEP_SHARE 16            /* a sleep is at most this part of the time waited so far */
#define MOVE_NS 5000000ull        /* between moves away from the relay's core */
#define SLEEP_THREADS_NS 50000ull /* when other threads wait for MPICH's lock, which we hold */
#define CALM_MAX 8u               /* sleeps in a row that are not amid large payload */
#define AMID_NS 2000ull /* without a byte of large payload before the core is given away */

/* Whether there is a core for each rank, of those at *all. False also when they are not known. */
static bool has_core(cpu_set_t *all)
{
    device.stats.syscalls++;
    return sched_getaffinity(0, sizeof(*all), all) == 0 &&
           device.setup.ranks <= (uint32_t)CPU_COUNT(all);
}

/* The relay wakes us for each piece of large payload that it writes; where we share its core we
 * would take that from it each time, move the piece, and sleep again, and all other ranks would
 * wait. A thread of SCHED_BATCH does not; but it comes later to a small message, so it is for large
 * ones alone. Whoever chose another policy for this program keeps it. */
static void defer(bool large)
{
    static const struct sched_param none;
    cpu_set_t all;

    if (large)
        device.calm = 0;
    if (device.defers == large || (!large && device.calm < CALM_MAX))
        return;
    /* a policy is a thread's, and of several we would not know whose it was */
    if (large && (device.threads || has_core(&all)))
        return;
    device.stats.syscalls += 2;
    if (sched_getscheduler(0) == (large ? SCHED_OTHER : SCHED_BATCH))
        sched_setscheduler(0, large ? SCHED_BATCH : SCHED_OTHER, &none);
    device.defers = large;
}

/* More of a message has been announced, or of a frame, than has come. */
static bool is_amid(void)
{
    return device.amid || device.sink_left > 0;
}

static void doze(bool in, bool out, uint64_t waited_ns)
{
    struct pollfd p = {.fd = device.wire.fd, .events = cw_wire_sleep(&device.wire, in, out)};
    uint64_t ns = waited_ns / SLEEP_SHARE;
    struct timespec t = {0};
    bool readable = false;

    if (ns < SLEEP_MIN_NS)
        ns = SLEEP_MIN_NS;
    if (ns > SLEEP_MAX_NS)
        ns = SLEEP_MAX_NS;
    if (device.threads)
        ns = SLEEP_THREADS_NS;
    t.tv_nsec = (long)ns;
    if (p.events) {
        defer(out || is_amid());
        readable = ppoll(&p, 1, &t, NULL) > 0;
        device.stats.sleeps++;
        device.stats.syscalls++;
        device.slept = true;
        device.calm += readable;
    }
    cw_wire_woke(&device.wire, readable);
}

/* Lets the kernel choose among all other cores, and takes nothing away from its later choices.
 * Where ranks share cores anyway, a core with one rank less is worth more than being away from the
 * relay: four ranks on two cores need 27 us for a barrier if they move, 24 if not. */
static void leave_core(int cpu)
{
    cpu_set_t all;
    cpu_set_t others;

    if (!has_core(&all) || CPU_COUNT(&all) < 2)
        return;
    others = all;
    CPU_CLR(cpu, &others);
    device.stats.syscalls += 2;
    if (sched_setaffinity(0, sizeof(others), &others) == 0)
        sched_setaffinity(0, sizeof(all), &all);
}

/* The relay passes a large message on in pieces of a microsecond each. Who gives its core away
 * between two of them gets it back later than that: a rank that shares it looks in vain for some
 * microseconds first. */
static bool comes_at_once(void)
{
    uint64_t now;

    if (device.wire.mode != CW_WIRE_RINGS || !is_amid())
        return false;
    now = cw_clock_ns();
    if (device.amid_at != device.wire.in.at) {
        device.amid_at = device.wire.in.at;
        device.amid_ns = now;
    }
    return now - device.amid_ns < AMID_NS;
}

/* A rank and the relay that wait for each other on one core hand it over for every message, 4 to 5
 * us each instead of 2.5; two ranks on one core mostly wait for the relay. The kernel sees only
 * that all of them are busy. */
static void yield(void)
{
    uint64_t now;
    int cpu;

    if (comes_at_once())
        return;
    device.stats.syscalls += cw_spin_turn(&device.spin);
    cpu = cw_wire_relay_cpu(&device.wire);
    if (cpu < 0 || cpu != sched_getcpu() || !cw_spin_shared(&device.spin))
        return;
    now = cw_clock_ns();
    if (now - device.moved_ns < MOVE_NS)
        return;
    device.moved_ns = now;
    leave_core(cpu);
}

/* What nobody waits for goes out while there is time. */
static void idle_doze(uint64_t waited_ns)
{
    if (device.out_used)
        output_flush();
    doze(true, false, waited_ns);
}

void wait_idle(void)
{
    uint64_t now = cw_clock_ns();
    uint64_t since;

    if (now - device.return_ns > (device.slept ? CLOSE_COLD_NS : CLOSE_NS))
        device.streak_ns = now;
    device.slept = false;
    since = device.active_ns > device.streak_ns ? device.active_ns : device.streak_ns;
    if (now - since < device.setup.spin_ns)
        yield();
    else
        idle_doze(now - since);
    device.return_ns = cw_clock_ns();
}

void wait_socket(bool writable, uint64_t since_ns)
{
    uint64_t waited = cw_clock_ns() - since_ns;

    if (waited < device.setup.spin_ns)
        yield();
    else
        /* what the relay says while we repeat stays there until its time has come */
        doze(!writable || !device.replay.active, writable, waited);
}
