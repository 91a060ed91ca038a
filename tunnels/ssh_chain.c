#include "tunnels/ssh_chain.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/transport.h"
#include "tunnels/ssh_channel.h"
#include "tunnels/ssh_login.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull
#define SSH_CONNECT_AGAIN_NS 400000000ull /* between two tries, ... */
#define SSH_CONNECTS_MAX 8u               /* ... so many of which are under way at a time */

struct tries {
    const struct cw_address *address;
    struct pollfd fd[SSH_CONNECTS_MAX]; /* -1: none */
    int place[SSH_CONNECTS_MAX];        /* of the address, for which each is */
    uint32_t begun;
    int next_place;
    bool refused[CW_SOCKADDRS_MAX];
};

/* The next place that has not refused; -1: all have. */
static int next_place(struct tries *t)
{
    for (int i = 0; i < t->address->count; i++) {
        int place = (t->next_place + i) % t->address->count;

        if (t->refused[place])
            continue;
        t->next_place = place + 1;
        return place;
    }
    return -1;
}

/* In place of the one that has waited longest. */
static void begin(struct tries *t, int place, struct cw_err *err)
{
    uint32_t i = t->begun++ % SSH_CONNECTS_MAX;

    cw_close(&t->fd[i].fd);
    t->fd[i] = (struct pollfd){.fd = cw_connect_begin(t->address, place, err), .events = POLLOUT};
    t->place[i] = place;
    t->refused[place] = t->fd[i].fd < 0;
}

/* Returns the socket that is connected, or -1. */
static int look(struct tries *t, struct cw_err *err)
{
    for (uint32_t i = 0; i < SSH_CONNECTS_MAX; i++) {
        int fd = t->fd[i].fd;

        if (fd < 0 || !t->fd[i].revents)
            continue;
        t->fd[i].fd = -1;
        if (cw_connect_end(fd, t->address, 0, err) == CW_OK)
            return fd;
        close(fd);
        t->refused[t->place[i]] = true;
    }
    return -1;
}

static void end(struct tries *t)
{
    for (uint32_t i = 0; i < SSH_CONNECTS_MAX; i++)
        cw_close(&t->fd[i].fd);
}

static int try_often(struct tries *t, uint64_t until_ns, struct cw_err *err)
{
    int place, fd = -1;

    while (fd < 0 && (place = next_place(t)) >= 0) {
        uint64_t again_ns = cw_clock_ns() + SSH_CONNECT_AGAIN_NS;

        begin(t, place, err);
        for (uint64_t now_ns; fd < 0 && !t->refused[place] && (now_ns = cw_clock_ns()) < again_ns;
             fd = look(t, err)) {
            if (now_ns >= until_ns)
                return cw_err_set(err, CW_ETIME, "connect to %s: no answer", t->address->text);
            poll(t->fd, SSH_CONNECTS_MAX, (int)((again_ns - now_ns) / NS_IN_MS) + 1);
        }
    }
    return fd >= 0 ? fd : err->code;
}

/* The TCP connection to a first gateway. Returns a connected socket, or CW_ESYS, CW_EINVAL (no such
 * host), CW_ETIME: not by `until_ns`. The kernel sends the first packet of a connection again after
 * 1 s, then 2 s, 4 s, ...: too late for a way that was cut and is there again. So further
 * connections are tried meanwhile, and the first one that is made counts. May block longer, to
 * resolve the name. */
static int ssh_connect(const char *host, uint16_t port, uint64_t until_ns, struct cw_err *err)
{
    struct tries t = {0};
    struct cw_address address;
    char text[CW_ADDRESS_MAX];
    int fd;

    snprintf(text, sizeof(text), strchr(host, ':') ? "tcp:[%s]:%u" : "tcp:%s:%u", host, port);
    if (cw_address_parse(&address, text, err) < 0)
        return err->code;
    t.address = &address;
    for (uint32_t i = 0; i < SSH_CONNECTS_MAX; i++)
        t.fd[i].fd = -1;
    fd = try_often(&t, until_ns, err);
    end(&t);
    return fd;
}

/* What is refused is older than SSH of 2014: SHA-1, CBC, and groups that are too small. */
static const struct {
    int method;
    const char *names;
} methods[] = {
    {LIBSSH2_METHOD_KEX, "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,"
                         "ecdh-sha2-nistp384,ecdh-sha2-nistp521,diffie-hellman-group16-sha512,"
                         "diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha256,"
                         "diffie-hellman-group14-sha256"},
    {LIBSSH2_METHOD_CRYPT_CS, "aes128-ctr,aes256-ctr,aes192-ctr"},
    {LIBSSH2_METHOD_CRYPT_SC, "aes128-ctr,aes256-ctr,aes192-ctr"},
    {LIBSSH2_METHOD_MAC_CS, "hmac-sha2-256,hmac-sha2-512"},
    {LIBSSH2_METHOD_MAC_SC, "hmac-sha2-256,hmac-sha2-512"},
};

/* --- what a session sends and receives by --- */

static ssize_t heard(struct ssh_link *link, ssize_t n)
{
    if (n > 0) {
        link->heard_ns = cw_clock_ns();
        link->asked_ns = 0;
    }
    return n;
}

/* Through a channel of the one before */
static ssize_t send_through(libssh2_socket_t fd, const void *bytes, size_t size, int flags,
                            void **abstract)
{
    const struct ssh_link *link = *abstract;
    ssize_t n;

    (void)fd;
    (void)flags;
    n = libssh2_channel_write((link - 1)->channel, bytes, size);
    if (n == LIBSSH2_ERROR_EAGAIN)
        return -EAGAIN;
    return n < 0 ? -EPIPE : n;
}

static ssize_t receive_through(libssh2_socket_t fd, void *bytes, size_t size, int flags,
                               void **abstract)
{
    struct ssh_link *link = *abstract;
    ssize_t n;

    (void)fd;
    (void)flags;
    n = libssh2_channel_read((link - 1)->channel, bytes, size);
    if (n == LIBSSH2_ERROR_EAGAIN)
        return -EAGAIN;
    return n < 0 ? -ECONNRESET : heard(link, n);
}

/* What sshd sends waits for the acknowledgement of what it sent before (RFC 896), where it runs no
 * command for us. The kernel would keep that back for 40 ms, in which a program with several
 * messages under way stands still. That of the sessions inside this one ends at gateways: there
 * it is ssh_channel_hurry that helps. */
static ssize_t receive_first(libssh2_socket_t fd, void *bytes, size_t size, int flags,
                             void **abstract)
{
    ssize_t n = recv(fd, bytes, size, flags);
    int on = 1;

    if (n < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on)); /* for now, not for good */
    return heard(*abstract, n);
}

/* Before 1.11.1, which Debian 13 has, libssh2 takes a function as data. */
static void set_callback(LIBSSH2_SESSION *session, int which, void (*function)(void))
{
#if LIBSSH2_VERSION_NUM >= 0x010b01
    libssh2_session_callback_set2(session, which, function);
#else
    void *data;

    memcpy(&data, &function, sizeof(data));
    libssh2_session_callback_set(session, which, data);
#endif
}

static int new_session(struct ssh_link *link, struct cw_err *err)
{
    bool before = link->number > 0;

    link->session = libssh2_session_init_ex(NULL, NULL, NULL, link);
    if (!link->session)
        return cw_err_set(err, CW_ENOMEM, "no memory for a session with gateway %s",
                          ssh_link_hop(link)->host);
    libssh2_session_set_blocking(link->session, 0);
    if (before)
        set_callback(link->session, LIBSSH2_CALLBACK_SEND, (void (*)(void))send_through);
    set_callback(link->session, LIBSSH2_CALLBACK_RECV,
                 (void (*)(void))(before ? receive_through : receive_first));
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (libssh2_session_method_pref(link->session, methods[i].method, methods[i].names) != 0)
            return ssh_link_fail(link, CW_EPROTO, "choosing algorithms", err);
    return ssh_host_key_prefer(link, err);
}

static int shake_hands(struct ssh_link *link, struct cw_err *err)
{
    int result;

    while ((result = libssh2_session_handshake(link->session, link->chain->fd)) ==
               LIBSSH2_ERROR_EAGAIN &&
           ssh_link_await(link))
        ;
    if (result == LIBSSH2_ERROR_KEX_FAILURE || result == LIBSSH2_ERROR_METHOD_NONE)
        return ssh_link_fail(link, CW_EPROTO,
                             "agreeing on algorithms (it may offer none but old, weak ones, or no "
                             "host key of ed25519 or ecdsa)",
                             err);
    link->chain->dropped =
        result == LIBSSH2_ERROR_BANNER_RECV || result == LIBSSH2_ERROR_SOCKET_DISCONNECT;
    return result == 0 ? CW_OK : ssh_link_fail(link, CW_ESYS, "the handshake", err);
}

/* --- the chain --- */

/* What is not acknowledged in time breaks the connection. */
static int connect_first(struct ssh_chain *c, struct cw_err *err)
{
    const struct ssh_hop *hop = &c->way->hop[0];
    unsigned silence = SSH_SILENCE_MS;

    c->fd = ssh_connect(hop->host, hop->port, c->until_ns, err);
    if (c->fd < 0)
        return cw_err_wrap(err, "gateway %s", hop->host);
    setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof(silence));
    return CW_OK;
}

static int open_link(struct ssh_link *link, struct cw_err *err)
{
    const struct ssh_way *way = link->chain->way;
    const struct ssh_hop *next = &way->hop[link->number + 1];

    if (new_session(link, err) < 0 || shake_hands(link, err) < 0 ||
        ssh_host_key_check(link, err) < 0 || ssh_login(link, err) < 0)
        return err->code;
    if (link->number > 0)
        ssh_channel_hurry(link);
    return link->number + 1 == way->hops ? CW_OK
                                         : ssh_channel_forward(link, next->host, next->port, err);
}

static int open_once(struct ssh_chain *c, struct cw_err *err)
{
    c->dropped = false;
    for (uint32_t i = 0; i < c->way->hops; i++)
        c->link[i] = (struct ssh_link){.chain = c, .number = i};
    err->code = CW_OK;
    if (connect_first(c, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < c->way->hops; i++)
        if (open_link(&c->link[i], err) < 0)
            return err->code;
    return CW_OK;
}

/* sshd drops some of many connections that come at once (sshd_config(5), MaxStartups): they come
 * again at other times. False: there is no time for that. */
static bool pause_dropped(const struct ssh_chain *c, uint32_t drops)
{
    uint32_t pause_ms = SSH_DROP_PAUSE_MS << drops;

    pause_ms += randombytes_uniform(pause_ms);
    if (cw_clock_ns() + pause_ms * NS_IN_MS > c->until_ns)
        return false;
    poll(NULL, 0, (int)pause_ms);
    return true;
}

int ssh_chain_open(struct ssh_chain *c, const struct ssh_address *address,
                   const struct ssh_way *way, const char *dir, uint32_t time_ms, struct cw_err *err)
{
    *c = (struct ssh_chain){.address = address, .way = way, .dir = dir, .fd = -1};
    c->until_ns = cw_clock_ns() + time_ms * NS_IN_MS;
    for (uint32_t drops = 0; open_once(c, err) < 0; drops++) {
        if (!c->dropped || drops == SSH_DROPS_MAX || !pause_dropped(c, drops))
            return err->code;
        ssh_chain_close(c);
    }
    return CW_OK;
}

/* Without a word to the other sides: they see the connection end. */
void ssh_chain_close(struct ssh_chain *c)
{
    if (c->fd >= 0)
        shutdown(c->fd, SHUT_RDWR);
    for (uint32_t i = c->way->hops; i-- > 0; c->link[i].session = NULL)
        if (c->link[i].session)
            libssh2_session_free(c->link[i].session);
    cw_close(&c->fd);
}

/* libssh2 would say goodbye on the connection, so it gets another one, which leads nowhere. */
void ssh_chain_leave(struct ssh_chain *c)
{
    int nowhere = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    dup2(nowhere, c->fd);
    close(nowhere);
    ssh_chain_close(c);
}

struct ssh_link *ssh_chain_last(struct ssh_chain *c)
{
    return &c->link[c->way->hops - 1];
}

/* What acknowledges bytes is the kernel there, which also does it for a sshd that stands still; and
 * of a gateway behind another one no kernel tells. libssh2 keeps each answer, so few are asked for.
 */
static int ask(struct ssh_link *link, int *next_s, struct cw_err *err)
{
    uint64_t now_ns = cw_clock_ns();
    bool is_silent = now_ns - link->heard_ns >= SSH_ASK_MS * NS_IN_MS;

    if (is_silent && link->asked_ns == 0)
        link->asked_ns = now_ns;
    if (is_silent && now_ns - link->asked_ns >= SSH_ANSWER_MS * NS_IN_MS)
        return cw_err_set(err, CW_ECLOSED,
                          "gateway %s: the tunnel to a relay: no answer for %u s; see whether its "
                          "sshd stands still, or the way there is cut",
                          ssh_link_hop(link)->host, (SSH_ASK_MS + SSH_ANSWER_MS) / 1000);
    libssh2_keepalive_config(link->session, is_silent, SSH_KEEPALIVE_S);
    if (!ssh_link_is_sending(link))
        libssh2_keepalive_send(link->session, next_s);
    return CW_OK;
}

int ssh_chain_keep_alive(struct ssh_chain *c, struct cw_err *err)
{
    int least_s = SSH_KEEPALIVE_S, next_s;

    for (uint32_t i = 0; i < c->way->hops; i++) {
        next_s = SSH_KEEPALIVE_S;
        if (ask(&c->link[i], &next_s, err) < 0)
            return err->code;
        least_s = next_s < least_s ? next_s : least_s;
    }
    return least_s * 1000;
}
