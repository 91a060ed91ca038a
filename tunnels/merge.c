#include "tunnels/merge.h"
#include "common/clock.h"
#include "common/transport.h"
#include "tunnels/stripes.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull
#define NAME_BYTES (2u * STRIPE_NAME_BYTES + 1u)
#define FDS 2u /* of a connection: where it is read and written */

struct far_end {
    struct stripe_greeting greeting;
    struct stripes stripes;
};

/* --- words with the near end --- */

static int read_greeting(struct stripe_greeting *greeting, struct cw_err *err)
{
    uint64_t until_ns = cw_clock_ns() + MERGE_GREETING_MS * NS_IN_MS, now_ns;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    uint8_t bytes[STRIPE_GREETING_BYTES];
    int result;
    ssize_t n;

    for (size_t got = 0; got < sizeof(bytes); got += (size_t)n) {
        now_ns = cw_clock_ns();
        if (now_ns >= until_ns || poll(&p, 1, (int)((until_ns - now_ns) / NS_IN_MS) + 1) == 0)
            return cw_err_set(err, CW_ETIME, "no greeting of a tunnel came in time");
        n = read(STDIN_FILENO, bytes + got, sizeof(bytes) - got);
        if (n <= 0)
            return cw_err_set(err, CW_ECLOSED, "no greeting of a tunnel came");
    }
    result = stripe_greeting_get(bytes, greeting, err);
    sodium_memzero(bytes, sizeof(bytes));
    return result;
}

static int answer(int fd, bool joined, struct cw_err *err)
{
    uint8_t bytes[sizeof(STRIPE_ANSWER_MARK) + STRIPE_ANSWER_BYTES];
    struct stripe_answer a = {.version = STRIPE_VERSION, .joined = joined};
    ssize_t size;

    snprintf(a.text, sizeof(a.text), "%.*s", (int)sizeof(a.text) - 1, joined ? "" : err->text);
    size = (ssize_t)stripe_answer_put(bytes, &a);
    return write(fd, bytes, (size_t)size) == size
               ? CW_OK
               : cw_err_set(err, CW_ECLOSED, "the near end of the tunnel is gone");
}

/* --- where the processes of a tunnel meet --- */

/* A name that no file has: nothing is left where processes are killed. Others can see it, so who
 * enters has to be of the same user, and to have the token. */
static socklen_t place(const struct stripe_greeting *greeting, struct sockaddr_un *at)
{
    char name[NAME_BYTES];

    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    sodium_bin2hex(name, sizeof(name), greeting->name, sizeof(greeting->name));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1,
                                        "causeway-tunnel-%s", name));
}

static int open_door(const struct stripe_greeting *greeting, struct cw_err *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un at;
    socklen_t size = place(greeting, &at);

    if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, size) == 0 &&
        listen(fd, (int)MERGE_BACKLOG) == 0)
        return fd;
    cw_err_set(err, CW_ESYS, "a socket for its other connections: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

union rights {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(FDS * sizeof(int))];
};

static int hand_over(int fd, const struct stripe_greeting *greeting, struct cw_err *err)
{
    const int fds[FDS] = {STDIN_FILENO, STDOUT_FILENO};
    struct iovec token = {.iov_base = (void *)greeting->token, .iov_len = STRIPE_TOKEN_BYTES};
    union rights rights = {.header = {.cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS,
                                      .cmsg_len = CMSG_LEN(sizeof(fds))}};
    struct msghdr message = {.msg_iov = &token,
                             .msg_iovlen = 1,
                             .msg_control = &rights,
                             .msg_controllen = sizeof(rights)};

    memcpy(CMSG_DATA(&rights.header), fds, sizeof(fds));
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)STRIPE_TOKEN_BYTES
               ? CW_OK
               : cw_err_set(err, CW_ESYS, "handing a connection over: %s", strerror(errno));
}

/* Of descriptors that come, none is kept unless there are two. */
static bool take_over(int fd, const struct stripe_greeting *greeting, int fds[FDS])
{
    uint8_t token[STRIPE_TOKEN_BYTES];
    struct iovec into = {.iov_base = token, .iov_len = sizeof(token)};
    union rights rights;
    struct msghdr message = {.msg_iov = &into,
                             .msg_iovlen = 1,
                             .msg_control = &rights,
                             .msg_controllen = sizeof(rights)};
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    size_t count = header && header->cmsg_type == SCM_RIGHTS
                       ? (header->cmsg_len - CMSG_LEN(0)) / sizeof(int)
                       : 0;

    if (count > 0)
        memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    if (count == FDS && n == (ssize_t)sizeof(token) &&
        sodium_memcmp(token, greeting->token, sizeof(token)) == 0)
        return true;
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    return false;
}

static bool is_same_user(int fd)
{
    struct ucred who;
    socklen_t size = sizeof(who);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

/* `fd` is kept for as long as this process runs: the other one waits for its end. */
static void enter(struct stripes_door *door, struct stripes *stripes)
{
    const struct far_end *t = door->ctx;
    struct timeval patience = {.tv_sec = MERGE_ENTRY_MS / 1000};
    int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC), fds[FDS];
    struct cw_err err;

    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (!is_same_user(fd) || !take_over(fd, &t->greeting, fds)) {
        close(fd);
        return;
    }
    if (stripes->count < STRIPES_MAX && answer(fds[1], true, &err) == CW_OK &&
        stripes_add(stripes, fds[0], fds[1], false, &err) == CW_OK)
        return;
    close(fds[0]);
    close(fds[1]);
    close(fd);
}

/* --- both kinds of processes --- */

static int reach(const struct stripe_greeting *greeting, struct cw_err *err)
{
    struct cw_address address;
    char text[CW_ADDRESS_MAX];
    int fd;

    snprintf(text, sizeof(text), strchr(greeting->host, ':') ? "tcp:[%s]:%u" : "tcp:%s:%u",
             greeting->host, greeting->port);
    fd = cw_address_parse(&address, text, err) < 0 ? -1 : cw_connect(&address, err);
    cw_keep_alive(fd);
    return fd;
}

static int merge(struct far_end *t, int fd, struct stripes_door *door, struct cw_err *err)
{
    stripes_init(&t->stripes, true, fd, fd);
    if (answer(STDOUT_FILENO, true, err) < 0 ||
        stripes_add(&t->stripes, STDIN_FILENO, STDOUT_FILENO, false, err) < 0)
        return err->code;
    return stripes_run(&t->stripes, door, err);
}

static int first(struct far_end *t, struct cw_err *err)
{
    struct stripes_door door = {.fd = -1, .enter = enter, .ctx = t};
    int fd = reach(&t->greeting, err);

    if (fd < 0 || (door.fd = open_door(&t->greeting, err)) < 0) {
        answer(STDOUT_FILENO, false, err);
        return err->code;
    }
    merge(t, fd, &door, err);
    stripes_fini(&t->stripes);
    return err->code;
}

static int join(const struct stripe_greeting *greeting, struct cw_err *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at;
    socklen_t size = place(greeting, &at);
    char end;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, size) < 0 || !is_same_user(fd) ||
        hand_over(fd, greeting, err) < 0) {
        cw_err_set(err, CW_ENOTFOUND, "there is no such tunnel any more");
        answer(STDOUT_FILENO, false, err);
        return err->code;
    }
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    while (read(fd, &end, 1) < 0 && errno == EINTR)
        ;
    return CW_OK;
}

int merge_run(struct cw_err *err)
{
    struct far_end *t = calloc(1, sizeof(*t));

    if (!t)
        return cw_err_set(err, CW_ENOMEM, "no memory for a tunnel");
    err->code = CW_OK;
    if (read_greeting(&t->greeting, err) < 0)
        answer(STDOUT_FILENO, false, err);
    else if (t->greeting.kind == STRIPE_FIRST)
        first(t, err);
    else
        join(&t->greeting, err);
    free(t);
    return err->code;
}
