#include "dispatcher/doctor/tcp_probe.h"
#include "common/clock.h"
#include "common/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull

/* --- the one who listens --- */

/* There is room for a few bytes. */
static void *serve(void *server)
{
    const struct tcp_probe_server *s = server;
    int fd;

    while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno == EINTR ||
           errno == ECONNABORTED)
        if (fd >= 0) {
            send(fd, s->token, TCP_PROBE_TOKEN, MSG_NOSIGNAL | MSG_DONTWAIT);
            close(fd);
        }
    return NULL;
}

static int listen_anywhere(uint16_t *port, struct cw_err *err)
{
    static const char *const places[] = {"tcp:[::]:0", "tcp:0.0.0.0:0"};
    struct cw_address address;
    int fd = CW_ESYS;

    for (size_t i = 0; i < 2 && fd < 0; i++)
        if ((fd = cw_address_parse(&address, places[i], err)) == CW_OK)
            fd = cw_listen(&address, err);
    if (fd < 0)
        return fd;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    *port = (uint16_t)atoi(strrchr(address.text, ':') + 1);
    return fd;
}

int tcp_probe_serve(struct tcp_probe_server *s, const uint8_t token[TCP_PROBE_TOKEN],
                    struct cw_err *err)
{
    uint16_t port;
    int failed;

    s->port = 0;
    s->listener = listen_anywhere(&port, err);
    if (s->listener < 0)
        return err->code;
    memcpy(s->token, token, TCP_PROBE_TOKEN);
    failed = cw_thread_start(&s->thread, 0, serve, s);
    if (failed) {
        close(s->listener);
        return cw_err_set(err, CW_ESYS, "starting a thread: %s", strerror(failed));
    }
    s->port = port;
    return CW_OK;
}

void tcp_probe_end(struct tcp_probe_server *s)
{
    if (s->port) {
        shutdown(s->listener, SHUT_RDWR);
        pthread_join(s->thread, NULL);
        close(s->listener);
    }
    s->port = 0;
}

/* --- the one who connects --- */

/* Returns whether a token came in time; errno is 0 when the other side has closed. */
static bool receive(int fd, uint8_t token[TCP_PROBE_TOKEN])
{
    uint64_t until_ns = cw_clock_ns() + TCP_PROBE_ANSWER_MS * NS_IN_MS, now_ns;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t used = 0;

    while (used < TCP_PROBE_TOKEN) {
        ssize_t n;

        errno = ETIMEDOUT;
        now_ns = cw_clock_ns();
        if (now_ns >= until_ns || poll(&p, 1, (int)((until_ns - now_ns) / NS_IN_MS) + 1) <= 0)
            return false;
        n = recv(fd, token + used, TCP_PROBE_TOKEN - used, MSG_DONTWAIT);
        if (n == 0)
            errno = 0;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        used += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static int ask(int fd, const uint8_t token[TCP_PROBE_TOKEN], struct cw_err *err)
{
    uint8_t told[TCP_PROBE_TOKEN];
    bool came = receive(fd, told);

    if (came && sodium_memcmp(told, token, TCP_PROBE_TOKEN) == 0)
        return CW_OK;
    if (!came && errno == ETIMEDOUT)
        return cw_err_set(err, CW_ETIME, "it connects, but no answer comes within %d ms",
                          TCP_PROBE_ANSWER_MS);
    return cw_err_set(err, CW_ECLOSED, "it connects, but " TCP_PROBE_OTHER "%s%s", came ? "" : ": ",
                      came    ? ""
                      : errno ? strerror(errno)
                              : "the connection was closed");
}

int tcp_probe_ask(const char *text, uint32_t time_ms, const uint8_t token[TCP_PROBE_TOKEN],
                  struct cw_err *err)
{
    struct cw_address address;
    int fd;

    err->code = CW_OK;
    if (cw_address_parse(&address, text, err) < 0)
        return err->code;
    fd = cw_connect_within(&address, time_ms, err);
    if (fd < 0)
        return fd;
    ask(fd, token, err);
    close(fd);
    return err->code;
}

void tcp_probe_address(const char *host, uint16_t port, char text[CW_ADDRESS_MAX])
{
    snprintf(text, CW_ADDRESS_MAX, strchr(host, ':') ? "tcp:[%.255s]:%u" : "tcp:%.255s:%u", host,
             port);
}

/* --- hosts that are to do it --- */

json_t *tcp_probe_request(const char *op, const uint8_t token[TCP_PROBE_TOKEN], const char *address)
{
    char digits[2 * TCP_PROBE_TOKEN + 1];

    sodium_bin2hex(digits, sizeof(digits), token, TCP_PROBE_TOKEN);
    return json_pack("{s:s, s:s, s:s}", "op", op, "token", digits, "address", address);
}

bool tcp_probe_token(const json_t *request, uint8_t token[TCP_PROBE_TOKEN])
{
    const char *digits = json_string_value(json_object_get(request, "token"));
    size_t size = 0;

    return digits && strlen(digits) == 2 * TCP_PROBE_TOKEN &&
           sodium_hex2bin(token, TCP_PROBE_TOKEN, digits, strlen(digits), NULL, &size, NULL) == 0 &&
           size == TCP_PROBE_TOKEN;
}
