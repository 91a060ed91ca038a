#include "common/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_MS 10000
#define CONNECT_PAUSE_MS 10
#define CLAIM_WAIT_MS 5000
#define TRANSPORTS_MAX 3u
#define SOCKET_BUFFER_BYTES (1 << 20) /* the kernel lowers it to its own bound */

static void grow_buffers(int fd)
{
    int bytes = SOCKET_BUFFER_BYTES;

    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static int unix_parse(struct cw_address *address, const char *rest, struct cw_err *err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&address->at[0].storage;

    if (!*rest || strlen(rest) >= sizeof(un->sun_path))
        return cw_err_set(err, CW_EINVAL, "address '%s': the path must have 1 to %zu bytes",
                          address->text, sizeof(un->sun_path) - 1);
    un->sun_family = AF_UNIX;
    strcpy(un->sun_path, rest);
    address->at[0].size = sizeof(*un);
    address->count = 1;
    return CW_OK;
}

/* Whether the process has ended that began to listen where this socket is connected. */
static bool listener_ended(int fd)
{
    struct ucred ucred = {0};
    struct pollfd ended = {.events = POLLIN};
    socklen_t size = sizeof(ucred);
    bool has;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &size) < 0 || ucred.pid <= 0)
        return false;
    ended.fd = pidfd_open(ucred.pid, 0);
    if (ended.fd < 0)
        return errno == ESRCH;
    has = poll(&ended, 1, 0) > 0;
    close(ended.fd);
    return has;
}

/* Returns 0 where somebody listens, or the error. *ended: whose process has ended. */
static int unix_ask(const struct sockaddr_un *un, bool *ended)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failure = 0;

    *ended = false;
    if (fd < 0)
        return errno;
    if (connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0)
        failure = errno;
    else
        *ended = listener_ended(fd);
    close(fd);
    return failure;
}

/* Where a killed process used io_uring, the kernel may still be about to close its listener. */
static int unix_ask_until_closed(const struct sockaddr_un *un)
{
    bool ended;
    int failure = unix_ask(un, &ended);

    for (int ms = 0; ended && ms < CLAIM_WAIT_MS; ms += CONNECT_PAUSE_MS) {
        poll(NULL, 0, CONNECT_PAUSE_MS);
        failure = unix_ask(un, &ended);
    }
    return failure;
}

/* A socket file without a listener is the leftover of a killed relay: removes it. */
static int unix_claim(const struct cw_address *address, struct cw_err *err)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->at[0].storage;
    struct stat st;
    int failure;

    if (lstat(un->sun_path, &st) < 0)
        return CW_OK;
    if (!S_ISSOCK(st.st_mode))
        return cw_err_set(err, CW_EINVAL, "%s: there is a file of that name that is no socket",
                          address->text);
    failure = unix_ask_until_closed(un);
    switch (failure) {
    case ECONNREFUSED:
        unlink(un->sun_path);
        return CW_OK;
    case EACCES:
        return cw_err_set(err, CW_EINVAL, "%s: there is a socket of somebody else", address->text);
    case 0:
    case EAGAIN: /* and has much to do */
        return cw_err_set(err, CW_EINVAL, "%s: another process listens there; choose another path",
                          address->text);
    default:
        return cw_err_set(err, CW_ESYS, "%s: asking whether another process listens there: %s",
                          address->text, strerror(failure));
    }
}

static void unix_release(const struct cw_address *address)
{
    unlink(((const struct sockaddr_un *)&address->at[0].storage)->sun_path);
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
    for (struct addrinfo *a = found; a && address->count < CW_SOCKADDRS_MAX; a = a->ai_next) {
        struct cw_sockaddr *at = &address->at[address->count++];

        memcpy(&at->storage, a->ai_addr, a->ai_addrlen);
        at->size = a->ai_addrlen;
    }
    freeaddrinfo(found);
    return CW_OK;
}

static int tcp_claim(const struct cw_address *address, struct cw_err *err)
{
    (void)address;
    (void)err;
    return CW_OK;
}

/* TCP_NODELAY: without it small control frames are a thousand times slower ([Relay] 4.1). */
static void tcp_tune(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

void cw_keep_alive(int fd)
{
    const int idle_s = CW_ALIVE_IDLE_S, ask_s = CW_ALIVE_ASK_S, asks = CW_ALIVE_ASKS_MAX;

    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &ask_s, sizeof(ask_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &asks, sizeof(asks));
}

static void tcp_release(const struct cw_address *address)
{
    (void)address;
}

static const struct cw_transport local_transport = {.scheme = "unix",
                                                    .parse = unix_parse,
                                                    .claim = unix_claim,
                                                    .tune = grow_buffers,
                                                    .release = unix_release};
static const struct cw_transport tcp_transport = {.scheme = "tcp",
                                                  .parse = tcp_parse,
                                                  .claim = tcp_claim,
                                                  .tune = tcp_tune,
                                                  .release = tcp_release};
static const struct cw_transport *transports[TRANSPORTS_MAX] = {&local_transport, &tcp_transport};

void cw_transport_add(const struct cw_transport *transport)
{
    transports[TRANSPORTS_MAX - 1] = transport;
}

int cw_address_parse(struct cw_address *address, const char *text, struct cw_err *err)
{
    memset(address, 0, sizeof(*address));
    if (strlen(text) >= sizeof(address->text))
        return cw_err_set(err, CW_EINVAL, "address of more than %zu bytes",
                          sizeof(address->text) - 1);
    strcpy(address->text, text);
    for (size_t i = 0; i < TRANSPORTS_MAX && transports[i]; i++) {
        size_t size = strlen(transports[i]->scheme);

        if (strncmp(text, transports[i]->scheme, size) == 0 && text[size] == ':') {
            address->transport = transports[i];
            return transports[i]->parse(address, text + size + 1, err);
        }
    }
    return cw_err_set(err, CW_EINVAL, "address '%s': expected unix:PATH or tcp:HOST:PORT", text);
}

/* Replaces port 0 in `address` by the port that the kernel chose. */
static void learn_port(struct cw_address *address, int fd)
{
    struct cw_sockaddr *at = &address->at[0];
    struct sockaddr *storage = (struct sockaddr *)&at->storage;
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];

    if (storage->sa_family == AF_UNIX)
        return;
    address->count = 1;
    at->size = sizeof(at->storage);
    if (getsockname(fd, storage, &at->size) == 0 &&
        getnameinfo(storage, at->size, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(address->text, sizeof(address->text),
                 storage->sa_family == AF_INET6 ? "tcp:[%.200s]:%.10s" : "tcp:%.200s:%.10s", host,
                 port);
}

/* Returns a listening socket, or -errno. */
static int listen_at(const struct cw_sockaddr *at)
{
    int fd = socket(at->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    int failure;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&at->storage, at->size) == 0 &&
        listen(fd, CW_LISTEN_BACKLOG) == 0)
        return fd;
    failure = -errno;
    close(fd);
    return failure;
}

/* If the port is in use at one socket address, later ones are not tried: clients try the addresses
 * in order and would connect to the other listener. */
int cw_listen(struct cw_address *address, struct cw_err *err)
{
    int fd = -EADDRNOTAVAIL;

    if (address->transport->claim(address, err) < 0)
        return err->code;
    for (int i = 0; i < address->count && fd < 0 && fd != -EADDRINUSE; i++)
        fd = listen_at(&address->at[i]);
    if (fd < 0)
        return cw_err_set(err, CW_ESYS, "listen on %s: %s", address->text, strerror(-fd));
    learn_port(address, fd);
    return fd;
}

int cw_address_choose_port(const char *wanted, char chosen[CW_ADDRESS_MAX], struct cw_err *err)
{
    struct cw_address address;
    int fd;

    if (cw_address_parse(&address, wanted, err) < 0)
        return err->code;
    if (strncmp(wanted, "tcp:", 4) == 0) {
        fd = cw_listen(&address, err);
        if (fd < 0)
            return err->code;
        close(fd);
    }
    snprintf(chosen, CW_ADDRESS_MAX, "%s", address.text);
    return CW_OK;
}

void cw_unlisten(int fd, const struct cw_address *address)
{
    close(fd);
    address->transport->release(address);
}

/* connect(), repeated for at most `patience_ms` while a Unix listener's backlog is full: EAGAIN,
 * and poll() does not report when there is room. Returns true if `fd` is connected or connecting.
 */
static bool connects(int fd, const struct cw_sockaddr *at, int patience_ms)
{
    int rc = connect(fd, (const struct sockaddr *)&at->storage, at->size);

    for (int ms = 0; rc < 0 && errno == EAGAIN && ms < patience_ms; ms += CONNECT_PAUSE_MS) {
        poll(NULL, 0, CONNECT_PAUSE_MS);
        rc = connect(fd, (const struct sockaddr *)&at->storage, at->size);
    }
    return rc == 0 || errno == EINPROGRESS;
}

static int begin(const struct cw_address *address, int place, int patience_ms, struct cw_err *err)
{
    const struct cw_sockaddr *at = &address->at[place];
    int fd;

    if (address->transport->begin)
        return address->transport->begin(address, err);
    fd = socket(at->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return cw_err_set(err, CW_ESYS, "connect to %s: socket: %s", address->text,
                          strerror(errno));
    if (connects(fd, at, patience_ms))
        return fd;
    cw_err_set(err, CW_ESYS, "connect to %s: %s", address->text, strerror(errno));
    close(fd);
    return err->code;
}

int cw_connect_begin(const struct cw_address *address, int place, struct cw_err *err)
{
    return begin(address, place, 0, err);
}

static int await_connected(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int failure = 0;
    socklen_t size = sizeof(failure);
    int n;

    do
        n = poll(&p, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return ETIMEDOUT;
    if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
        return errno;
    return failure;
}

int cw_connect_end(int fd, const struct cw_address *address, int timeout_ms, struct cw_err *err)
{
    int failure;

    if (address->transport->end)
        return address->transport->end(fd, address, timeout_ms, err);
    failure = await_connected(fd, timeout_ms);
    if (failure)
        return cw_err_set(err, CW_ESYS, "connect to %s: %s", address->text, strerror(failure));
    address->transport->tune(fd);
    return CW_OK;
}

static int connect_in_turn(const struct cw_address *address, int each_ms, struct cw_err *err)
{
    for (int i = 0; i < address->count; i++) {
        int fd = begin(address, i, each_ms, err);

        if (fd < 0)
            continue;
        if (cw_connect_end(fd, address, each_ms, err) == CW_OK) {
            err->code = CW_OK;
            return fd;
        }
        close(fd);
    }
    return err->code;
}

int cw_connect(const struct cw_address *address, struct cw_err *err)
{
    return connect_in_turn(address, CONNECT_TIMEOUT_MS, err);
}

int cw_connect_within(const struct cw_address *address, uint32_t time_ms, struct cw_err *err)
{
    return connect_in_turn(address, (int)time_ms / address->count, err);
}

int cw_accept(int listener, const struct cw_address *address)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return -errno;
    address->transport->tune(fd);
    return fd;
}
