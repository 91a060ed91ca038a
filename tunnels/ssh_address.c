#include "tunnels/ssh_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define USER_LETTERS LETTERS "._-"
#define PORT_DIGITS 5u

/* Into `max` + 1 bytes: `size` bytes of these letters, and at least one. */
static bool take(char *to, size_t max, const char *text, size_t size, const char *letters)
{
    if (size == 0 || size > max)
        return false;
    memcpy(to, text, size);
    to[size] = '\0';
    return to[0] != '-' && strlen(to) == size && strspn(to, letters) == size;
}

static bool take_port(uint16_t *port, const char *text, size_t size)
{
    char digits[PORT_DIGITS + 1];
    long value;

    if (!take(digits, PORT_DIGITS, text, size, "0123456789"))
        return false;
    value = atol(digits);
    *port = (uint16_t)value;
    return value > 0 && value <= UINT16_MAX;
}

/* "HOST", "HOST:PORT" or "[ADDRESS]:PORT"; *port stays as it is without one. */
static bool take_place(char host[SSH_HOST_MAX + 1], uint16_t *port, const char *text, size_t size)
{
    bool bracketed = size > 0 && text[0] == '[';
    const char *end = text + size, *at = text + bracketed;
    const char *stop = memchr(at, bracketed ? ']' : ':', (size_t)(end - at));
    const char *rest = stop ? stop + bracketed : end;

    if (bracketed && !stop)
        return false;
    if (!take(host, SSH_HOST_MAX, at, (size_t)((stop ? stop : end) - at),
              bracketed ? LETTERS ".:%_-" : LETTERS "._-"))
        return false;
    if (rest == end)
        return true;
    return *rest == ':' && take_port(port, rest + 1, (size_t)(end - rest) - 1);
}

static bool take_hop(struct ssh_hop *hop, const char *text, size_t size)
{
    const char *at = memchr(text, '@', size);
    size_t user = at ? (size_t)(at - text) : 0;

    hop->port = SSH_PORT;
    if (at && !take(hop->user, SSH_USER_MAX, text, user, USER_LETTERS))
        return false;
    if (at)
        user++;
    return take_place(hop->host, &hop->port, text + user, size - user);
}

int ssh_hop_parse(struct ssh_hop *hop, const char *text, struct cw_err *err)
{
    *hop = (struct ssh_hop){0};
    if (take_hop(hop, text, strlen(text)))
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "gateway '%.300s': expected [USER@]HOST[:PORT]", text);
}

bool ssh_is_user(const char *text)
{
    char user[SSH_USER_MAX + 1];

    return take(user, SSH_USER_MAX, text, strlen(text), USER_LETTERS);
}

static bool take_way(struct ssh_way *way, const char *text, const char *end)
{
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;

        if (way->hops == SSH_HOPS_MAX ||
            !take_hop(&way->hop[way->hops], text, (size_t)(stop - text)))
            return false;
        way->hops++;
        if (!comma)
            return true;
        text = comma + 1;
    }
}

static bool take_ways(struct ssh_address *address, const char *text, const char *end)
{
    for (;;) {
        const char *plus = memchr(text, '+', (size_t)(end - text));

        if (address->ways == SSH_WAYS_MAX ||
            !take_way(&address->way[address->ways], text, plus ? plus : end))
            return false;
        address->ways++;
        if (!plus)
            return true;
        text = plus + 1;
    }
}

const char *ssh_address_inner(const char *text)
{
    const char *slash = strchr(text, '/');

    return strncmp(text, SSH_SCHEME, strlen(SSH_SCHEME)) == 0 && slash ? slash + 1 : NULL;
}

int ssh_address_parse(struct ssh_address *address, const char *text, struct cw_err *err)
{
    const char *inner = ssh_address_inner(text);

    *address = (struct ssh_address){0};
    if (inner && take_ways(address, text + strlen(SSH_SCHEME), inner - 1) &&
        take_place(address->host, &address->port, inner, strlen(inner)) && address->port)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL,
                      "address '%.300s': expected ssh:[USER@]GATEWAY[:PORT]/HOST:PORT, or up to %u "
                      "gateways with commas between them, each reached from the one before; after "
                      "a '+' another way, of at most %u",
                      text, SSH_HOPS_MAX, SSH_WAYS_MAX);
}
