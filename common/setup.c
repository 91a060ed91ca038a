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
    cw_put_u64(&w, v->fault_event);
    cw_put_bytes(&w, v->address, sizeof(v->address));
    if (v->early_size)
        cw_put_bytes(&w, v->early, v->early_size);
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
    v->fault_event = cw_get_u64(&r);
    cw_get_copy(&r, v->address, sizeof(v->address));
    v->early_size = (uint32_t)r.left;
    v->early = cw_get_bytes(&r, r.left);
    return known && cw_reader_end(&r) && v->early_size <= CW_EARLY_MAX &&
           memchr(v->address, '\0', sizeof(v->address)) && v->rank < v->ranks &&
           v->ranks <= CW_RANKS_MAX;
}

size_t cw_report_put(uint8_t *to, uint32_t kind, const void *bytes, size_t size)
{
    struct cw_writer w = cw_writer(to, CW_SETUP_MAX);

    cw_put_u32(&w, kind);
    cw_put_u32(&w, 0);
    cw_put_bytes(&w, bytes, size);
    return w.used;
}

bool cw_report_get(const uint8_t *from, size_t size, struct cw_report *v)
{
    struct cw_reader r = cw_reader(from, size);

    v->kind = cw_get_u32(&r);
    cw_get_u32(&r);
    v->early_size = r.left;
    v->early = from + CW_REPORT_HEADER;
    v->text[0] = '\0';
    if (size < CW_REPORT_HEADER)
        return false;
    if (v->kind != CW_REPORT_EARLY)
        cw_get_text(&r, v->text, CW_TEXT_MAX);
    return v->kind == CW_REPORT_EARLY ? size - CW_REPORT_HEADER <= CW_EARLY_MAX : cw_reader_end(&r);
}
