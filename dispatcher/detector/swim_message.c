#include "dispatcher/detector/swim_message.h"

static void get_update(struct swim_update *u, struct cw_reader *r)
{
    u->member = cw_get_u16(r);
    u->state = cw_get_u8(r);
    u->incarnation = cw_get_u16(r);
    u->accuser = cw_get_u16(r);
}

static bool is_sound(const struct swim_message *m, const struct cw_reader *r, uint32_t n)
{
    bool sound = cw_reader_end(r) && m->target < n;

    for (uint32_t i = 0; i < m->count; i++) {
        const struct swim_update *u = &m->updates[i];

        sound &= u->member < n && u->accuser < n && u->state <= SWIM_DEAD;
    }
    return sound;
}

int swim_message_read(struct swim_message *m, const void *bytes, size_t size, uint32_t n,
                      struct cw_err *err)
{
    struct cw_reader r = cw_reader(bytes, size);
    uint8_t kind = cw_get_u8(&r);

    *m = (struct swim_message){.kind = kind, .seq = cw_get_u16(&r)};
    if (kind < SWIM_PROBE || kind > SWIM_NACK)
        return cw_err_set(err, CW_EPROTO, "a message of a detector of kind %u", kind);
    if (kind == SWIM_REQUEST)
        m->target = cw_get_u16(&r);
    while (r.left > 0 && !r.bad && m->count < SWIM_UPDATES_MAX)
        get_update(&m->updates[m->count++], &r);
    if (is_sound(m, &r, n))
        return CW_OK;
    return cw_err_set(err, CW_EPROTO,
                      "a message of a detector of kind %u with %zu bytes: malformed", kind, size);
}

void swim_message_write(struct cw_writer *w, const struct swim_message *m)
{
    cw_put_u8(w, (uint8_t)m->kind);
    cw_put_u16(w, m->seq);
    if (m->kind == SWIM_REQUEST)
        cw_put_u16(w, m->target);
    for (uint32_t i = 0; i < m->count; i++) {
        cw_put_u16(w, m->updates[i].member);
        cw_put_u8(w, m->updates[i].state);
        cw_put_u16(w, m->updates[i].incarnation);
        cw_put_u16(w, m->updates[i].accuser);
    }
}
