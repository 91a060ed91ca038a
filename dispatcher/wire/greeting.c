#include "dispatcher/wire/greeting.h"

#include <string.h>

/* --- frames --- */

static void put_text(struct cw_writer *w, const char *text)
{
    size_t size = strnlen(text, GREETING_TEXT_MAX);

    cw_put_u16(w, (uint16_t)size);
    cw_put_bytes(w, text, size);
}

static void get_text(struct cw_reader *r, char text[GREETING_TEXT_MAX + 1])
{
    size_t size = cw_get_u16(r);

    text[0] = '\0';
    if (size > GREETING_TEXT_MAX)
        r->bad = true;
    if (r->bad)
        return;
    cw_get_copy(r, text, size);
    text[size] = '\0';
    for (size_t i = 0; i < size; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
}

static struct cw_writer begin(uint8_t *to, uint32_t type)
{
    struct cw_writer w = cw_writer(to, GREETING_HEADER + GREETING_FRAME_MAX);

    cw_put_u32(&w, 0);
    cw_put_u32(&w, type);
    return w;
}

static size_t end(const struct cw_writer *w)
{
    struct cw_writer head = cw_writer(w->start, GREETING_HEADER);

    cw_put_u32(&head, (uint32_t)(w->used - GREETING_HEADER));
    return w->used;
}

static size_t put_open(uint8_t *to, uint32_t type, const struct greeting_open *v)
{
    struct cw_writer w = begin(to, type);

    cw_put_u32(&w, v->protocol);
    put_text(&w, v->version);
    cw_put_bytes(&w, v->job, sizeof(v->job));
    cw_put_bytes(&w, v->key, sizeof(v->key));
    cw_put_bytes(&w, v->node_key, sizeof(v->node_key));
    cw_put_u32(&w, v->ranks);
    cw_put_u64(&w, v->timeout_ns);
    cw_put_u64(&w, v->orphan_ns);
    cw_put_u64(&w, v->alive_period_ns);
    cw_put_u64(&w, v->stack_bytes);
    return end(&w);
}

size_t greeting_put_open(uint8_t *to, const struct greeting_open *v)
{
    return put_open(to, GREETING_OPEN, v);
}

size_t greeting_put_take(uint8_t *to, const struct greeting_open *v)
{
    return put_open(to, GREETING_TAKE, v);
}

size_t greeting_put_look(uint8_t *to)
{
    struct cw_writer w = begin(to, GREETING_LOOK);

    return end(&w);
}

bool greeting_get_open(const uint8_t *body, size_t size, struct greeting_open *v)
{
    struct cw_reader r = cw_reader(body, size);

    *v = (struct greeting_open){.protocol = cw_get_u32(&r)};
    get_text(&r, v->version);
    if (v->protocol != GREETING_PROTOCOL)
        return !r.bad;
    cw_get_copy(&r, v->job, sizeof(v->job));
    cw_get_copy(&r, v->key, sizeof(v->key));
    cw_get_copy(&r, v->node_key, sizeof(v->node_key));
    v->ranks = cw_get_u32(&r);
    v->timeout_ns = cw_get_u64(&r);
    v->orphan_ns = cw_get_u64(&r);
    v->alive_period_ns = cw_get_u64(&r);
    v->stack_bytes = cw_get_u64(&r);
    return cw_reader_end(&r) && v->ranks <= CW_RANKS_MAX && v->timeout_ns > 0 &&
           v->orphan_ns <= GREETING_ORPHAN_MAX_NS && v->alive_period_ns > 0;
}

size_t greeting_put_attach(uint8_t *to, const struct greeting_attach *v)
{
    struct cw_writer w = begin(to, GREETING_ATTACH);

    cw_put_u32(&w, v->protocol);
    cw_put_bytes(&w, v->key, sizeof(v->key));
    cw_put_u64(&w, v->received);
    return end(&w);
}

bool greeting_get_attach(const uint8_t *body, size_t size, struct greeting_attach *v)
{
    struct cw_reader r = cw_reader(body, size);

    v->protocol = cw_get_u32(&r);
    cw_get_copy(&r, v->key, sizeof(v->key));
    v->received = cw_get_u64(&r);
    return cw_reader_end(&r) && v->protocol == GREETING_PROTOCOL;
}

size_t greeting_put_hello(uint8_t *to, const struct greeting_hello *v)
{
    struct cw_writer w = begin(to, GREETING_HELLO);

    cw_put_u32(&w, v->protocol);
    put_text(&w, v->version);
    put_text(&w, v->dir);
    put_text(&w, v->host);
    cw_put_u32(&w, v->pid);
    cw_put_u32(&w, v->cores);
    cw_put_u32(&w, v->limited);
    cw_put_u64(&w, v->memory_bytes);
    put_text(&w, v->peer);
    put_text(&w, v->own);
    put_text(&w, v->system);
    return end(&w);
}

bool greeting_get_hello(const uint8_t *body, size_t size, struct greeting_hello *v)
{
    struct cw_reader r = cw_reader(body, size);

    *v = (struct greeting_hello){.protocol = cw_get_u32(&r)};
    get_text(&r, v->version);
    if (v->protocol != GREETING_PROTOCOL)
        return !r.bad;
    get_text(&r, v->dir);
    get_text(&r, v->host);
    v->pid = cw_get_u32(&r);
    v->cores = cw_get_u32(&r);
    v->limited = cw_get_u32(&r);
    v->memory_bytes = cw_get_u64(&r);
    get_text(&r, v->peer);
    get_text(&r, v->own);
    get_text(&r, v->system);
    return cw_reader_end(&r) && v->limited <= 1;
}

size_t greeting_put_attached(uint8_t *to, const struct greeting_attached *v)
{
    struct cw_writer w = begin(to, GREETING_ATTACHED);

    cw_put_u64(&w, v->received);
    cw_put_u64(&w, v->from);
    return end(&w);
}

bool greeting_get_attached(const uint8_t *body, size_t size, struct greeting_attached *v)
{
    struct cw_reader r = cw_reader(body, size);

    v->received = cw_get_u64(&r);
    v->from = cw_get_u64(&r);
    return cw_reader_end(&r);
}

size_t greeting_put_refused(uint8_t *to, const char *why)
{
    struct cw_writer w = begin(to, GREETING_REFUSED);

    put_text(&w, why);
    return end(&w);
}

bool greeting_get_refused(const uint8_t *body, size_t size, char why[GREETING_TEXT_MAX + 1])
{
    struct cw_reader r = cw_reader(body, size);

    get_text(&r, why);
    return cw_reader_end(&r);
}

/* --- what comes --- */

bool greeting_is_ours(const struct greeting_hello *v)
{
    return v->protocol == GREETING_PROTOCOL && strcmp(v->version, CAUSEWAY_VERSION) == 0;
}

void greeting_init(struct greeting *g, bool magic)
{
    *g = (struct greeting){.magic = magic};
    marker_init(&g->marker, GREETING_MAGIC);
}

long greeting_take(struct greeting *g, const uint8_t *bytes, size_t size, enum greeting_type *type,
                   size_t *body_size, struct cw_err *err)
{
    size_t at = 0;

    *type = GREETING_NONE;
    while (g->magic && at < size) {
        g->magic = !marker_take(&g->marker, bytes[at++]);
        if (g->marker.noise > MARKER_NOISE_MAX)
            return cw_err_set(err, CW_EPROTO, "more than %u bytes came, none of them of Causeway",
                              MARKER_NOISE_MAX);
    }
    while (!g->magic && at < size) {
        struct cw_reader r;
        uint32_t length;

        if (g->used == sizeof(g->bytes))
            return cw_err_set(err, CW_EPROTO, "a greeting that is too large");
        g->bytes[g->used++] = bytes[at++];
        if (g->used < GREETING_HEADER)
            continue;
        r = cw_reader(g->bytes, GREETING_HEADER);
        length = cw_get_u32(&r);
        if (length > GREETING_FRAME_MAX)
            return cw_err_set(err, CW_EPROTO, "a greeting that is too large");
        if (g->used < GREETING_HEADER + length)
            continue;
        *type = cw_get_u32(&r);
        *body_size = length;
        g->used = 0;
        return (long)at;
    }
    return (long)at;
}
