#include "tests/trace/say.h"

void say_send_kind(struct client *c, uint32_t kind, uint32_t dst, uint32_t req, uint64_t tag,
                   const char *text)
{
    size_t size = strlen(text);
    struct cw_send send = {.dst = dst, .kind = kind, .req = req, .tag = tag, .total = size};

    codec_send(&c->codec, &send, text, size);
    fixture_feed(c);
}

void say_send(struct client *c, uint32_t dst, uint64_t tag, const char *text)
{
    say_send_kind(c, CW_SEND_TAG, dst, 0, tag, text);
}

void say_begin(struct client *c, uint32_t kind, uint32_t dst, uint64_t tag, uint64_t total,
               size_t size)
{
    struct cw_send send = {
        .dst = dst, .kind = kind, .tag = tag, .total = total, .clock = c->codec.clock};
    uint8_t *to = codec_begin(&c->codec, CW_FRAME_SEND, CW_SEND_SIZE + size);

    cw_send_put(to, &send);
    codec_pattern(to + CW_SEND_SIZE, tag, 0, size);
    fixture_feed(c);
}

void say_more(struct client *c, uint64_t tag, uint64_t from, size_t size)
{
    codec_pattern(codec_begin(&c->codec, CW_FRAME_SEND_DATA, size), tag, from, size);
    fixture_feed(c);
}

void say_recv_mask(struct client *c, uint32_t req, uint64_t tag, uint64_t mask, uint64_t capacity)
{
    codec_recv(&c->codec, CW_FRAME_RECV, req, tag, mask, capacity);
    fixture_feed(c);
}

void say_recv(struct client *c, uint32_t req, uint64_t tag)
{
    say_recv_mask(c, req, tag, CODEC_ALL, CODEC_ALL);
}

void say_cancel(struct client *c, uint32_t req, uint64_t tag, uint64_t mask)
{
    codec_recv(&c->codec, CW_FRAME_CANCEL, req, tag, mask, CODEC_ALL);
    fixture_feed(c);
}

void say_mrecv(struct client *c, uint32_t req, uint32_t msg, uint64_t capacity)
{
    codec_mrecv(&c->codec, req, msg, capacity);
    fixture_feed(c);
}

void say_room(struct client *c, uint64_t bytes)
{
    uint8_t body[CW_ROOM_SIZE];

    cw_room_put(body, &(struct cw_room){.bytes = bytes});
    say_frame(c, CW_FRAME_ROOM, body, sizeof(body));
}

void say_probe(struct client *c, uint64_t tag, uint64_t mask, bool take)
{
    codec_probe(&c->codec, tag, mask, take);
    fixture_feed(c);
}

void say_bye(struct client *c)
{
    codec_bye(&c->codec);
    fixture_feed(c);
}

void say_taken(struct client *c, uint64_t event, uint64_t clock)
{
    c->codec.clock = clock;
    codec_taken(&c->codec, CW_FRAME_TAKEN, event);
    fixture_feed(c);
}

void say_live(struct client *c, uint64_t event, uint64_t clock)
{
    c->codec.clock = clock;
    codec_taken(&c->codec, CW_FRAME_LIVE, event);
    fixture_feed(c);
}

void say_point(struct client *c, const struct cw_point *point)
{
    c->codec.clock = point->clock;
    codec_point(&c->codec, point->event, point->acts);
    fixture_feed(c);
}

void say_checkpoint(struct fixture *f, uint32_t rank, uint32_t number, uint32_t base)
{
    codec_checkpoint(&f->dispatcher.codec, rank, number, base);
    fixture_feed(&f->dispatcher);
}

void say_trim(struct fixture *f, uint32_t rank, const struct cw_point *point)
{
    codec_trim(&f->dispatcher.codec, rank, point);
    fixture_feed(&f->dispatcher);
}

void say_readings(struct client *c, const char *text)
{
    say_frame(c, CW_FRAME_READINGS, text, strlen(text));
}

void say_unlogged(struct client *c, uint32_t why)
{
    codec_unlogged(&c->codec, why);
    fixture_feed(c);
}

void say_frame(struct client *c, uint8_t type, const void *body, size_t size)
{
    codec_put(&c->codec, type, body, size);
    fixture_feed(c);
}
