#include "common/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_MS 10000
#define SOCKET_BUFFER_BYTES (1 << 20) /* the kernel lowers it to its own bound */

static void grow_buffers(int fd)
{
    int bytes = SOCKET_BUFFER_BYTES;

    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static int unix_parse(struct cw_address *address, const char *rest, struct cw_err *err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&address->sockaddr;

    if (!*rest || strlen(rest) >= sizeof(un->sun_path))
        return cw_err_set(err, CW_EINVAL, "address '%s': the path must have 1 to %zu bytes",
                          address->text, sizeof(un->sun_path) - 1);
    un->sun_family = AF_UNIX;
    strcpy(un->sun_path, rest);
    address->sockaddr_size = sizeof(*un);
    return CW_OK;
}

/* A socket file that nobody answers is what a killed relay left behind. */
static int unix_claim(const struct cw_address *address, struct cw_err *err)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->sockaddr;
    struct stat st;
    int fd;
    int failure = 0;

    if (lstat(un->sun_path, &st) < 0)
        return CW_OK;
    if (!S_ISSOCK(st.st_mode))
        return cw_err_set(err, CW_EINVAL, "%s: there is a file of that name that is no socket",
                          address->text);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return cw_err_set(err, CW_ESYS, "%s: socket: %s", address->text, strerror(errno));
    if (connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0)
        failure = errno;
    close(fd);
    if (failure == EACCES)
        return cw_err_set(err, CW_EINVAL, "%s: there is a socket of somebody else", address->text);
    if (failure != ECONNREFUSED)
        return cw_err_set(err, CW_EINVAL, "%s: another process listens there; choose another path",
                          address->text);
    unlink(un->sun_path);
    return CW_OK;
}

static void unix_release(const struct cw_address *address)
{
    unlink(((const struct sockaddr_un *)&address->sockaddr)->sun_path);
}

static int tcp_parse(struct cw_address *address, const char *rest, struct cw_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found = NULL;
    char host[256];
    const char *colon = strrchr(rest, ':');
    const char *start = rest;
    size_t size;
    int failed;

    if (!colon || colon == rest || !colon[1] ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return cw_err_set(err, CW_EINVAL, "address '%s': expected tcp:HOST:PORT", address->text);
    size = (size_t)(colon - start);
    if (start[0] == '[' && start[size - 1] == ']') {
        start++;
        size -= 2;
    }
    if (size == 0 || size >= sizeof(host) || atol(colon + 1) > 65535)
        return cw_err_set(err, CW_EINVAL, "address '%s': bad host or port", address->text);
    memcpy(host, start, size);
    host[size] = '\0';
    failed = getaddrinfo(host, colon + 1, &hints, &found);
    if (failed)
        return cw_err_set(err, CW_EINVAL, "address '%s': %s", address->text, gai_strerror(failed));
    memcpy(&address->sockaddr, found->ai_addr, found->ai_addrlen);
    address->sockaddr_size = found->ai_addrlen;
    freeaddrinfo(found);
    return CW_OK;
}

static int tcp_claim(const struct cw_address *address, struct cw_err *err)
{
    (void)address;
    (void)err;
    return CW_OK;
}

/* [Relay] 4.1: without TCP_NODELAY the small control frames are a thousand times slower. */
static void tcp_tune(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static void tcp_release(const struct cw_address *address)
{
    (void)address;
}

static const struct cw_transport transports[] = {
    {"unix", unix_parse, unix_claim, grow_buffers, unix_release},
    {"tcp", tcp_parse, tcp_claim, tcp_tune, tcp_release},
};

int cw_address_parse(struct cw_address *address, const char *text, struct cw_err *err)
{
    memset(address, 0, sizeof(*address));
    if (strlen(text) >= sizeof(address->text))
        return cw_err_set(err, CW_EINVAL, "address of more than %zu bytes",
                          sizeof(address->text) - 1);
    strcpy(address->text, text);
    for (size_t i = 0; i < sizeof(transports) / sizeof(*transports); i++) {
        size_t size = strlen(transports[i].scheme);

        if (strncmp(text, transports[i].scheme, size) == 0 && text[size] == ':') {
            address->transport = &transports[i];
            return transports[i].parse(address, text + size + 1, err);
        }
    }
    return cw_err_set(err, CW_EINVAL, "address '%s': expected unix:PATH or tcp:HOST:PORT", text);
}

/* tcp:HOST:0 becomes the port that the kernel chose. */
static void learn_port(struct cw_address *address, int fd)
{
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];

    if (address->sockaddr.ss_family == AF_UNIX)
        return;
    address->sockaddr_size = sizeof(address->sockaddr);
    if (getsockname(fd, (struct sockaddr *)&address->sockaddr, &address->sockaddr_size) == 0 &&
        getnameinfo((struct sockaddr *)&address->sockaddr, address->sockaddr_size, host,
                    sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(address->text, sizeof(address->text),
                 address->sockaddr.ss_family == AF_INET6 ? "tcp:[%.200s]:%.10s"
                                                         : "tcp:%.200s:%.10s",
                 host, port);
}

int cw_listen(struct cw_address *address, struct cw_err *err)
{
    int on = 1;
    int fd;

    if (address->transport->claim(address, err) < 0)
        return err->code;
    fd = socket(address->sockaddr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return cw_err_set(err, CW_ESYS, "listen on %s: socket: %s", address->text, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address->sockaddr, address->sockaddr_size) < 0 ||
        listen(fd, CW_LISTEN_BACKLOG) < 0) {
        cw_err_set(err, CW_ESYS, "listen on %s: %s", address->text, strerror(errno));
        close(fd);
        return err->code;
    }
    learn_port(address, fd);
    return fd;
}

void cw_unlisten(int fd, const struct cw_address *address)
{
    close(fd);
    address->transport->release(address);
}

static int await_connected(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int failure = 0;
    socklen_t size = sizeof(failure);
    int n;

    do
        n = poll(&p, 1, CONNECT_TIMEOUT_MS);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return ETIMEDOUT;
    if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
        return errno;
    return failure;
}

int cw_connect(const struct cw_address *address, struct cw_err *err)
{
    int fd = socket(address->sockaddr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failure = 0;

    if (fd < 0)
        return cw_err_set(err, CW_ESYS, "connect to %s: socket: %s", address->text,
                          strerror(errno));
    if (connect(fd, (const struct sockaddr *)&address->sockaddr, address->sockaddr_size) < 0)
        failure = errno == EINPROGRESS ? await_connected(fd) : errno;
    if (failure) {
        close(fd);
        return cw_err_set(err, CW_ESYS, "connect to %s: %s", address->text, strerror(failure));
    }
    address->transport->tune(fd);
    return fd;
}

int cw_accept(int listener, const struct cw_address *address)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return -errno;
    address->transport->tune(fd);
    return fd;
}
