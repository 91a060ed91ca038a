/* The client's side of a relay's connection, without the connection: frames to bytes, bytes to
 * frames, frames to words. The trace tests, the conformance suite and the fuzzer share it. */
#ifndef TRACE_CODEC_H
#define TRACE_CODEC_H

#include "common/frame.h"

#define CODEC_LINE_MAX 640 /* bytes of the words for one frame */
#define CODEC_ALL UINT64_MAX

/* Bytes in order, not yet taken: at[start] to at[end - 1]. */
struct codec_bytes {
    uint8_t *at;
    size_t start;
    size_t end;
    size_t size;
};

struct codec {
    struct cw_session session;
    struct codec_bytes in;  /* from the relay */
    struct codec_bytes out; /* to the relay */
    uint64_t clock;         /* of polls: stands in what it says */
};

/* A frame from the relay; `body` is valid until more bytes are received. */
struct codec_frame {
    struct cw_header header;
    const uint8_t *body;
};

/* A message as a rank puts it together. */
struct codec_received {
    uint32_t req; /* or the stream number of an active message */
    uint32_t flags;
    uint64_t tag;
    uint64_t total;
    uint64_t event; /* 0 until it is complete */
    uint8_t *bytes;
    size_t size;
};

struct codec_inbox {
    struct codec_received *of;
    size_t count;
    size_t size;
    size_t complete;
};

/* Room for `size` more bytes at the end; they count as added. */
uint8_t *codec_room(struct codec_bytes *b, size_t size);
void codec_take(struct codec_bytes *b, size_t size);
static inline size_t codec_left(const struct codec_bytes *b)
{
    return b->end - b->start;
}

void codec_fini(struct codec *c);
void codec_receive(struct codec *c, const void *bytes, size_t size);

/* The next whole frame: 1, 0 when there is none, or the error of cw_frame_accept. */
int codec_next(struct codec *c, struct codec_frame *frame, struct cw_err *err);

/* Queues a frame; returns its body of `size` bytes, to be filled. */
uint8_t *codec_begin(struct codec *c, uint8_t type, size_t size);
void codec_put(struct codec *c, uint8_t type, const void *body, size_t size);

/* Fills in magic, version, nonce and MAC. */
void codec_hello(struct codec *c, struct cw_hello *hello, const uint8_t key[CW_KEY_SIZE],
                 const struct cw_challenge *challenge);
/* The first frame of a message, with `size` of its bytes. */
void codec_send(struct codec *c, const struct cw_send *send, const void *bytes, size_t size);
void codec_recv(struct codec *c, uint8_t type, uint32_t req, uint64_t tag, uint64_t mask,
                uint64_t capacity);
void codec_mrecv(struct codec *c, uint32_t req, uint32_t msg, uint64_t capacity);
void codec_probe(struct codec *c, uint64_t tag, uint64_t mask, bool take);
void codec_bye(struct codec *c);
/* What a rank says of a message that it sent before. */
/* TAKEN or LIVE. */
void codec_taken(struct codec *c, uint8_t type, uint64_t event);
void codec_point(struct codec *c, uint64_t event, uint64_t acts);
void codec_unlogged(struct codec *c, uint32_t why);
/* What a dispatcher asks of a rank's relay. */
void codec_checkpoint(struct codec *c, uint32_t rank, uint32_t number, uint32_t base);
void codec_trim(struct codec *c, uint32_t rank, const struct cw_point *point);

/* One line without a newline: "RECV req 7 tag 5". */
void codec_describe(char line[CODEC_LINE_MAX], const struct cw_header *header, const uint8_t *body);

/* What the event number of a frame is; 0 when it is no event. */
uint64_t codec_event(const struct codec_frame *frame);

/* Takes in a MESSAGE frame. Returns the message, or NULL when the frame does not fit what came
 * before it. */
struct codec_received *codec_inbox_take(struct codec_inbox *inbox, const struct codec_frame *frame);
struct codec_received *codec_inbox_find(const struct codec_inbox *inbox, uint32_t req);
/* Those that are not complete begin anew. */
void codec_inbox_forget_open(struct codec_inbox *inbox);
void codec_inbox_fini(struct codec_inbox *inbox);

/* Bytes that can be told from those of another message and another place. */
uint8_t codec_pattern_at(uint64_t message, uint64_t i);
void codec_pattern(uint8_t *to, uint64_t message, uint64_t from, size_t size);
bool codec_pattern_is(const uint8_t *at, uint64_t message, size_t size);

/* A small generator: the same seed, the same numbers, everywhere (xorshift64*). */
uint64_t codec_random(uint64_t *seed);
static inline uint64_t codec_random_below(uint64_t *seed, uint64_t bound)
{
    return (codec_random(seed) >> 16) % bound;
}

#endif
