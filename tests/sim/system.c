/* The simulated system: what the code under test calls instead of the real one. */
#include "tests/sim/system_shim.h"
#undef send
#undef sendmsg
#undef recv
#undef recvmsg
#undef close
#undef socket
#undef bind
#undef getenv
#undef fstat
#include "common/clock.h"
#include "common/setup.h"
#include "tests/sim/datagrams.h"
#include "tests/sim/relay.h"
#include "tests/sim/sim.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>

#define CLOCK_STEP_NS 60u /* what a look at the clock costs */
#define MEMORY_FAILS_ONE_IN 40
#define PASSING_FAILS_ONE_IN 40
#define SOCKET_FAILS_ONE_IN 40
#define INTERRUPTED_ONE_IN 4 /* calls that allocate on a disk */

size_t sim_ring_bytes;
size_t sim_kept_max;
size_t sim_segment_bytes;
size_t sim_replay_ahead;
size_t sim_provide_bytes;
size_t sim_offer_min;
size_t sim_far_max;

static struct socket *socket_of(int fd)
{
    const struct descriptor *d = descriptor_of(fd);

    if (!d || !d->socket)
        sim_fail("descriptor %d is used, which is no socket", fd);
    return d && d->socket ? d->socket : NULL;
}

static ssize_t failed(int error)
{
    errno = error;
    return -1;
}

/* --- what leads to the dispatcher ----------------------------------------------------------------
 */

static bool is_control(int fd)
{
    const struct descriptor *d = descriptor_of(fd);

    return d && d->control;
}

static ssize_t send_report(const void *bytes, size_t size)
{
    if (process_now()->left)
        return failed(EPIPE);
    process_tell(NEWS_REPORT, bytes, size);
    return (ssize_t)size;
}

static ssize_t recv_setup(void *to, size_t size, int flags)
{
    struct sim_process *p = process_now();
    size_t there = p->setup_size;

    if (!p->setup || there > size)
        return failed(EAGAIN);
    memcpy(to, p->setup, there);
    if (flags & MSG_PEEK)
        return (ssize_t)there;
    free(p->setup);
    p->setup = NULL;
    return (ssize_t)there;
}

/* --- sockets -------------------------------------------------------------------------------------
 */

ssize_t sim_send(int fd, const void *bytes, size_t size, int flags)
{
    struct socket *s;

    (void)flags;
    if (is_control(fd))
        return send_report(bytes, size);
    task_give_way();
    s = socket_of(fd);
    return s ? socket_send(s, bytes, size) : failed(EBADF);
}

/* It may be closed before it arrives. */
static void pass(struct socket *s, const struct msghdr *msg)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(msg);
    int fd;

    if (!header)
        return;
    memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    socket_other(s)->passed = descriptor_of(fd)->memory;
}

ssize_t sim_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    struct socket *s;
    ssize_t all = 0;

    (void)flags;
    task_give_way();
    s = socket_of(fd);
    if (!s)
        return failed(EBADF);
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        const struct iovec *iov = &msg->msg_iov[i];
        ssize_t n = iov->iov_len ? socket_send(s, iov->iov_base, iov->iov_len) : 0;

        if (n < 0)
            return all ? all : n;
        if (all == 0 && n > 0)
            pass(s, msg);
        all += n;
        if ((size_t)n < iov->iov_len)
            break;
    }
    return all;
}

ssize_t sim_recv(int fd, void *to, size_t size, int flags)
{
    struct socket *s;

    if (is_control(fd))
        return recv_setup(to, size, flags);
    task_give_way();
    s = socket_of(fd);
    return s ? socket_recv(s, to, size) : failed(EBADF);
}

/* The descriptor comes with the first byte; there may be none left for it. */
static void take_passed(struct socket *s, struct msghdr *msg)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(msg);
    struct sim_memory *memory = s->passed;
    int fd;

    s->passed = NULL;
    if (!memory || !header || sim_one_in(PASSING_FAILS_ONE_IN)) {
        msg->msg_controllen = 0;
        return;
    }
    fd = descriptor_new((struct descriptor){.memory = memory});
    *header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
}

ssize_t sim_recvmsg(int fd, struct msghdr *msg, int flags)
{
    struct socket *s;
    ssize_t all = 0;

    (void)flags;
    task_give_way();
    s = socket_of(fd);
    if (!s)
        return failed(EBADF);
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        ssize_t n = socket_recv(s, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);

        if (n <= 0)
            return all ? all : n;
        if (all == 0)
            take_passed(s, msg);
        all += n;
        if ((size_t)n < msg->msg_iov[i].iov_len)
            break;
    }
    return all;
}

static int wait_for(struct pollfd *fds, nfds_t count, uint64_t timeout_ns)
{
    uint64_t until = sim.now_ns + timeout_ns;
    int ready = 0;

    task_wait(fds, (uint32_t)count, until);
    for (nfds_t i = 0; i < count; i++)
        ready += descriptor_events(fds[i].fd, fds[i].events) != 0;
    if (ready == 0 && count > 0 && sim.now_ns < until)
        return (int)failed(EINTR); /* by a signal */
    for (nfds_t i = 0; i < count; i++)
        fds[i].revents = descriptor_events(fds[i].fd, fds[i].events);
    return ready;
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

/* Over which way, and whether there is one now. */
static bool can_connect(const struct sim_relay *from, const struct sim_relay *to,
                        struct connection_way *way)
{
    return sim.now_ns >= to->reachable_ns &&
           hosts_reach(from ? from->host : SIM_HOST_DISPATCHER, to->host) &&
           ways_choose(from ? from->number : WAYS_DISPATCHER, to->number, way);
}

int sim_connect(const struct cw_address *address, struct cw_err *err)
{
    const struct sim_relay *to = relay_at(address->text);
    struct sim_process *p = process_now();
    const struct sim_relay *from = p ? to : thread_relay();
    struct connection_way way = {0};
    char name[SOCKET_NAME_MAX];
    int fd;

    task_give_way();
    if (!to->core || (p ? sim.now_ns < to->reachable_ns : !can_connect(from, to, &way)))
        return cw_err_set(err, CW_ESYS, "connect to %s: Connection refused", address->text);
    snprintf(name, sizeof(name), "relay %u's peer %u", to->number, sim.connects++);
    if (p)
        snprintf(name, sizeof(name), "%u.%u", p->rank, p->incarnation);
    fd = relay_connect(relay_at(address->text), name, &way, p && sim.plan.rings[p->rank]);
    hosts_connect(descriptor_of(fd)->socket->of, from ? from->host : SIM_HOST_DISPATCHER, to->host);
    if (p)
        p->relay_socket = descriptor_of(fd)->socket;
    return fd;
}

int sim_connect_end(void)
{
    task_give_way();
    return CW_OK;
}

int sim_close(int fd)
{
    struct descriptor *d = descriptor_of(fd);
    struct socket *s = d ? d->socket : NULL;

    descriptor_free(fd);
    if (!s || descriptor_refers(s))
        return 0;
    socket_close(s);
    if (process_now() && process_now()->relay_socket == s)
        process_now()->relay_socket = NULL;
    return 0;
}

/* Both ways: whoever waits for it sees an end. */
int sim_shutdown(int fd, int how)
{
    struct descriptor *d = descriptor_of(fd);

    (void)how;
    if (d && d->socket)
        socket_shut_down(d->socket);
    return 0;
}

/* --- bells ---------------------------------------------------------------------------------------
 */

int sim_socket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    task_give_way();
    if (sim_one_in(SOCKET_FAILS_ONE_IN))
        return (int)failed(EMFILE);
    return descriptor_new((struct descriptor){.datagrams = datagrams_new(process_now())});
}

int sim_bind(int fd, const struct sockaddr *name, socklen_t size)
{
    int result = datagrams_bind(descriptor_of(fd)->datagrams, name, size);

    return result < 0 ? (int)failed(-result) : 0;
}

static long send_datagram(const struct sockaddr *name, socklen_t size)
{
    task_give_way();
    return datagrams_send(name, size);
}

static long recv_datagram(int fd)
{
    const struct descriptor *d = descriptor_of(fd);

    task_give_way();
    return d && d->datagrams ? datagrams_recv(d->datagrams) : -EBADF;
}

/* --- memory that is shared -----------------------------------------------------------------------
 */

int sim_memfd_create(const char *name, unsigned flags)
{
    (void)name;
    (void)flags;
    if (sim_one_in(MEMORY_FAILS_ONE_IN))
        return (int)failed(EMFILE);
    return descriptor_new((struct descriptor){.memory = memory_new()});
}

int sim_ftruncate(int fd, off_t size)
{
    memory_size(descriptor_of(fd)->memory, (size_t)size);
    return 0;
}

int sim_fcntl(int fd, int command, ...)
{
    va_list ap;
    int from;

    va_start(ap, command);
    from = command == F_DUPFD_CLOEXEC ? va_arg(ap, int) : 0;
    va_end(ap);
    if (command == F_DUPFD_CLOEXEC)
        return descriptor_new_from(from, *descriptor_of(fd));
    return command == F_GET_SEALS ? F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL : 0;
}

off_t sim_lseek(int fd, off_t offset, int whence)
{
    (void)offset;
    (void)whence;
    return (off_t)descriptor_of(fd)->memory->size;
}

void *sim_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    (void)at;
    (void)size;
    (void)protection;
    (void)flags;
    (void)offset;
    return descriptor_of(fd)->memory->at;
}

/* It goes when the run ends. */
int sim_munmap(void *at, size_t size)
{
    (void)at;
    (void)size;
    return 0;
}

int sim_fstat(int fd, struct stat *to)
{
    const struct descriptor *d = descriptor_of(fd);

    if (!d)
        return fstat(fd, to);
    *to = (struct stat){.st_size = d->memory ? (off_t)d->memory->size : 0};
    return 0;
}

static const struct sim_channel *channel_now(void)
{
    return &sim.channel[sim.plan.hosts[process_now()->rank]];
}

void *sim_channel_memory(void)
{
    return descriptor_of(channel_now()->fd)->memory->at;
}

/* Of the disk, until it is full. Nothing that the file has not got may be touched. */
static long allocate(int fd, uint64_t at, uint64_t size)
{
    const struct descriptor *d = descriptor_of(fd);

    task_give_way();
    if (!d || !d->memory)
        return -EBADF;
    if (sim_one_in(INTERRUPTED_ONE_IN))
        return -EINTR;
    if (at + size > sim.plan.channel_disk)
        return -ENOSPC;
    memory_provide(d->memory, at + size);
    task_give_way();
    return 0;
}

/* Others that sleep there. Who dies before has woken nobody. */
static long wake_futex(const void *futex)
{
    task_give_way();
    for (struct sim_process *p = sim.processes; p; p = p->next)
        if (!p->ended && p->task.futex == futex)
            p->task.futex = NULL;
    return 0;
}

static long sleep_at_futex(const uint32_t *futex, uint32_t expected, const struct timespec *t)
{
    task_give_way();
    if (*(const volatile uint32_t *)futex != expected)
        return -EAGAIN;
    task_sleep_at(futex, sim.now_ns + cw_timespec_ns(t));
    return 0;
}

/* What the device asks of the kernel past libc: of channel memory it is simulated. */
long sim_call(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_futex && b == FUTEX_WAKE)
        return wake_futex((const void *)a);
    if (number == SYS_futex && b == FUTEX_WAIT)
        return sleep_at_futex((const uint32_t *)a, (uint32_t)c, (const struct timespec *)d);
    if (number == SYS_fallocate)
        return allocate((int)a, (uint64_t)c, (uint64_t)d);
    if (number == SYS_sendto)
        return send_datagram((const struct sockaddr *)e, (socklen_t)f);
    if (number == SYS_recvfrom)
        return recv_datagram((int)a);
    if (descriptor_of((int)a))
        return 0; /* fcntl(2) */
    return system_call6(number, a, b, c, d, e, f);
}

void sim_give_way(void)
{
    task_give_way();
}

uint64_t sim_copy_ticks(void)
{
    return sim.now_ns += sim_below(CLOCK_STEP_NS);
}

/* --- clocks --------------------------------------------------------------------------------------
 */

uint64_t cw_clock_ns(void)
{
    return sim.now_ns += CLOCK_STEP_NS;
}

int cw_cpu(void)
{
    return 0;
}

/* A rank of the simulator has no core of its own. */
static int real_getaffinity(pid_t pid, size_t size, cpu_set_t *cores)
{
    (void)pid;
    (void)size;
    (void)cores;
    return -1;
}

static int real_clock_gettime(clockid_t id, struct timespec *t)
{
    uint64_t ns = cw_clock_ns();

    if (id < 0) {
        errno = EINVAL;
        return -1;
    }
    *t = (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                           .tv_nsec = (long)(ns % 1000000000u)};
    return 0;
}

static int real_gettimeofday(struct timeval *t, void *zone)
{
    uint64_t ns = cw_clock_ns();

    (void)zone;
    *t = (struct timeval){.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_usec = (suseconds_t)(ns / 1000u % 1000000u)};
    return 0;
}

static time_t real_time(time_t *t)
{
    (void)t;
    return (time_t)(cw_clock_ns() / 1000u); /* else it stood still */
}

static clock_t real_times(struct tms *t)
{
    *t = (struct tms){.tms_utime = (clock_t)sim_below(1000)};
    return (clock_t)sim_below(1000000);
}

static ssize_t real_getrandom(void *to, size_t size, unsigned flags)
{
    (void)flags;
    size = sim_one_in(8) ? 1 + sim_below(size) : size;
    sim_random_bytes(to, size);
    return (ssize_t)size;
}

static int real_getrusage(int who, struct rusage *usage)
{
    (void)who;
    *usage = (struct rusage){.ru_minflt = (long)sim_below(1000)};
    return 0;
}

void *sim_libc(const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
        {"clock_gettime", (void (*)(void))real_clock_gettime},
        {"sched_getcpu", (void (*)(void))cw_cpu},
        {"sched_getaffinity", (void (*)(void))real_getaffinity},
        {"gettimeofday", (void (*)(void))real_gettimeofday},
        {"time", (void (*)(void))real_time},
        {"times", (void (*)(void))real_times},
        {"getrandom", (void (*)(void))real_getrandom},
        {"getrusage", (void (*)(void))real_getrusage},
        {"poll", (void (*)(void))sim_poll},
        {"ppoll", (void (*)(void))sim_ppoll},
    };
    void *at = NULL;

    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        if (strcmp(functions[i].name, name) == 0)
            memcpy(&at, &functions[i].function, sizeof(at));
    return at;
}

/* --- the rest ------------------------------------------------------------------------------------
 */

int sim_sched_yield(void)
{
    task_yield();
    return 0;
}

int sim_raise(int number)
{
    const struct sim_process *p = process_now();

    sim_trace("%u.%u raises signal %d", p->rank, p->incarnation, number);
    process_end(W_EXITCODE(0, number));
}

void sim_say(int fd, const char *fmt, ...)
{
    const struct sim_process *p = process_now();
    char text[CW_TEXT_MAX + 64];
    va_list ap;

    (void)fd;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    sim_trace("%u.%u says: %s", p->rank, p->incarnation, text);
}

void sim_exit(int code)
{
    process_end(W_EXITCODE(code, 0));
}

char *sim_getenv(const char *name)
{
    static char text[32];

    if (process_now() && strcmp(name, CW_SETUP_ENV) == 0)
        snprintf(text, sizeof(text), "%d", process_now()->control_fd);
    else if (process_now() && sim.plan.channel && strcmp(name, CW_CHANNEL_ENV) == 0)
        snprintf(text, sizeof(text), "%d,%d", channel_now()->fd, channel_now()->file_fd);
    else
        return NULL;
    return text;
}

void sim_random_bytes(void *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = (uint8_t)sim_below(256);
}

void *sim_alloc(size_t size)
{
    return process_alloc(size);
}

void sim_free(void *at)
{
    if (at)
        process_free(at);
}
