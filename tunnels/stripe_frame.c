#include "tunnels/stripe_frame.h"

#include <string.h>

#define MAGIC "CWSTRIPE"

_Static_assert(sizeof(struct stripe_greeting) == STRIPE_GREETING_BYTES &&
                   sizeof(struct stripe_answer) == STRIPE_ANSWER_BYTES &&
                   sizeof(struct stripe_header) == STRIPE_HEADER_BYTES,
               "they are sent as they stand");

void stripe_greeting_put(uint8_t bytes[STRIPE_GREETING_BYTES], const struct stripe_greeting *g)
{
    struct stripe_greeting said = *g;

    memcpy(said.magic, MAGIC, sizeof(said.magic));
    said.version = STRIPE_VERSION;
    memcpy(bytes, &said, sizeof(said));
}

/* Letters that an address may have in it: SSH_HOST_MAX says no more of them than this. */
static bool is_host(const char host[STRIPE_HOST_BYTES])
{
    size_t size = strnlen(host, STRIPE_HOST_BYTES);

    for (size_t i = 0; i < size; i++)
        if (host[i] <= ' ' || host[i] > '~' || host[i] == '[' || host[i] == ']')
            return false;
    return size > 0 && size < STRIPE_HOST_BYTES;
}

static bool is_whole(const struct stripe_greeting *g)
{
    return g->kind == STRIPE_FIRST ? is_host(g->host) && g->port > 0 : g->kind == STRIPE_JOIN;
}

int stripe_greeting_get(const uint8_t bytes[STRIPE_GREETING_BYTES], struct stripe_greeting *g,
                        struct cw_err *err)
{
    memcpy(g, bytes, sizeof(*g));
    if (memcmp(g->magic, MAGIC, sizeof(g->magic)) != 0)
        return cw_err_set(err, CW_EPROTO, "no greeting of a tunnel came");
    if (g->version != STRIPE_VERSION)
        return cw_err_set(err, CW_EPROTO, "it speaks version %u of striped tunnels, we speak %u",
                          g->version, STRIPE_VERSION);
    return is_whole(g) ? CW_OK
                       : cw_err_set(err, CW_EPROTO, "a greeting of a tunnel without sense came");
}

size_t stripe_answer_put(uint8_t bytes[sizeof(STRIPE_ANSWER_MARK) + STRIPE_ANSWER_BYTES],
                         const struct stripe_answer *a)
{
    const size_t mark = sizeof(STRIPE_ANSWER_MARK) - 1;

    memcpy(bytes, STRIPE_ANSWER_MARK, mark);
    memcpy(bytes + mark, a, sizeof(*a));
    return mark + sizeof(*a);
}

void stripe_answer_get(const uint8_t bytes[STRIPE_ANSWER_BYTES], struct stripe_answer *a)
{
    memcpy(a, bytes, sizeof(*a));
    a->text[sizeof(a->text) - 1] = '\0';
    for (char *at = a->text; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = ' ';
}

bool stripe_header_get(const uint8_t bytes[STRIPE_HEADER_BYTES], struct stripe_header *header)
{
    memcpy(header, bytes, sizeof(*header));
    return header->size <= STRIPE_CHUNK_BYTES_MAX && header->stored <= header->size &&
           (header->stored > 0 || header->size == 0);
}
