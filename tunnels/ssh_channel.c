#include "tunnels/ssh_channel.h"
#include "common/clock.h"

#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX (2u * SSH_HOST_MAX)
#define NS_IN_MS 1000000ull

static void put_u32(uint8_t **at, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *(*at)++ = (uint8_t)(value >> shift);
}

static void put_text(uint8_t **at, const char *text)
{
    uint32_t size = (uint32_t)strlen(text);

    put_u32(at, size);
    memcpy(*at, text, size);
    *at += size;
}

/* libssh2_channel_direct_tcpip has a window of its own, which is too small for long ways. */
static bool open_kind(struct ssh_link *link, const char *kind, const uint8_t *message, size_t size)
{
    while (!(link->channel = libssh2_channel_open_ex(link->session, kind, (unsigned)strlen(kind),
                                                     SSH_WINDOW_BYTES, SSH_PACKET_BYTES,
                                                     (const char *)message, (unsigned)size)) &&
           libssh2_session_last_errno(link->session) == LIBSSH2_ERROR_EAGAIN &&
           ssh_link_await(link))
        ;
    return link->channel;
}

int ssh_channel_forward(struct ssh_link *link, const char *host, uint16_t port, struct cw_err *err)
{
    uint8_t message[MESSAGE_MAX], *at = message;
    char what[SSH_HOST_MAX + 64];

    put_text(&at, host);
    put_u32(&at, port);
    put_text(&at, "127.0.0.1"); /* who asks for it: of no interest */
    put_u32(&at, SSH_PORT);
    if (open_kind(link, "direct-tcpip", message, (size_t)(at - message)))
        return CW_OK;
    snprintf(what, sizeof(what),
             "forwarding to %s port %u (it may be forbidden there, or nobody listens)", host, port);
    return ssh_link_fail(link, CW_ESYS, what, err);
}

int ssh_channel_session(struct ssh_link *link, struct cw_err *err)
{
    return open_kind(link, "session", NULL, 0)
               ? CW_OK
               : ssh_link_fail(link, CW_ESYS, "opening a session for a command", err);
}

/* It refuses a variable that it does not know, or takes it: each is an answer. */
static uint64_t round_trip_ns(const struct ssh_link *link)
{
    uint64_t begin_ns = cw_clock_ns();

    while (libssh2_channel_setenv(link->channel, "CAUSEWAY_TUNNEL", "1") == LIBSSH2_ERROR_EAGAIN &&
           ssh_link_await(link))
        ;
    return cw_clock_ns() - begin_ns;
}

uint64_t ssh_channel_round_trip_ns(const struct ssh_link *link, uint64_t enough_ns)
{
    uint64_t shortest_ns = UINT64_MAX, ns;

    for (uint32_t i = 0; i < SSH_ROUND_TRIPS && shortest_ns >= enough_ns; i++) {
        ns = round_trip_ns(link);
        shortest_ns = ns < shortest_ns ? ns : shortest_ns;
    }
    return shortest_ns;
}

int ssh_channel_exec(const struct ssh_link *link, const char *command, struct cw_err *err)
{
    int result;

    while ((result = libssh2_channel_exec(link->channel, command)) == LIBSSH2_ERROR_EAGAIN &&
           ssh_link_await(link))
        ;
    return result == 0 ? CW_OK : ssh_link_fail(link, CW_ESYS, "starting a command", err);
}

void ssh_channel_hurry(struct ssh_link *link)
{
    struct cw_err refused;

    if (ssh_channel_session(link, &refused) < 0)
        return;
    ssh_channel_exec(link, "true", &refused);
    ssh_channel_drop(link);
}

int ssh_channel_put(const struct ssh_link *link, const void *bytes, size_t size, struct cw_err *err)
{
    const char *at = bytes;
    ssize_t n;

    for (size_t put = 0; put<size; put += n> 0 ? (size_t)n : 0) {
        n = libssh2_channel_write(link->channel, at + put, size - put);
        if (n < 0 && (n != LIBSSH2_ERROR_EAGAIN || !ssh_link_await(link)))
            return ssh_link_fail(link, CW_ECLOSED, "greeting a command", err);
    }
    return CW_OK;
}

int ssh_channel_get(const struct ssh_link *link, void *bytes, size_t size, struct cw_err *err)
{
    char *at = bytes;
    ssize_t n;

    for (size_t got = 0; got<size; got += n> 0 ? (size_t)n : 0) {
        n = libssh2_channel_read(link->channel, at + got, size - got);
        if (n == 0 && libssh2_channel_eof(link->channel))
            return cw_err_set(err, CW_ECLOSED, "gateway %s: a command ended early",
                              ssh_link_hop(link)->host);
        if (n <= 0 && ((n && n != LIBSSH2_ERROR_EAGAIN) || !ssh_link_await(link)))
            return ssh_link_fail(link, CW_ECLOSED, "the answer of a command", err);
    }
    return CW_OK;
}

void ssh_channel_drop(struct ssh_link *link)
{
    uint64_t until_ns = link->chain->until_ns;

    link->chain->until_ns = cw_clock_ns() + SSH_DROP_MS * NS_IN_MS;
    while (libssh2_channel_free(link->channel) == LIBSSH2_ERROR_EAGAIN && ssh_link_await(link))
        ;
    link->channel = NULL;
    link->chain->until_ns = until_ns;
}
