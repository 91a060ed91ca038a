#include "dispatcher/node/attach.h"
#include "dispatcher/node/node.h"
#include "dispatcher/status/rundir.h"
#include "dispatcher/wire/greeting.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Bytes on their way from one descriptor to the other. */
struct way {
    int from;
    int to;
    size_t at;
    size_t end;
    char bytes[ATTACH_BUFFER];
};

static bool again(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Returns false at its end. */
static bool step(struct way *w, const struct pollfd *p)
{
    ssize_t n;

    if (w->at == w->end && p->revents) {
        n = read(w->from, w->bytes, sizeof(w->bytes));
        if (n <= 0)
            return again(n);
        w->at = 0;
        w->end = (size_t)n;
    }
    if (w->at < w->end) {
        n = write(w->to, w->bytes + w->at, w->end - w->at);
        if (n < 0)
            return again(n);
        w->at += (size_t)n;
    }
    return true;
}

/* Each way is waited for at one end: at that to be written when it holds bytes. */
static struct pollfd wanted(const struct way *w)
{
    return w->at < w->end ? (struct pollfd){.fd = w->to, .events = POLLOUT}
                          : (struct pollfd){.fd = w->from, .events = POLLIN};
}

static void copy(int fd)
{
    static struct way ways[2];

    ways[0].from = STDIN_FILENO;
    ways[0].to = ways[1].from = fd;
    ways[1].to = STDOUT_FILENO;
    for (;;) {
        struct pollfd p[2] = {wanted(&ways[0]), wanted(&ways[1])};

        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return;
        if ((p[0].revents && !step(&ways[0], &p[0])) || (p[1].revents && !step(&ways[1], &p[1])))
            return;
    }
}

/* So that the dispatcher knows at once, and does not try again. */
static void refuse(const char *why)
{
    uint8_t bytes[sizeof(GREETING_MAGIC) + GREETING_HEADER + GREETING_FRAME_MAX] = GREETING_MAGIC;
    size_t magic = strlen(GREETING_MAGIC);
    size_t size = magic + greeting_put_refused(bytes + magic, why);

    if (write(STDOUT_FILENO, bytes, size) < 0)
        return; /* nobody is there */
}

static int connect_to(const char *dir, struct cw_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = sizeof(address.sun_path);
    int fd;

    if ((size_t)snprintf(address.sun_path, size, "%s/" NODE_SOCKET, dir) >= size)
        return cw_err_set(err, CW_EINVAL, "--attach %s: too long", dir);
    signal(SIGPIPE, SIG_IGN);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return cw_err_set(err, CW_ESYS, "socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    cw_err_set(err, CW_ENOTFOUND, "there is no node any more in %s: %s", dir, strerror(errno));
    close(fd);
    return err->code;
}

static int take_answer(enum greeting_type type, const uint8_t *body, size_t size,
                       struct cw_err *err)
{
    char why[GREETING_TEXT_MAX + 1];

    if (type == GREETING_HELLO)
        return CW_OK;
    if (type == GREETING_REFUSED && greeting_get_refused(body, size, why))
        return cw_err_set(err, CW_EBUSY, "%s", why);
    return cw_err_set(err, CW_ESYS, "its node answers something that makes no sense");
}

static int await_answer(int fd, struct cw_err *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    enum greeting_type type;
    struct greeting greeting;
    uint8_t byte;
    size_t size;

    greeting_init(&greeting, true);
    while (poll(&p, 1, ATTACH_LOOK_MS) > 0 && read(fd, &byte, 1) == 1)
        if (greeting_take(&greeting, &byte, 1, &type, &size, err) < 0)
            return err->code;
        else if (type != GREETING_NONE)
            return take_answer(type, greeting.bytes + GREETING_HEADER, size, err);
    return cw_err_set(err, CW_ESYS, "its node does not answer");
}

int attach_look(const char *dir, struct cw_err *err)
{
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
    size_t size = greeting_put_look(bytes);
    int fd = connect_to(dir, err);

    if (fd < 0)
        return err->code;
    err->code = CW_OK;
    if (write(fd, bytes, size) == (ssize_t)size)
        await_answer(fd, err);
    else
        cw_err_set(err, CW_ESYS, "asking its node: %s", strerror(errno));
    close(fd);
    return err->code;
}

int attach_run(const char *dir, struct cw_err *err)
{
    int fd = connect_to(dir, err);

    if (fd < 0) {
        refuse(err->text);
        rundir_remove_left(dir);
        return err->code;
    }
    copy(fd);
    close(fd);
    return CW_OK;
}
