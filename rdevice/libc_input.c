/* The functions of libc by which a program takes its standard input, and waits for it. How many
 * bytes a read() gets, and whether poll() finds any, depends on when they came: the result is
 * recorded, and a replay takes as many from the pipe as the first execution did. Of other
 * descriptors nothing is recorded, but how often a timer has expired.
 *
 * stdio calls libc's own read(), past these. So `stdin` becomes a stream that calls ours.
 *
 * A binding to libc, above inputs.c and, through it, above the device. */
#include "common/setup.h"
#include "rdevice/device.h"
#include "rdevice/fatal.h"
#include "rdevice/inputs.h"
#include "rdevice/next.h"
#include "rdevice/stdin.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define KNOWN_FDS 1024u  /* below this it is known what is a timer, and what epoll's sets hold */
#define EPOLL_EVENTS 256 /* of one input */

static bool in_set[KNOWN_FDS];
static bool timers[KNOWN_FDS];

/* --- taking it -------------------------------------------------------------------------------- */

static size_t take_from_pipe(int fd, uint8_t *to, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n = NEXT(read)(fd, to, size);

    if (n < 0 && errno == EAGAIN)
        NEXT(poll)(&p, 1, -1);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        fatal_exit(CW_REPORT_FATAL,
                   "the re-execution diverged: standard input has %zu bytes fewer than the first "
                   "execution read (%s); "
                   "this program cannot be restarted, use --no-log",
                   size, n ? strerror(errno) : "its end");
    return n > 0 ? (size_t)n : 0;
}

static void take_again(int fd, const struct iovec *iov, int count, size_t size)
{
    for (int i = 0; i < count && size > 0; i++) {
        size_t piece = iov[i].iov_len < size ? iov[i].iov_len : size;

        for (size_t taken = 0; taken < piece;)
            taken += take_from_pipe(fd, (uint8_t *)iov[i].iov_base + taken, piece - taken);
        size -= piece;
    }
}

static size_t room_of(const struct iovec *iov, int count)
{
    size_t room = 0;

    for (int i = 0; i < count; i++)
        room += iov[i].iov_len;
    return room;
}

/* As many as the first execution got. */
static ssize_t given_bytes(int fd, const struct iovec *iov, int count, ssize_t n)
{
    if ((size_t)n > room_of(iov, count))
        fatal_exit(CW_REPORT_FATAL,
                   "the re-execution diverged: it reads %zu bytes of standard input, where the "
                   "first execution got %zd; "
                   "this program cannot be restarted, use --no-log",
                   room_of(iov, count), n);
    take_again(fd, iov, count, (size_t)n);
    return n;
}

static ssize_t take(int fd, const struct iovec *iov, int count, uintptr_t caller)
{
    struct input input = {.kind = READING_INPUT};

    return INPUT_TOLD(&input, caller, given_bytes(fd, iov, count, input.number),
                      input.number = NEXT(readv)(fd, iov, count));
}

/* How often a timer has expired: of timerfd_create(), and still open. */
static bool is_timer(int fd, size_t size)
{
    struct stat st;

    return (unsigned)fd < KNOWN_FDS && timers[fd] && size >= sizeof(uint64_t) &&
           fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == 0;
}

static ssize_t take_expirations(int fd, void *to, uintptr_t caller)
{
    struct input input = {.kind = READING_TIMER, .bytes = to, .size = sizeof(uint64_t)};

    return INPUT_TOLD(&input, caller, (ssize_t)sizeof(uint64_t),
                      NEXT(read)(fd, to, sizeof(uint64_t)));
}

PUBLIC int timerfd_create(clockid_t clock, int flags)
{
    int fd = NEXT(timerfd_create)(clock, flags);

    if ((unsigned)fd < KNOWN_FDS)
        timers[fd] = true;
    return fd;
}

PUBLIC ssize_t read(int fd, void *to, size_t size)
{
    if (fd >= 0 && fd == device.pmi_fd)
        device_beside_pmi();
    if (is_timer(fd, size))
        return take_expirations(fd, to, CALLER);
    if (!stdin_is(fd))
        return NEXT(read)(fd, to, size);
    return take(fd, &(struct iovec){.iov_base = to, .iov_len = size}, 1, CALLER);
}
ALIAS(__read, read);

PUBLIC ssize_t __read_chk(int fd, void *to, size_t size, size_t room)
{
    if (size > room)
        abort();
    return read(fd, to, size);
}

PUBLIC ssize_t readv(int fd, const struct iovec *iov, int count)
{
    return stdin_is(fd) ? take(fd, iov, count, CALLER) : NEXT(readv)(fd, iov, count);
}

static ssize_t stdin_read(void *cookie, char *to, size_t size)
{
    (void)cookie;
    return read(STDIN_FILENO, to, size);
}

static int stdin_seek(void *cookie, off64_t *to, int whence)
{
    (void)cookie;
    (void)to;
    (void)whence;
    errno = ESPIPE;
    return -1;
}

static int stdin_close(void *cookie)
{
    (void)cookie;
    return close(STDIN_FILENO);
}

/* The number is what fileno() tells; without the state for wide characters, neither they nor
 * freopen() would work. */
__attribute__((constructor)) static void replace_stdin(void)
{
    cookie_io_functions_t ours = {.read = stdin_read, .seek = stdin_seek, .close = stdin_close};
    FILE *file = stdin_any() ? fopencookie(NULL, "r", ours) : NULL;

    if (file) {
        file->_fileno = STDIN_FILENO;
        file->_wide_data = stdin->_wide_data;
        file->_mode = 0;
        stdin = file;
    }
}

static int real_left(struct input *input, int fd, int *left)
{
    int result = NEXT(ioctl)(fd, FIONREAD, left);

    input->number = result < 0 ? 0 : *left;
    return result;
}

/* One argument follows, whatever its type: all are passed in the same register. */
PUBLIC int ioctl(int fd, unsigned long request, ...)
{
    struct input input = {.kind = READING_INPUT};
    void *argument;
    va_list ap;

    va_start(ap, request);
    argument = va_arg(ap, void *);
    va_end(ap);
    if (request != FIONREAD || !stdin_is(fd))
        return NEXT(ioctl)(fd, request, argument);
    return INPUT_TOLD(&input, CALLER, (*(int *)argument = (int)input.number, 0),
                      real_left(&input, fd, argument));
}

/* --- waiting for it --------------------------------------------------------------------------- */

/* The header says that poll() only writes to it; the compiler believes that here too. */
static struct pollfd *read_too(struct pollfd *set)
{
    __asm__("" : "+r"(set));
    return set;
}

/* The first entry that is the input, or `count`. */
static nfds_t polled(const struct pollfd *set, nfds_t count)
{
    nfds_t i = 0;

    if (!stdin_any())
        return count;
    while (i < count && !stdin_is(set[i].fd))
        i++;
    return i;
}

/* What the first execution found of the input; of the others in the set, what there is now. Only
 * when it found nothing of the input may they be waited for. */
static int poll_again(struct pollfd *set, nfds_t count, nfds_t at, short found,
                      const struct timespec *timeout, const sigset_t *mask)
{
    static const struct timespec none;
    int fd = set[at].fd;
    int others = 0;

    if (count > 1) {
        set[at].fd = -1;
        others = NEXT(ppoll)(set, count, found ? &none : timeout, mask);
        set[at].fd = fd;
    }
    set[at].revents = found;
    return others < 0 && !found ? others : (others > 0 ? others : 0) + (found != 0);
}

static int poll_now(struct input *input, struct pollfd *set, nfds_t count, nfds_t at,
                    const struct timespec *timeout, const sigset_t *mask)
{
    int result = NEXT(ppoll)(set, count, timeout, mask);

    input->number = set[at].revents;
    return result;
}

static int poll_input(struct pollfd *set, nfds_t count, nfds_t at, const struct timespec *timeout,
                      const sigset_t *mask, uintptr_t caller)
{
    struct input input = {.kind = READING_INPUT};

    return INPUT_TOLD(&input, caller,
                      poll_again(set, count, at, (short)input.number, timeout, mask),
                      poll_now(&input, set, count, at, timeout, mask));
}

PUBLIC int poll(struct pollfd *set, nfds_t count, int ms)
{
    struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nfds_t at = polled(read_too(set), count);

    return at == count ? NEXT(poll)(set, count, ms)
                       : poll_input(set, count, at, ms < 0 ? NULL : &timeout, NULL, CALLER);
}
ALIAS(__poll, poll);

PUBLIC int __poll_chk(struct pollfd *set, nfds_t count, int ms, size_t room)
{
    if (room / sizeof(*set) < count)
        abort();
    return poll(set, count, ms);
}

PUBLIC int ppoll(struct pollfd *set, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
    nfds_t at = polled(read_too(set), count);

    return at == count ? NEXT(ppoll)(set, count, timeout, mask)
                       : poll_input(set, count, at, timeout, mask, CALLER);
}

PUBLIC int __ppoll_chk(struct pollfd *set, nfds_t count, const struct timespec *timeout,
                       const sigset_t *mask, size_t room)
{
    if (room / sizeof(*set) < count)
        abort();
    return ppoll(set, count, timeout, mask);
}

/* --- select ----------------------------------------------------------------------------------- */

enum { SELECT_SETS = 3 };

struct selected {
    fd_set *sets[SELECT_SETS];
    int count;
    int fd; /* the input; -1: it is in none */
};

static struct selected selected(int count, fd_set *reads, fd_set *writes, fd_set *errors)
{
    struct selected s = {.sets = {reads, writes, errors}, .count = count, .fd = -1};

    for (int fd = 0; stdin_any() && s.fd < 0 && fd < count && fd < FD_SETSIZE; fd++)
        for (int i = 0; i < SELECT_SETS; i++)
            if (s.sets[i] && FD_ISSET(fd, s.sets[i]) && stdin_is(fd))
                s.fd = fd;
    return s;
}

static uint32_t bits_of(const struct selected *s)
{
    uint32_t bits = 0;

    for (int i = 0; i < SELECT_SETS; i++)
        if (s->sets[i] && FD_ISSET(s->fd, s->sets[i]))
            bits |= 1u << i;
    return bits;
}

/* `count` of all, others than the input included. */
static int put_bits(const struct selected *s, uint32_t bits, int count)
{
    for (int i = 0; i < SELECT_SETS; i++)
        if (bits >> i & 1) {
            FD_SET(s->fd, s->sets[i]);
            count++;
        }
    return count;
}

/* As poll_again(). */
static int select_again(const struct selected *s, uint32_t found, const struct timespec *timeout,
                        const sigset_t *mask)
{
    static const struct timespec none;
    int count;

    for (int i = 0; i < SELECT_SETS; i++)
        if (s->sets[i])
            FD_CLR(s->fd, s->sets[i]);
    if (s->fd == 0 && s->count == 1)
        return put_bits(s, found, 0);
    count =
        NEXT(pselect)(s->count, s->sets[0], s->sets[1], s->sets[2], found ? &none : timeout, mask);
    return count < 0 ? count : put_bits(s, found, count);
}

PUBLIC int select(int count, fd_set *restrict reads, fd_set *restrict writes,
                  fd_set *restrict errors, struct timeval *restrict timeout)
{
    struct selected s = selected(count, reads, writes, errors);
    struct {
        uint32_t bits;
        struct timeval left; /* of the timeout, as Linux tells it */
    } told = {0};
    struct input input = {.kind = READING_INPUT_SET, .bytes = &told, .size = sizeof(told)};
    struct timespec wait = {0};
    enum input_answer answer;
    int result;

    if (s.fd < 0)
        return NEXT(select)(count, reads, writes, errors, timeout);
    answer = inputs_ask(&input, CALLER);
    if (answer == INPUT_FAILED)
        return -1;
    if (answer == INPUT_GIVEN) {
        if (timeout) {
            wait = (struct timespec){.tv_sec = timeout->tv_sec, .tv_nsec = timeout->tv_usec * 1000};
            *timeout = told.left;
        }
        return select_again(&s, told.bits, timeout ? &wait : NULL, NULL);
    }
    result = NEXT(select)(count, reads, writes, errors, timeout);
    if (result >= 0)
        told.bits = bits_of(&s);
    if (timeout)
        told.left = *timeout;
    return (int)inputs_finish(&input, answer, result);
}
ALIAS(__select, select);

static int pselect_now(struct input *input, const struct selected *s,
                       const struct timespec *timeout, const sigset_t *mask)
{
    int result = NEXT(pselect)(s->count, s->sets[0], s->sets[1], s->sets[2], timeout, mask);

    input->number = result < 0 ? 0 : bits_of(s);
    return result;
}

PUBLIC int pselect(int count, fd_set *restrict reads, fd_set *restrict writes,
                   fd_set *restrict errors, const struct timespec *restrict timeout,
                   const sigset_t *restrict mask)
{
    struct selected s = selected(count, reads, writes, errors);
    struct input input = {.kind = READING_INPUT};

    if (s.fd < 0)
        return NEXT(pselect)(count, reads, writes, errors, timeout, mask);
    return INPUT_TOLD(&input, CALLER, select_again(&s, (uint32_t)input.number, timeout, mask),
                      pselect_now(&input, &s, timeout, mask));
}

/* --- epoll ------------------------------------------------------------------------------------ */

PUBLIC int epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
    int result = NEXT(epoll_ctl)(set, operation, fd, event);

    if (result == 0 && operation == EPOLL_CTL_ADD && (unsigned)set < KNOWN_FDS && stdin_is(fd))
        in_set[set] = true;
    return result;
}

static int found_now(struct input *input, int set, int room, const struct timespec *timeout,
                     const sigset_t *mask)
{
    int n = NEXT(epoll_pwait2)(set, input->bytes, room, timeout, mask);

    input->size = n < 0 ? 0 : (size_t)n * sizeof(struct epoll_event);
    return n;
}

/* Of a set that has ever held the input, all that is found is recorded. */
static int found(int set, struct epoll_event *events, int room, const struct timespec *timeout,
                 const sigset_t *mask, uintptr_t caller)
{
    struct input input = {.kind = READING_INPUT_SET, .bytes = events};

    if ((unsigned)set >= KNOWN_FDS || !in_set[set] || room <= 0)
        return NEXT(epoll_pwait2)(set, events, room, timeout, mask);
    room = room < EPOLL_EVENTS ? room : EPOLL_EVENTS;
    input.size = (size_t)room * sizeof(*events);
    return INPUT_TOLD(&input, caller, (int)(input.size / sizeof(*events)),
                      found_now(&input, set, room, timeout, mask));
}

PUBLIC int epoll_pwait2(int set, struct epoll_event *events, int room,
                        const struct timespec *timeout, const sigset_t *mask)
{
    return found(set, events, room, timeout, mask, CALLER);
}

static int found_in_ms(int set, struct epoll_event *events, int room, int ms, const sigset_t *mask,
                       uintptr_t caller)
{
    struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    return found(set, events, room, ms < 0 ? NULL : &timeout, mask, caller);
}

PUBLIC int epoll_pwait(int set, struct epoll_event *events, int room, int ms, const sigset_t *mask)
{
    return found_in_ms(set, events, room, ms, mask, CALLER);
}

PUBLIC int epoll_wait(int set, struct epoll_event *events, int room, int ms)
{
    return found_in_ms(set, events, room, ms, NULL, CALLER);
}
