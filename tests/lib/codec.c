#include "tests/lib/codec.h"
#include "common/cred.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN_MAX 32u /* bytes of a payload that are shown themselves */
#define ROOM_MIN 4096u
#define CODES 14 /* of REFUSED, and of NOTICE */

static void *must(void *at)
{
    if (!at)
        abort(); /* a test without memory has nothing to say */
    return at;
}

uint8_t *codec_room(struct codec_bytes *b, size_t size)
{
    if (b->start == b->end)
        b->start = b->end = 0;
    if (b->size - b->end < size && b->start > 0) {
        memmove(b->at, b->at + b->start, b->end - b->start);
        b->end -= b->start;
        b->start = 0;
    }
    if (b->size - b->end < size) {
        b->size = (b->end + size) * 2 + ROOM_MIN;
        b->at = must(realloc(b->at, b->size));
    }
    b->end += size;
    return b->at + b->end - size;
}

void codec_take(struct codec_bytes *b, size_t size)
{
    b->start += size;
}

void codec_fini(struct codec *c)
{
    free(c->in.at);
    free(c->out.at);
    *c = (struct codec){0};
}

void codec_receive(struct codec *c, const void *bytes, size_t size)
{
    if (size)
        memcpy(codec_room(&c->in, size), bytes, size);
}

int codec_next(struct codec *c, struct codec_frame *frame, struct cw_err *err)
{
    struct cw_session trial = c->session;

    if (codec_left(&c->in) < CW_FRAME_HEADER)
        return 0;
    if (cw_frame_accept(&trial, c->in.at + c->in.start, &frame->header, err) < 0)
        return err->code;
    if (codec_left(&c->in) < CW_FRAME_HEADER + frame->header.length)
        return 0;
    c->session.in_seq = trial.in_seq;
    c->session.out_acked = trial.out_acked;
    frame->body = c->in.at + c->in.start + CW_FRAME_HEADER;
    codec_take(&c->in, CW_FRAME_HEADER + frame->header.length);
    return 1;
}

uint8_t *codec_begin(struct codec *c, uint8_t type, size_t size)
{
    uint8_t *at = codec_room(&c->out, CW_FRAME_HEADER + size);

    cw_frame_begin(&c->session, at, type, (uint32_t)size);
    return at + CW_FRAME_HEADER;
}

void codec_put(struct codec *c, uint8_t type, const void *body, size_t size)
{
    uint8_t *to = codec_begin(c, type, size);

    if (size)
        memcpy(to, body, size);
}

void codec_hello(struct codec *c, struct cw_hello *hello, const uint8_t key[CW_KEY_SIZE],
                 const struct cw_challenge *challenge)
{
    hello->magic = CW_PROTOCOL_MAGIC;
    hello->version = hello->version ? hello->version : CW_PROTOCOL_VERSION;
    memset(hello->nonce, 0x5a, sizeof(hello->nonce));
    cw_cred_mac_hello(hello->mac, key, hello, challenge->nonce);
    cw_hello_put(codec_begin(c, CW_FRAME_HELLO, CW_HELLO_SIZE), hello);
}

void codec_send(struct codec *c, const struct cw_send *send, const void *bytes, size_t size)
{
    uint8_t *to = codec_begin(c, CW_FRAME_SEND, CW_SEND_SIZE + size);
    struct cw_send now = *send;

    now.clock = c->clock;
    cw_send_put(to, &now);
    if (size)
        memcpy(to + CW_SEND_SIZE, bytes, size);
}

void codec_recv(struct codec *c, uint8_t type, uint32_t req, uint64_t tag, uint64_t mask,
                uint64_t capacity)
{
    struct cw_recv recv = {
        .req = req, .tag = tag, .mask = mask, .capacity = capacity, .clock = c->clock};

    cw_recv_put(codec_begin(c, type, CW_RECV_SIZE), &recv);
}

void codec_mrecv(struct codec *c, uint32_t req, uint32_t msg, uint64_t capacity)
{
    struct cw_mrecv mrecv = {.req = req, .msg = msg, .capacity = capacity, .clock = c->clock};

    cw_mrecv_put(codec_begin(c, CW_FRAME_MRECV, CW_MRECV_SIZE), &mrecv);
}

void codec_probe(struct codec *c, uint64_t tag, uint64_t mask, bool take)
{
    struct cw_probe probe = {.tag = tag, .mask = mask, .remove = take, .clock = c->clock};

    cw_probe_put(codec_begin(c, CW_FRAME_PROBE, CW_PROBE_SIZE), &probe);
}

void codec_bye(struct codec *c)
{
    struct cw_rank_stats counted = {.polls = 11, .sleeps = 12, .syscalls = 13};

    cw_bye_put(codec_begin(c, CW_FRAME_BYE, CW_BYE_SIZE), &counted);
}

void codec_taken(struct codec *c, uint8_t type, uint64_t event)
{
    struct cw_taken taken = {.event = event, .clock = c->clock};

    cw_taken_put(codec_begin(c, type, CW_TAKEN_SIZE), &taken);
}

void codec_point(struct codec *c, uint64_t event, uint64_t acts)
{
    struct cw_point point = {.event = event, .clock = c->clock, .acts = acts};

    cw_point_put(codec_begin(c, CW_FRAME_POINT, CW_POINT_SIZE), &point);
}

void codec_unlogged(struct codec *c, uint32_t why)
{
    cw_word_put(codec_begin(c, CW_FRAME_UNLOGGED, CW_WORD_SIZE), why);
}

void codec_checkpoint(struct codec *c, uint32_t rank, uint32_t number, uint32_t base)
{
    struct cw_checkpoint checkpoint = {.rank = rank, .number = number, .base = base};

    cw_checkpoint_put(codec_begin(c, CW_FRAME_CHECKPOINT, CW_CHECKPOINT_SIZE), &checkpoint);
}

void codec_trim(struct codec *c, uint32_t rank, const struct cw_point *point)
{
    struct cw_trim trim = {.rank = rank, .point = *point};

    cw_trim_put(codec_begin(c, CW_FRAME_TRIM, CW_TRIM_SIZE), &trim);
}

/* --- words ------------------------------------------------------------------------------------ */
struct words {
    char *at;
    size_t used;
};

static void say(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct words *w, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(w->at + w->used, CODEC_LINE_MAX - w->used, fmt, ap);
    va_end(ap);
    w->used += n > 0 ? (size_t)n : 0;
    if (w->used >= CODEC_LINE_MAX)
        w->used = CODEC_LINE_MAX - 1;
}

static void say_number(struct words *w, const char *what, uint64_t n)
{
    say(w, n > UINT32_MAX ? " %s 0x%llx" : " %s %llu", what, (unsigned long long)n);
}

/* Most stories need no clock: 0 is not said. */
static void say_some(struct words *w, const char *what, uint64_t n)
{
    if (n)
        say_number(w, what, n);
}

static void say_payload(struct words *w, const uint8_t *at, size_t size)
{
    bool shown = size <= SHOWN_MAX;

    for (size_t i = 0; shown && i < size; i++)
        shown = isprint(at[i]);
    if (size && shown)
        say(w, " '%.*s'", (int)size, (const char *)at);
    else if (size)
        say(w, " (%zu bytes)", size);
}

static void say_hello(struct words *w, const uint8_t *body)
{
    struct cw_hello v;

    cw_hello_get(body, &v);
    if (v.role == CW_ROLE_DISPATCHER)
        say(w, " dispatcher of %u%s%s", v.rank, v.flags & CW_HELLO_LOG ? " LOG" : "",
            v.flags & CW_HELLO_TAKE ? " TAKE" : "");
    else
        say(w, " rank %u incarnation %u", v.rank, v.incarnation);
    say_some(w, "event", v.event);
    say_some(w, "clock", v.poll_clock);
    say_some(w, "acts", v.acts);
    if (v.flags & CW_HELLO_RESUME)
        say_number(w, "RESUME", v.received);
}

static void say_welcome(struct words *w, const uint8_t *body)
{
    struct cw_welcome v;

    cw_welcome_get(body, &v);
    say_number(w, "event", v.event);
    say_some(w, "acts", v.acts);
    say_some(w, "missing", v.missing);
    say_some(w, "clock", v.clock);
    say(w, "%s%s%s", v.flags & CW_WELCOME_LOG ? " LOG" : "",
        v.flags & CW_WELCOME_REPLAY ? " REPLAY" : "",
        v.flags & CW_WELCOME_DECIDED ? " DECIDED" : "");
    if (v.flags & CW_WELCOME_RESUMED)
        say_number(w, "RESUMED", v.received);
    if (v.flags & CW_WELCOME_RETURNED)
        say(w, " RETURNED");
}

static void say_code(struct words *w, uint8_t type, const uint8_t *body, size_t size)
{
    static const char *const refusals[CODES] = {
        [CW_REFUSED_VERSION] = "VERSION",       [CW_REFUSED_JOB] = "JOB",
        [CW_REFUSED_CREDENTIAL] = "CREDENTIAL", [CW_REFUSED_DUPLICATE] = "DUPLICATE",
        [CW_REFUSED_FENCED] = "FENCED",         [CW_REFUSED_LIMIT] = "LIMIT",
        [CW_REFUSED_PROTOCOL] = "PROTOCOL",     [CW_REFUSED_BUSY] = "BUSY",
    };
    static const char *const notices[CODES] = {
        [CW_NOTICE_RANK_UP] = "RANK_UP",   [CW_NOTICE_RANK_LOST] = "RANK_LOST",
        [CW_NOTICE_RANK_BYE] = "RANK_BYE", [CW_NOTICE_REFUSED] = "REFUSED",
        [CW_NOTICE_FATAL] = "FATAL",       [CW_NOTICE_RANK_LIVE] = "RANK_LIVE",
        [CW_NOTICE_UNLOGGED] = "UNLOGGED", [CW_NOTICE_LINKED] = "LINKED",
        [CW_NOTICE_UNLINKED] = "UNLINKED", [CW_NOTICE_UNSYNCED] = "UNSYNCED",
        [CW_NOTICE_COVERED] = "COVERED",   [CW_NOTICE_UNCOVERED] = "UNCOVERED",
    };
    const char *const *names = type == CW_FRAME_REFUSED ? refusals : notices;
    struct cw_notice_body v;

    if (!cw_notice_get(body, size, &v) || v.code >= CODES || !names[v.code]) {
        say(w, " ?");
        return;
    }
    say(w, " %s", names[v.code]);
    if (v.rank != UINT32_MAX)
        say(w, " rank %u", v.rank);
    /* a story without recovery needs no more */
    if (v.incarnation > 1 || v.event)
        say(w, " incarnation %u acts %llu event %llu", v.incarnation, (unsigned long long)v.acts,
            (unsigned long long)v.event);
    say(w, " '%s'", v.text);
}

static void say_send(struct words *w, const uint8_t *body, size_t size)
{
    struct cw_send v;

    cw_send_get(body, &v);
    say(w, " to %u", v.dst);
    if (v.kind == CW_SEND_SYNC)
        say(w, " SYNC req %u", v.req);
    if (v.kind == CW_SEND_AM)
        say(w, " AM");
    say_number(w, "tag", v.tag);
    say_number(w, "total", v.total);
    say_some(w, "clock", v.clock);
    say_some(w, "contents", v.contents);
    say_payload(w, body + CW_SEND_SIZE, size - CW_SEND_SIZE);
}

static void say_mask(struct words *w, uint64_t mask)
{
    if (mask != CODEC_ALL)
        say(w, " mask 0x%llx", (unsigned long long)mask);
}

static void say_capacity(struct words *w, uint64_t capacity)
{
    if (capacity != CODEC_ALL)
        say_number(w, "capacity", capacity);
}

static void say_recv(struct words *w, const uint8_t *body)
{
    struct cw_recv v;

    cw_recv_get(body, &v);
    say(w, " req %u", v.req);
    say_number(w, "tag", v.tag);
    say_mask(w, v.mask);
    say_capacity(w, v.capacity);
    say_some(w, "clock", v.clock);
}

static void say_mrecv(struct words *w, const uint8_t *body)
{
    struct cw_mrecv v;

    cw_mrecv_get(body, &v);
    say(w, " req %u msg %u", v.req, v.msg);
    say_capacity(w, v.capacity);
    say_some(w, "clock", v.clock);
}

static void say_probe(struct words *w, const uint8_t *body)
{
    struct cw_probe v;

    cw_probe_get(body, &v);
    say_number(w, "tag", v.tag);
    say_mask(w, v.mask);
    if (v.remove)
        say(w, " remove");
    say_some(w, "clock", v.clock);
}

static void say_message(struct words *w, const uint8_t *body, size_t size)
{
    struct cw_message v;

    cw_message_get(body, &v);
    say(w, " req %u", v.req);
    if (v.flags & CW_MESSAGE_FIRST) {
        say_number(w, "tag", v.tag);
        say_number(w, "total", v.total);
    }
    say(w, "%s%s%s%s", v.flags & CW_MESSAGE_FIRST ? " FIRST" : "",
        v.flags & CW_MESSAGE_LAST ? " LAST" : "", v.flags & CW_MESSAGE_TRUNC ? " TRUNC" : "",
        v.flags & CW_MESSAGE_ACTIVE ? " ACTIVE" : "");
    if (v.event)
        say_number(w, "event", v.event);
    say_payload(w, body + CW_MESSAGE_SIZE, size - CW_MESSAGE_SIZE);
}

static void say_arrival(struct words *w, const uint8_t *body, size_t size)
{
    struct cw_message v;

    if (!cw_arrival_get(body, &v))
        say(w, " that makes no sense");
    say(w, " from %u", v.req);
    if (v.flags & CW_MESSAGE_FIRST) {
        say_number(w, "tag", v.tag);
        say_number(w, "total", v.total);
    }
    if (v.flags & CW_MESSAGE_SYNC)
        say(w, " SYNC %u", v.sync);
    if (v.flags & CW_MESSAGE_OFFERED)
        say(w, " OFFERED %u", v.msg);
    say(w, "%s%s%s", v.flags & CW_MESSAGE_FIRST ? " FIRST" : "",
        v.flags & CW_MESSAGE_LAST ? " LAST" : "", v.flags & CW_MESSAGE_ACTIVE ? " ACTIVE" : "");
    if (v.event)
        say_number(w, "event", v.event);
    say_payload(w, body + CW_ARRIVAL_SIZE, size - CW_ARRIVAL_SIZE);
}

static void say_room(struct words *w, const uint8_t *body)
{
    struct cw_room v;

    cw_room_get(body, &v);
    say_number(w, "of", v.bytes);
}

static void say_matched(struct words *w, const uint8_t *body)
{
    struct cw_forward_ref v;

    cw_forward_ref_get(body, &v);
    say(w, " of %u req %u", v.rank, v.req);
}

static void say_done(struct words *w, const uint8_t *body)
{
    struct cw_done v;

    cw_done_get(body, &v);
    say(w, " req %u event %llu", v.req, (unsigned long long)v.event);
}

static void say_probed(struct words *w, const uint8_t *body)
{
    struct cw_probed v;

    cw_probed_get(body, &v);
    if (v.found) {
        say_number(w, "tag", v.tag);
        say_number(w, "total", v.total);
        say(w, " msg %u", v.msg);
    } else {
        say(w, " nothing");
    }
    say(w, " unexpected %llu", (unsigned long long)v.unexpected);
    say_some(w, "clock", v.clock);
}

static void say_taken(struct words *w, const uint8_t *body)
{
    struct cw_taken v;

    cw_taken_get(body, &v);
    say_number(w, "event", v.event);
    say_number(w, "clock", v.clock);
}

static void say_place(struct words *w, const struct cw_point *v)
{
    say_number(w, "event", v->event);
    say_number(w, "clock", v->clock);
    say_number(w, "acts", v->acts);
}

static void say_point(struct words *w, const uint8_t *body)
{
    struct cw_point v;

    cw_point_get(body, &v);
    say_place(w, &v);
}

static void say_checkpoint(struct words *w, const uint8_t *body)
{
    struct cw_checkpoint v;

    cw_checkpoint_get(body, &v);
    say(w, " rank %u number %u", v.rank, v.number);
    say_some(w, "base", v.base);
}

/* TRIM or TRIMMED */
static void say_trim(struct words *w, uint8_t type, const uint8_t *body)
{
    struct cw_trim v;

    cw_trim_get(body, &v);
    say(w, " rank %u", v.rank);
    if (type == CW_FRAME_TRIMMED)
        say(w, v.known ? " known" : " unknown");
    say_place(w, &v.point);
}

static void say_unlogged(struct words *w, const uint8_t *body)
{
    uint32_t why = cw_word_get(body);

    say(w, why == CW_UNLOGGED_THREADS     ? " THREADS"
           : why == CW_UNLOGGED_READINGS  ? " READINGS"
           : why == CW_UNLOGGED_ADDRESSES ? " ADDRESSES"
                                          : " ?");
}

static void say_stats(struct words *w, const uint8_t *body)
{
    struct cw_stats v;

    cw_stats_get(body, &v);
    say(w, " rank %u sent %llu (%llu bytes) received %llu (%llu bytes) unexpected %llu polls %llu",
        v.rank, (unsigned long long)v.of_rank.sent, (unsigned long long)v.of_rank.sent_bytes,
        (unsigned long long)v.of_rank.received, (unsigned long long)v.of_rank.received_bytes,
        (unsigned long long)v.of_rank.unexpected, (unsigned long long)v.of_rank.polls);
    say(w, " events %llu taken %llu replayed %llu acts %llu incarnation %u",
        (unsigned long long)v.of_rank.events, (unsigned long long)v.of_rank.taken,
        (unsigned long long)v.of_rank.replayed, (unsigned long long)v.of_rank.acts, v.incarnation);
}

void codec_describe(char line[CODEC_LINE_MAX], const struct cw_header *header, const uint8_t *body)
{
    struct words w = {line, 0};

    say(&w, "%s", cw_frame_name(header->type));
    if (header->length < cw_frame_fixed(header->type))
        return;
    switch (header->type) {
    case CW_FRAME_HELLO:
        say_hello(&w, body);
        break;
    case CW_FRAME_WELCOME:
        say_welcome(&w, body);
        break;
    case CW_FRAME_REFUSED:
    case CW_FRAME_NOTICE:
        say_code(&w, header->type, body, header->length);
        break;
    case CW_FRAME_ACK:
        say_number(&w, "of", header->ack);
        break;
    case CW_FRAME_SEND:
        say_send(&w, body, header->length);
        break;
    case CW_FRAME_TAKEN:
    case CW_FRAME_LIVE:
        say_taken(&w, body);
        break;
    case CW_FRAME_POINT:
        say_point(&w, body);
        break;
    case CW_FRAME_CHECKPOINT:
        say_checkpoint(&w, body);
        break;
    case CW_FRAME_TRIM:
    case CW_FRAME_TRIMMED:
        say_trim(&w, header->type, body);
        break;
    case CW_FRAME_UNLOGGED:
        say_unlogged(&w, body);
        break;
    case CW_FRAME_SEND_DATA:
    case CW_FRAME_READINGS:
        say_payload(&w, body, header->length);
        break;
    case CW_FRAME_RECV:
    case CW_FRAME_CANCEL:
        say_recv(&w, body);
        break;
    case CW_FRAME_MRECV:
        say_mrecv(&w, body);
        break;
    case CW_FRAME_PROBE:
        say_probe(&w, body);
        break;
    case CW_FRAME_MESSAGE:
        say_message(&w, body, header->length);
        break;
    case CW_FRAME_ARRIVAL:
        say_arrival(&w, body, header->length);
        break;
    case CW_FRAME_MATCHED:
        say_matched(&w, body);
        break;
    case CW_FRAME_ROOM:
        say_room(&w, body);
        break;
    case CW_FRAME_DECIDED:
        say_number(&w, "of", header->length);
        break;
    case CW_FRAME_SENT:
    case CW_FRAME_CANCELED:
        say_done(&w, body);
        break;
    case CW_FRAME_PROBED:
        say_probed(&w, body);
        break;
    case CW_FRAME_STATS:
        say_stats(&w, body);
        break;
    }
}

/* --- what a rank has received ----------------------------------------------------------------- */
uint64_t codec_event(const struct codec_frame *frame)
{
    struct cw_message message;
    struct cw_done done;

    switch (frame->header.type) {
    case CW_FRAME_MESSAGE:
        cw_message_get(frame->body, &message);
        return message.event;
    case CW_FRAME_ARRIVAL:
        cw_arrival_get(frame->body, &message);
        return message.event;
    case CW_FRAME_SENT:
    case CW_FRAME_CANCELED:
        cw_done_get(frame->body, &done);
        return done.event;
    }
    return 0;
}

static struct codec_received *inbox_open(const struct codec_inbox *inbox,
                                         const struct cw_message *message)
{
    for (size_t i = inbox->count; i-- > 0;)
        if (inbox->of[i].event == 0 && inbox->of[i].req == message->req &&
            !((inbox->of[i].flags ^ message->flags) & CW_MESSAGE_ACTIVE))
            return &inbox->of[i];
    return NULL;
}

static struct codec_received *inbox_add(struct codec_inbox *inbox, const struct cw_message *message)
{
    if (inbox->count == inbox->size) {
        inbox->size = inbox->size ? inbox->size * 2 : 16;
        inbox->of = must(realloc(inbox->of, inbox->size * sizeof(*inbox->of)));
    }
    inbox->of[inbox->count] =
        (struct codec_received){.req = message->req, .tag = message->tag, .total = message->total};
    return &inbox->of[inbox->count++];
}

struct codec_received *codec_inbox_take(struct codec_inbox *inbox, const struct codec_frame *frame)
{
    size_t size = frame->header.length - CW_MESSAGE_SIZE;
    struct cw_message message;
    struct codec_received *r;

    if (!cw_message_get(frame->body, &message) ||
        !(message.flags & CW_MESSAGE_LAST) != (message.event == 0))
        return NULL;
    r = inbox_open(inbox, &message);
    if ((r != NULL) == !!(message.flags & CW_MESSAGE_FIRST))
        return NULL;
    if (!r)
        r = inbox_add(inbox, &message);
    if (size > r->total - r->size)
        return NULL;
    r->flags |= message.flags;
    r->bytes = must(realloc(r->bytes, r->size + size + 1));
    memcpy(r->bytes + r->size, frame->body + CW_MESSAGE_SIZE, size);
    r->size += size;
    r->event = message.event;
    inbox->complete += message.event != 0;
    return r;
}

struct codec_received *codec_inbox_find(const struct codec_inbox *inbox, uint32_t req)
{
    for (size_t i = inbox->count; i-- > 0;)
        if (inbox->of[i].req == req && !(inbox->of[i].flags & CW_MESSAGE_ACTIVE))
            return &inbox->of[i];
    return NULL;
}

void codec_inbox_forget_open(struct codec_inbox *inbox)
{
    size_t kept = 0;

    for (size_t i = 0; i < inbox->count; i++) {
        if (inbox->of[i].event)
            inbox->of[kept++] = inbox->of[i];
        else
            free(inbox->of[i].bytes);
    }
    inbox->count = kept;
}

void codec_inbox_fini(struct codec_inbox *inbox)
{
    for (size_t i = 0; i < inbox->count; i++)
        free(inbox->of[i].bytes);
    free(inbox->of);
    *inbox = (struct codec_inbox){0};
}

/* The 8 bytes of a message's pattern that byte i is one of; the byte order is the machine's,
 * little-endian. */
static uint64_t pattern_word(uint64_t message, uint64_t i)
{
    uint64_t h = (message + 1) * 0x9e3779b97f4a7c15ull + (i >> 3) * 0xd6e8feb86659fd93ull;

    return h ^ h >> 29;
}

uint8_t codec_pattern_at(uint64_t message, uint64_t i)
{
    return (uint8_t)(pattern_word(message, i) >> (8 * (i & 7)));
}

void codec_pattern(uint8_t *to, uint64_t message, uint64_t from, size_t size)
{
    size_t i = 0;

    while (i < size) {
        uint64_t word = pattern_word(message, from + i);
        size_t some = 8 - ((from + i) & 7);

        word >>= 8 * ((from + i) & 7);
        some = some < size - i ? some : size - i;
        memcpy(to + i, &word, some);
        i += some;
    }
}

bool codec_pattern_is(const uint8_t *at, uint64_t message, size_t size)
{
    size_t i = 0;

    while (i < size) {
        uint64_t word = pattern_word(message, i);
        size_t some = size - i < sizeof(word) ? size - i : sizeof(word);

        if (memcmp(at + i, &word, some) != 0)
            return false;
        i += some;
    }
    return true;
}

uint64_t codec_random(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 0x2545f4914f6cdd1dull;
}
