#include "common/setup.h"

#define SETUP_MAGIC 0x50555357u /* "WSUP" */

size_t cw_setup_put(uint8_t *to, const struct cw_setup *v)
{
    struct cw_writer w = cw_writer(to, CW_SETUP_MAX);

    cw_put_u32(&w, SETUP_MAGIC);
    cw_put_u32(&w, CW_PROTOCOL_VERSION);
    cw_put_bytes(&w, v->job, sizeof(v->job));
    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->ranks);
    cw_put_u32(&w, v->incarnation);
    cw_put_bytes(&w, v->key, sizeof(v->key));
    cw_put_u64(&w, v->spin_ns);
    cw_put_bytes(&w, v->address, sizeof(v->address));
    return w.used;
}

bool cw_setup_get(const uint8_t *from, size_t size, struct cw_setup *v)
{
    struct cw_reader r = cw_reader(from, size);
    bool known = cw_get_u32(&r) == SETUP_MAGIC && cw_get_u32(&r) == CW_PROTOCOL_VERSION;

    cw_get_copy(&r, v->job, sizeof(v->job));
    v->rank = cw_get_u32(&r);
    v->ranks = cw_get_u32(&r);
    v->incarnation = cw_get_u32(&r);
    cw_get_copy(&r, v->key, sizeof(v->key));
    v->spin_ns = cw_get_u64(&r);
    cw_get_copy(&r, v->address, sizeof(v->address));
    return known && cw_reader_end(&r) && memchr(v->address, '\0', sizeof(v->address)) &&
           v->rank < v->ranks && v->ranks <= CW_RANKS_MAX;
}

size_t cw_report_put(uint8_t *to, uint32_t kind, const char *text)
{
    return cw_notice_put(to, kind, 0, text);
}

bool cw_report_get(const uint8_t *from, size_t size, struct cw_report *v)
{
    struct cw_notice_body body;

    if (!cw_notice_get(from, size, &body))
        return false;
    v->kind = body.code;
    memcpy(v->text, body.text, sizeof(v->text));
    return true;
}
