/* What the device calls, instead of the system. */
#include "tests/sim/device_shim.h"
#undef device
#include "tests/sim/sim.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/wait.h>

#define CLOCK_STEP_NS 60u /* what a look at the clock costs */

static void give_way(void)
{
    if (sim_one_in(sim.plan.yield_one_in))
        process_yield();
}

/* --- sockets -------------------------------------------------------------------------------------
 */

ssize_t sim_send(int fd, const void *bytes, size_t size, int flags)
{
    (void)flags;
    if (fd == PROCESS_CONTROL_FD && process_now->left) {
        errno = EPIPE;
        return -1;
    }
    if (fd == PROCESS_CONTROL_FD) {
        process_tell(NEWS_REPORT, bytes, size);
        return (ssize_t)size;
    }
    give_way();
    return link_send(process_now->link, bytes, size);
}

ssize_t sim_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    ssize_t all = 0;

    (void)fd;
    (void)flags;
    give_way();
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        const struct iovec *iov = &msg->msg_iov[i];
        ssize_t n = iov->iov_len ? link_send(process_now->link, iov->iov_base, iov->iov_len) : 0;

        if (n < 0)
            return all ? all : n;
        all += n;
        if ((size_t)n < iov->iov_len)
            break;
    }
    return all;
}

static ssize_t recv_setup(void *to, size_t size)
{
    struct sim_process *p = process_now;
    size_t there = p->setup_size;

    if (!p->setup || there > size) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(to, p->setup, there);
    free(p->setup);
    p->setup = NULL;
    return (ssize_t)there;
}

ssize_t sim_recv(int fd, void *to, size_t size, int flags)
{
    (void)flags;
    if (fd == PROCESS_CONTROL_FD)
        return recv_setup(to, size);
    give_way();
    return link_recv(process_now->link, to, size);
}

ssize_t sim_recvmsg(int fd, struct msghdr *msg, int flags)
{
    ssize_t all = 0;

    (void)fd;
    (void)flags;
    give_way();
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        ssize_t n = link_recv(process_now->link, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);

        if (n <= 0)
            return all ? all : n;
        all += n;
        if ((size_t)n < msg->msg_iov[i].iov_len)
            break;
    }
    return all;
}

static int wait_for(struct pollfd *fds, nfds_t count, uint64_t timeout_ns)
{
    const struct sim_link *link = process_now->link;

    uint64_t until = sim.now_ns + timeout_ns;

    process_wait(count ? fds->events : 0, until);
    if (count == 0)
        return 0;
    fds->revents = 0;
    if (link_readable(link))
        fds->revents |= fds->events & POLLIN;
    if (link_writable(link))
        fds->revents |= fds->events & POLLOUT;
    if (fds->revents || sim.now_ns >= until)
        return fds->revents != 0;
    errno = EINTR; /* by a signal */
    return -1;
}

int sim_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const void *mask)
{
    (void)mask;
    return wait_for(fds, count, cw_timespec_ns(timeout));
}

int sim_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return wait_for(fds, count, (uint64_t)timeout_ms * 1000000u);
}

int sim_connect(const struct cw_address *address, struct cw_err *err)
{
    char name[24];

    (void)address;
    (void)err;
    give_way();
    snprintf(name, sizeof(name), "%u.%u", process_now->rank, process_now->incarnation);
    process_now->link = link_new(name, sim.plan.pipe_size);
    return PROCESS_RELAY_FD;
}

int sim_close(int fd)
{
    (void)fd;
    link_close(process_now->link);
    process_now->link = NULL;
    return 0;
}

/* --- the rest ------------------------------------------------------------------------------------
 */

uint64_t cw_clock_ns(void)
{
    return sim.now_ns += CLOCK_STEP_NS;
}

int sim_sched_yield(void)
{
    process_yield();
    return 0;
}

int sim_raise(int number)
{
    sim_trace("%u.%u raises signal %d", process_now->rank, process_now->incarnation, number);
    process_end(W_EXITCODE(0, number));
}

void sim_say(int fd, const char *fmt, ...)
{
    char text[CW_TEXT_MAX + 64];
    va_list ap;

    (void)fd;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    sim_trace("%u.%u says: %s", process_now->rank, process_now->incarnation, text);
}

void sim_exit(int code)
{
    process_end(W_EXITCODE(code, 0));
}

char *sim_getenv(const char *name)
{
    static char fd[] = "101";

    _Static_assert(PROCESS_CONTROL_FD == 101, "the same number");
    return strcmp(name, CW_SETUP_ENV) == 0 ? fd : NULL;
}

int sim_getrusage(int who, struct rusage *usage)
{
    (void)who;
    *usage = (struct rusage){0};
    return 0;
}

void sim_random_bytes(void *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = (uint8_t)sim_below(256);
}

int arena_init(void)
{
    return 0;
}

void *arena_alloc(size_t size)
{
    return process_alloc(size);
}

void arena_free(void *at, size_t size)
{
    (void)size;
    process_free(at);
}
