#include "tunnels/stripe_frame.h"

#include <string.h>

#define MAGIC "CWSTRIPE"
#define MAGIC_BYTES 8u

void stripe_greeting_put(uint8_t bytes[STRIPE_GREETING_BYTES], const struct stripe_greeting *g)
{
    struct cw_writer w = cw_writer(bytes, STRIPE_GREETING_BYTES);
    char host[STRIPE_HOST_BYTES] = "";

    memcpy(host, g->host, strnlen(g->host, sizeof(host) - 1));
    cw_put_bytes(&w, MAGIC, MAGIC_BYTES);
    cw_put_u32(&w, STRIPE_VERSION);
    cw_put_u32(&w, g->kind);
    cw_put_bytes(&w, g->name, sizeof(g->name));
    cw_put_bytes(&w, g->token, sizeof(g->token));
    cw_put_u16(&w, g->port);
    cw_put_u16(&w, 0);
    cw_put_bytes(&w, host, sizeof(host));
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
    struct cw_reader r = cw_reader(bytes, STRIPE_GREETING_BYTES);
    const uint8_t *magic = cw_get_bytes(&r, MAGIC_BYTES);
    uint32_t version = cw_get_u32(&r);

    *g = (struct stripe_greeting){.kind = cw_get_u32(&r)};
    cw_get_copy(&r, g->name, sizeof(g->name));
    cw_get_copy(&r, g->token, sizeof(g->token));
    g->port = cw_get_u16(&r);
    cw_get_u16(&r);
    cw_get_copy(&r, g->host, sizeof(g->host));
    if (memcmp(magic, MAGIC, MAGIC_BYTES) != 0)
        return cw_err_set(err, CW_EPROTO, "no greeting of a tunnel came");
    if (version != STRIPE_VERSION)
        return cw_err_set(err, CW_EPROTO, "it speaks version %u of striped tunnels, we speak %u",
                          version, STRIPE_VERSION);
    return cw_reader_end(&r) && is_whole(g)
               ? CW_OK
               : cw_err_set(err, CW_EPROTO, "a greeting of a tunnel without sense came");
}

size_t stripe_answer_put(uint8_t bytes[sizeof(STRIPE_ANSWER_MARK) + STRIPE_ANSWER_BYTES],
                         const struct stripe_answer *a)
{
    struct cw_writer w = cw_writer(bytes, sizeof(STRIPE_ANSWER_MARK) - 1 + STRIPE_ANSWER_BYTES);
    char text[STRIPE_ANSWER_TEXT_BYTES] = "";

    memcpy(text, a->text, strnlen(a->text, sizeof(text) - 1));
    cw_put_bytes(&w, STRIPE_ANSWER_MARK, sizeof(STRIPE_ANSWER_MARK) - 1);
    cw_put_u32(&w, a->version);
    cw_put_u32(&w, a->joined);
    cw_put_bytes(&w, text, sizeof(text));
    return w.used;
}

void stripe_answer_get(const uint8_t bytes[STRIPE_ANSWER_BYTES], struct stripe_answer *a)
{
    struct cw_reader r = cw_reader(bytes, STRIPE_ANSWER_BYTES);

    a->version = cw_get_u32(&r);
    a->joined = cw_get_u32(&r) == 1;
    cw_get_copy(&r, a->text, sizeof(a->text));
    a->text[sizeof(a->text) - 1] = '\0';
    for (char *at = a->text; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = ' ';
}

void stripe_header_put(uint8_t bytes[STRIPE_HEADER_BYTES], const struct stripe_header *header)
{
    struct cw_writer w = cw_writer(bytes, STRIPE_HEADER_BYTES);

    cw_put_u64(&w, header->number);
    cw_put_u32(&w, header->size);
    cw_put_u32(&w, header->stored);
}

bool stripe_header_get(const uint8_t bytes[STRIPE_HEADER_BYTES], struct stripe_header *header)
{
    struct cw_reader r = cw_reader(bytes, STRIPE_HEADER_BYTES);

    header->number = cw_get_u64(&r);
    header->size = cw_get_u32(&r);
    header->stored = cw_get_u32(&r);
    return header->size <= STRIPE_CHUNK_BYTES_MAX && header->stored <= header->size &&
           (header->stored > 0 || header->size == 0);
}
