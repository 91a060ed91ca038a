#include "common/frame.h"

#include <ctype.h>

/* The parts of each type after the header: `fixed` bytes always, and up to `variable` more. */
struct frame_shape {
    const char *name;
    uint32_t fixed;
    uint32_t variable;
};

static const struct frame_shape shapes[CW_FRAME_TYPES] = {
#define SHAPE(name, number, fixed, more) [number] = {#name, fixed, more},
    CW_FRAMES(SHAPE)
#undef SHAPE
};

_Static_assert(CW_STATS_SIZE <= CW_FRAME_BODY_MAX && CW_HELLO_SIZE <= CW_FRAME_BODY_MAX &&
                   CW_NOTICE_SIZE + CW_TEXT_MAX <= CW_FRAME_BODY_MAX,
               "every fixed body fits its bound");

uint32_t cw_frame_fixed(uint8_t type)
{
    return type < CW_FRAME_TYPES ? shapes[type].fixed : 0;
}

const char *cw_frame_name(uint8_t type)
{
    return type < CW_FRAME_TYPES && shapes[type].name ? shapes[type].name : "?";
}

int cw_frame_check(const uint8_t *bytes, struct cw_header *header, struct cw_err *err)
{
    struct cw_reader r = cw_reader(bytes, CW_FRAME_HEADER);
    uint32_t type_word;
    const struct frame_shape *shape;

    header->length = cw_get_u32(&r);
    type_word = cw_get_u32(&r);
    header->seq = cw_get_u32(&r);
    header->ack = cw_get_u32(&r);
    if (type_word >= CW_FRAME_TYPES || !shapes[type_word].name)
        return cw_err_set(err, CW_EPROTO, "frame of unknown type %u", type_word);
    header->type = (uint8_t)type_word;
    shape = &shapes[type_word];
    if (header->length < shape->fixed || header->length - shape->fixed > shape->variable)
        return cw_err_set(err, CW_EPROTO, "%s frame of %u bytes, expected %u to %u", shape->name,
                          header->length, shape->fixed, shape->fixed + shape->variable);
    return CW_OK;
}

int cw_frame_accept(struct cw_session *s, const uint8_t *bytes, struct cw_header *header,
                    struct cw_err *err)
{
    if (cw_frame_check(bytes, header, err) < 0)
        return err->code;
    if (header->seq != s->in_seq + 1)
        return cw_err_set(err, CW_EPROTO, "%s frame numbered %u, expected %u",
                          cw_frame_name(header->type), header->seq, s->in_seq + 1);
    if (header->ack - s->out_acked > s->out_seq - s->out_acked)
        return cw_err_set(err, CW_EPROTO, "%s frame acknowledges %u, last sent was %u",
                          cw_frame_name(header->type), header->ack, s->out_seq);
    s->in_seq = header->seq;
    s->out_acked = header->ack;
    return CW_OK;
}

_Static_assert(offsetof(struct cw_link, address) == CW_LINK_SIZE &&
                   offsetof(struct cw_notice_body, text) == CW_NOTICE_SIZE,
               "a text follows what is fixed");

size_t cw_link_put(uint8_t *to, const struct cw_link *v)
{
    size_t size = CW_LINK_SIZE + strnlen(v->address, CW_LINK_ADDRESS_MAX);

    memcpy(to, v, size);
    return size;
}

bool cw_link_get(const uint8_t *from, size_t size, struct cw_link *v)
{
    struct cw_reader r = cw_reader(from, size);

    cw_get_copy(&r, v, CW_LINK_SIZE);
    cw_get_text(&r, v->address, CW_LINK_ADDRESS_MAX);
    return cw_reader_end(&r) && v->address[0];
}

size_t cw_notice_put(uint8_t *to, const struct cw_notice_body *v)
{
    size_t size = CW_NOTICE_SIZE + strnlen(v->text, CW_TEXT_MAX);

    memcpy(to, v, size);
    return size;
}

bool cw_notice_get(const uint8_t *from, size_t size, struct cw_notice_body *v)
{
    struct cw_reader r = cw_reader(from, size);

    cw_get_copy(&r, v, CW_NOTICE_SIZE);
    cw_get_text(&r, v->text, CW_TEXT_MAX);
    return cw_reader_end(&r);
}

void cw_get_text(struct cw_reader *r, char *text, size_t max)
{
    size_t size = r->left < max ? r->left : max;

    cw_get_copy(r, text, size);
    text[size] = '\0';
    for (size_t i = 0; i < size; i++)
        if (!isprint((unsigned char)text[i]))
            text[i] = '?';
}
