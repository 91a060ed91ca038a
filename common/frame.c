#include "common/frame.h"

#include <ctype.h>

/* The parts of each type after the header: `fixed` bytes always, and up to `variable` more. */
struct frame_shape {
    const char *name;
    uint32_t fixed;
    uint32_t variable;
};

static const struct frame_shape shapes[CW_FRAME_TYPES] = {
    [CW_FRAME_CHALLENGE] = {"CHALLENGE", CW_CHALLENGE_SIZE, 0},
    [CW_FRAME_HELLO] = {"HELLO", CW_HELLO_SIZE, 0},
    [CW_FRAME_WELCOME] = {"WELCOME", CW_WELCOME_SIZE, 0},
    [CW_FRAME_REFUSED] = {"REFUSED", CW_NOTICE_SIZE, CW_TEXT_MAX},
    [CW_FRAME_ACK] = {"ACK", CW_ACK_SIZE, 0},
    [CW_FRAME_SEND] = {"SEND", CW_SEND_SIZE, CW_FRAME_DATA_MAX},
    [CW_FRAME_SEND_DATA] = {"SEND_DATA", 0, CW_FRAME_DATA_MAX},
    [CW_FRAME_RECV] = {"RECV", CW_RECV_SIZE, 0},
    [CW_FRAME_MRECV] = {"MRECV", CW_MRECV_SIZE, 0},
    [CW_FRAME_PROBE] = {"PROBE", CW_PROBE_SIZE, 0},
    [CW_FRAME_CANCEL] = {"CANCEL", CW_RECV_SIZE, 0},
    [CW_FRAME_BYE] = {"BYE", CW_BYE_SIZE, 0},
    [CW_FRAME_CHECK] = {"CHECK", CW_SEND_SIZE, 0},
    [CW_FRAME_LIVE] = {"LIVE", CW_TAKEN_SIZE, 0},
    [CW_FRAME_UNLOGGED] = {"UNLOGGED", CW_UNLOGGED_SIZE, 0},
    [CW_FRAME_POINT] = {"POINT", CW_POINT_SIZE, 0},
    [CW_FRAME_CHECKPOINT] = {"CHECKPOINT", CW_CHECKPOINT_SIZE, 0},
    [CW_FRAME_TRIM] = {"TRIM", CW_TRIM_SIZE, 0},
    [CW_FRAME_TRIMMED] = {"TRIMMED", CW_TRIM_SIZE, 0},
    [CW_FRAME_TAKEN] = {"TAKEN", CW_TAKEN_SIZE, 0},
    [CW_FRAME_READINGS] = {"READINGS", 0, CW_READINGS_MAX},
    [CW_FRAME_MESSAGE] = {"MESSAGE", CW_MESSAGE_SIZE, CW_FRAME_DATA_MAX},
    [CW_FRAME_SENT] = {"SENT", CW_DONE_SIZE, 0},
    [CW_FRAME_CANCELED] = {"CANCELED", CW_DONE_SIZE, 0},
    [CW_FRAME_PROBED] = {"PROBED", CW_PROBED_SIZE, 0},
    [CW_FRAME_HINT] = {"HINT", 0, 0},
    [CW_FRAME_FAREWELL] = {"FAREWELL", 0, 0},
    [CW_FRAME_REPLAYED] = {"REPLAYED", 0, 0},
    [CW_FRAME_GROWN] = {"GROWN", CW_GROWN_SIZE, 0},
    [CW_FRAME_NOTICE] = {"NOTICE", CW_NOTICE_SIZE, CW_TEXT_MAX},
    [CW_FRAME_STATS] = {"STATS", CW_STATS_SIZE, 0},
    [CW_FRAME_STATS_ASK] = {"STATS_ASK", 0, 0},
    [CW_FRAME_ROUTE] = {"ROUTE", CW_ROUTE_SIZE, 0},
    [CW_FRAME_LINK] = {"LINK", CW_LINK_SIZE, CW_LINK_ADDRESS_MAX},
    [CW_FRAME_CUT] = {"CUT", CW_CUT_SIZE, 0},
    [CW_FRAME_RANK_END] = {"RANK_END", CW_RANK_END_SIZE, 0},
    [CW_FRAME_JOB_END] = {"JOB_END", 0, 0},
    [CW_FRAME_FORWARD] = {"FORWARD", CW_FORWARD_SIZE, CW_FRAME_DATA_MAX},
    [CW_FRAME_FORWARD_DATA] = {"FORWARD_DATA", CW_FORWARD_REF_SIZE, CW_FRAME_DATA_MAX},
    [CW_FRAME_FORWARD_END] = {"FORWARD_END", CW_FORWARD_REF_SIZE, 0},
    [CW_FRAME_FORWARD_SENT] = {"FORWARD_SENT", CW_FORWARD_REF_SIZE, 0},
    [CW_FRAME_PUT] = {"PUT", CW_PUT_SIZE, 0},
    [CW_FRAME_GO] = {"GO", CW_GO_SIZE, 0},
    [CW_FRAME_STORED] = {"STORED", CW_STORED_SIZE, 0},
    [CW_FRAME_HELD] = {"HELD", CW_STORED_SIZE, 0},
    [CW_FRAME_HELD_END] = {"HELD_END", 0, 0},
    [CW_FRAME_FETCH] = {"FETCH", CW_IMAGE_REF_SIZE, 0},
    [CW_FRAME_IMAGE] = {"IMAGE", CW_IMAGE_SIZE, 0},
    [CW_FRAME_DROP] = {"DROP", CW_IMAGE_REF_SIZE, 0},
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

void cw_challenge_put(uint8_t *to, const struct cw_challenge *v)
{
    struct cw_writer w = cw_writer(to, CW_CHALLENGE_SIZE);

    cw_put_u32(&w, v->magic);
    cw_put_u16(&w, v->version);
    cw_put_u16(&w, 0);
    cw_put_bytes(&w, v->nonce, sizeof(v->nonce));
}

bool cw_challenge_get(const uint8_t *from, struct cw_challenge *v)
{
    struct cw_reader r = cw_reader(from, CW_CHALLENGE_SIZE);

    v->magic = cw_get_u32(&r);
    v->version = cw_get_u16(&r);
    cw_get_u16(&r);
    cw_get_copy(&r, v->nonce, sizeof(v->nonce));
    return cw_reader_end(&r) && v->magic == CW_PROTOCOL_MAGIC;
}

void cw_hello_put(uint8_t *to, const struct cw_hello *v)
{
    struct cw_writer w = cw_writer(to, CW_HELLO_SIZE);

    cw_put_u32(&w, v->magic);
    cw_put_u16(&w, v->version);
    cw_put_u16(&w, v->role);
    cw_put_bytes(&w, v->job, sizeof(v->job));
    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->incarnation);
    cw_put_bytes(&w, v->nonce, sizeof(v->nonce));
    cw_put_u64(&w, v->event);
    cw_put_u64(&w, v->poll_clock);
    cw_put_u64(&w, v->acts);
    cw_put_bytes(&w, v->mac, sizeof(v->mac));
    cw_put_u32(&w, v->flags);
    cw_put_u32(&w, v->resume_ms);
    cw_put_u64(&w, v->received);
}

bool cw_hello_get(const uint8_t *from, struct cw_hello *v)
{
    struct cw_reader r = cw_reader(from, CW_HELLO_SIZE);

    v->magic = cw_get_u32(&r);
    v->version = cw_get_u16(&r);
    v->role = cw_get_u16(&r);
    cw_get_copy(&r, v->job, sizeof(v->job));
    v->rank = cw_get_u32(&r);
    v->incarnation = cw_get_u32(&r);
    cw_get_copy(&r, v->nonce, sizeof(v->nonce));
    v->event = cw_get_u64(&r);
    v->poll_clock = cw_get_u64(&r);
    v->acts = cw_get_u64(&r);
    cw_get_copy(&r, v->mac, sizeof(v->mac));
    v->flags = cw_get_u32(&r);
    v->resume_ms = cw_get_u32(&r);
    v->received = cw_get_u64(&r);
    return cw_reader_end(&r) && v->magic == CW_PROTOCOL_MAGIC && v->role >= CW_ROLE_RANK &&
           v->role <= CW_ROLE_IMAGE;
}

void cw_welcome_put(uint8_t *to, const struct cw_welcome *v)
{
    struct cw_writer w = cw_writer(to, CW_WELCOME_SIZE);

    cw_put_u64(&w, v->acts);
    cw_put_u64(&w, v->event);
    cw_put_u64(&w, v->missing);
    cw_put_u64(&w, v->clock);
    cw_put_u32(&w, v->flags);
    cw_put_u32(&w, 0);
    cw_put_bytes(&w, v->mac, sizeof(v->mac));
    cw_put_u64(&w, v->received);
}

bool cw_welcome_get(const uint8_t *from, struct cw_welcome *v)
{
    struct cw_reader r = cw_reader(from, CW_WELCOME_SIZE);

    v->acts = cw_get_u64(&r);
    v->event = cw_get_u64(&r);
    v->missing = cw_get_u64(&r);
    v->clock = cw_get_u64(&r);
    v->flags = cw_get_u32(&r);
    cw_get_u32(&r);
    cw_get_copy(&r, v->mac, sizeof(v->mac));
    v->received = cw_get_u64(&r);
    return cw_reader_end(&r);
}

_Static_assert(sizeof(struct cw_rank_stats) == 112 && sizeof(struct cw_relay_stats) == 88,
               "statistics are arrays of u64");

void cw_stats_put(uint8_t *to, const struct cw_stats *v)
{
    struct cw_writer w = cw_writer(to, CW_STATS_SIZE);

    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->incarnation);
    cw_put_bytes(&w, &v->of_rank, sizeof(v->of_rank));
    cw_put_bytes(&w, &v->of_relay, sizeof(v->of_relay));
}

bool cw_stats_get(const uint8_t *from, struct cw_stats *v)
{
    struct cw_reader r = cw_reader(from, CW_STATS_SIZE);

    v->rank = cw_get_u32(&r);
    v->incarnation = cw_get_u32(&r);
    cw_get_copy(&r, &v->of_rank, sizeof(v->of_rank));
    cw_get_copy(&r, &v->of_relay, sizeof(v->of_relay));
    return cw_reader_end(&r);
}

void cw_bye_put(uint8_t *to, const struct cw_rank_stats *v)
{
    struct cw_writer w = cw_writer(to, CW_BYE_SIZE);

    cw_put_u64(&w, v->polls);
    cw_put_u64(&w, v->sleeps);
    cw_put_u64(&w, v->syscalls);
    cw_put_u64(&w, v->switches);
}

bool cw_bye_get(const uint8_t *from, struct cw_rank_stats *v)
{
    struct cw_reader r = cw_reader(from, CW_BYE_SIZE);

    v->polls = cw_get_u64(&r);
    v->sleeps = cw_get_u64(&r);
    v->syscalls = cw_get_u64(&r);
    v->switches = cw_get_u64(&r);
    return cw_reader_end(&r);
}

void cw_route_put(uint8_t *to, const struct cw_route *v)
{
    struct cw_writer w = cw_writer(to, CW_ROUTE_SIZE);

    cw_put_u32(&w, v->self);
    cw_put_u32(&w, v->relays);
    cw_put_u32(&w, v->home);
    cw_put_u32(&w, v->first);
    cw_put_u32(&w, v->step);
    cw_put_u32(&w, v->count);
}

bool cw_route_get(const uint8_t *from, struct cw_route *v)
{
    struct cw_reader r = cw_reader(from, CW_ROUTE_SIZE);

    v->self = cw_get_u32(&r);
    v->relays = cw_get_u32(&r);
    v->home = cw_get_u32(&r);
    v->first = cw_get_u32(&r);
    v->step = cw_get_u32(&r);
    v->count = cw_get_u32(&r);
    return cw_reader_end(&r) && v->relays >= 2 && v->relays <= CW_RELAYS_MAX &&
           v->self < v->relays && v->home < v->relays && v->step > 0 && v->count > 0;
}

size_t cw_link_put(uint8_t *to, const struct cw_link *v)
{
    struct cw_writer w = cw_writer(to, CW_LINK_SIZE + CW_LINK_ADDRESS_MAX);

    cw_put_u32(&w, v->peer);
    cw_put_u32(&w, 0);
    cw_put_bytes(&w, v->sealed, sizeof(v->sealed));
    cw_put_bytes(&w, v->address, strnlen(v->address, CW_LINK_ADDRESS_MAX));
    return w.used;
}

bool cw_link_get(const uint8_t *from, size_t size, struct cw_link *v)
{
    struct cw_reader r = cw_reader(from, CW_LINK_SIZE + size);

    v->peer = cw_get_u32(&r);
    cw_get_u32(&r);
    cw_get_copy(&r, v->sealed, sizeof(v->sealed));
    cw_get_text(&r, v->address, CW_LINK_ADDRESS_MAX);
    return cw_reader_end(&r) && v->address[0];
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

size_t cw_notice_put(uint8_t *to, const struct cw_notice_body *v)
{
    struct cw_writer w = cw_writer(to, CW_NOTICE_SIZE + CW_TEXT_MAX);

    cw_put_u32(&w, v->code);
    cw_put_u32(&w, v->rank);
    cw_put_u32(&w, v->incarnation);
    cw_put_u32(&w, 0);
    cw_put_u64(&w, v->acts);
    cw_put_u64(&w, v->event);
    cw_put_bytes(&w, v->text, strnlen(v->text, CW_TEXT_MAX));
    return w.used;
}

bool cw_notice_get(const uint8_t *from, size_t size, struct cw_notice_body *v)
{
    struct cw_reader r = cw_reader(from, size);

    v->code = cw_get_u32(&r);
    v->rank = cw_get_u32(&r);
    v->incarnation = cw_get_u32(&r);
    cw_get_u32(&r);
    v->acts = cw_get_u64(&r);
    v->event = cw_get_u64(&r);
    cw_get_text(&r, v->text, CW_TEXT_MAX);
    return cw_reader_end(&r);
}
