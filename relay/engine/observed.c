#include "relay/engine/observed.h"
#include "common/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define OBSERVED_MIN 16 /* entries that a set begins with */
#define HELD_MS ((int)(SHARED_HELD_NS / 1000000))

static int grow(struct observed *o)
{
    int size = o->size ? o->size * 2 : OBSERVED_MIN;
    struct pollfd *fds = realloc(o->fds, (size_t)size * sizeof(*fds));
    struct shared_conn **conns;

    if (!fds)
        return CW_ENOMEM;
    o->fds = fds;
    conns = realloc(o->conns, (size_t)size * sizeof(struct shared_conn *));
    if (!conns)
        return CW_ENOMEM;
    o->conns = conns;
    o->size = size;
    return CW_OK;
}

int observed_open(struct observed *o, struct cw_err *err)
{
    o->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (o->wake_fd < 0 || grow(o) < 0)
        return cw_err_set(err, CW_ESYS, "opening a thread's set for poll: %s", strerror(errno));
    return CW_OK;
}

void observed_close(struct observed *o)
{
    if (o->wake_fd >= 0)
        close(o->wake_fd);
    free(o->fds);
    free(o->conns);
}

void observed_begin(struct observed *o)
{
    o->fds[0] = (struct pollfd){.fd = o->wake_fd, .events = POLLIN};
    o->count = 1;
    o->held = false;
    o->begun_ns = cw_clock_ns();
    atomic_store_explicit(&o->woken, false, memory_order_relaxed);
}

void observed_add(struct observed *o, struct shared_conn *c, short events)
{
    if (o->count == o->size && grow(o) < 0) {
        o->held = true; /* it is looked at again when there may be memory */
        return;
    }
    o->fds[o->count] = (struct pollfd){.fd = c->fd, .events = events};
    o->conns[o->count++] = c;
}

void observed_add_input(struct shared *s, struct observed *o, struct shared_conn *c, short events)
{
    if (shared_wants_input(s, c, o->begun_ns))
        events |= POLLIN;
    else
        o->held = true;
    if (events)
        observed_add(o, c, events);
}

/* Looks again and again without sleeping. */
static int look(struct shared *s, struct observed *o, uint64_t *calls)
{
    uint64_t until = o->active_ns + s->config.spin_ns;
    int n = 0;

    while (n == 0 && !atomic_load_explicit(&o->woken, memory_order_relaxed) &&
           cw_clock_ns() < until) {
        if (o->count > 1) {
            n = poll(o->fds + 1, (nfds_t)o->count - 1, 0);
            ++*calls;
        }
        if (n == 0)
            *calls += cw_spin_turn(&o->spin, cw_clock_ns());
    }
    return n;
}

static int doze(struct observed *o)
{
    uint64_t drain;
    int n = poll(o->fds, (nfds_t)o->count, o->held ? HELD_MS : -1);

    if (n > 0 && o->fds[0].revents) {
        n--;
        if (read(o->wake_fd, &drain, sizeof(drain)) < 0)
            return n; /* another interruption is on its way */
    }
    return n;
}

int observed_wait(struct shared *s, struct observed *o)
{
    uint64_t calls = 0;
    int n = 0;

    /* others may have come while the set was made, and see to what was put off */
    shared_flush(s);
    if (s->stops)
        return 0;
    if (!atomic_load_explicit(&o->woken, memory_order_relaxed) && s->config.spin_ns) {
        shared_leave(s);
        n = look(s, o, &calls);
        shared_enter(s);
        s->stats->syscalls += calls;
    }
    if (n == 0 && !atomic_load_explicit(&o->woken, memory_order_relaxed)) {
        s->stats->sleeps++;
        o->asleep = true;
        shared_leave(s);
        n = doze(o);
        shared_enter(s);
        o->asleep = false;
        s->stats->syscalls++;
    }
    if (n > 0)
        o->active_ns = cw_clock_ns();
    return n > 0 ? n : 0;
}

void observed_interrupt(struct shared *s, struct observed *o)
{
    uint64_t one = 1;

    if (atomic_exchange_explicit(&o->woken, true, memory_order_relaxed) || !o->asleep)
        return;
    s->stats->syscalls++;
    if (write(o->wake_fd, &one, sizeof(one)) < 0)
        abort(); /* an eventfd takes 2^64 of these */
}
