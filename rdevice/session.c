#include "rdevice/session.h"
#include "common/clock.h"
#include "common/hello.h"
#include "common/secret.h"
#include "rdevice/arena.h"
#include "rdevice/fatal.h"
#include "rdevice/inputs.h"
#include "rdevice/next.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull
#define HANDSHAKE_MS 20000
#define ATTEMPT_MS 10000 /* to connect, and for each answer, when the session is resumed */
#define PAUSE_MIN_MS 20  /* between two attempts, doubled each time */
#define PAUSE_MAX_MS 500
#define DIRECT_MIN 4096u /* payload bytes still to come that are worth reading past the buffer */
#define RING_READ                                                                                  \
    1024 /* bytes taken from a ring at a time, to know what comes: taking costs little there */

/* --- opening ------------------------------------------------------------------------------------
 */

void session_begin(struct session *s, const char *address, const struct cw_hello *hello,
                   uint32_t resume_ms)
{
    struct cw_err err;

    *s = (struct session){.wire = {.fd = -1}, .hello = *hello, .resume_ms = resume_ms};
    s->in = arena_alloc(SESSION_IN_BYTES);
    s->out = arena_alloc(SESSION_OUT_BYTES);
    cw_kept_init(&s->kept, arena_alloc(CW_KEPT_MAX), CW_KEPT_MAX);
    if (cw_address_parse(&s->place, address, &err) < 0)
        fatal_exit(CW_REPORT_FATAL, "%s", err.text);
}

static void keep_key(struct session *s, const uint8_t key[CW_KEY_SIZE])
{
    if (s->resume_ms == 0)
        return;
    s->key = cw_secret_alloc(CW_KEY_SIZE);
    if (!s->key)
        fatal_exit(CW_REPORT_FATAL, "no memory for the key of this rank");
    memcpy(s->key, key, CW_KEY_SIZE);
}

static void drop_connection(struct session *s)
{
    cw_wire_close(&s->wire);
    close(s->wire.fd);
    s->wire.fd = -1;
}

/* Between two attempts. Returns how long the next pause is. */
static int pause_between(int ms)
{
    NEXT(poll)(NULL, 0, ms);
    return ms * 2 < PAUSE_MAX_MS ? ms * 2 : PAUSE_MAX_MS;
}

/* The relay may be killed at that moment, and come back: another connection is tried. Once it may
 * have heard of this incarnation, another one is to come. */
static int connect_to(struct session *s)
{
    uint64_t until = cw_clock_ns() + s->resume_ms * NS_IN_MS;
    int pause_ms = PAUSE_MIN_MS, fd;
    struct cw_err err = {0};

    while ((fd = cw_connect(&s->place, &err)) < 0) {
        if (cw_clock_ns() >= until)
            fatal_exit(CW_REPORT_RELAY_LOST, "%s", err.text);
        pause_ms = pause_between(pause_ms);
    }
    return fd;
}

void session_open(struct session *s, const uint8_t key[CW_KEY_SIZE], struct cw_welcome *welcome)
{
    struct cw_err err = {0};

    s->wire.fd = connect_to(s);
    s->wire.calls = &s->calls;
    cw_wire_want(&s->wire, ARENA_RINGS);
    if (cw_hello_open(&s->wire, &s->numbers, &s->hello, key, HANDSHAKE_MS, welcome, &err) < 0)
        fatal_exit(err.code == CW_ECLOSED || err.code == CW_ETIME ? CW_REPORT_RELAY_LOST
                                                                  : CW_REPORT_FATAL,
                   "relay %s: %s", s->place.text, err.text);
    s->connections = 1;
    s->hello.poll_clock = s->hello.acts = 0; /* of the point that it starts from */
    keep_key(s, key);
}

void session_close(struct session *s)
{
    if (session_is_open(s))
        drop_connection(s);
    cw_secret_free(s->key, CW_KEY_SIZE);
    s->key = NULL;
}

void session_forsake(struct session *s)
{
    arena_free(s->in, SESSION_IN_BYTES);
    arena_free(s->out, SESSION_OUT_BYTES);
    arena_free(s->kept.bytes, CW_KEPT_MAX);
    *s = (struct session)SESSION_BEFORE;
}

/* --- resuming -----------------------------------------------------------------------------------
 */

static void give_up(const struct session *s, const char *why) __attribute__((noreturn, cold));

static void give_up(const struct session *s, const char *why)
{
    fatal_exit(CW_REPORT_RELAY_LOST, "relay %s: connection lost: %s", s->place.text, why);
}

/* The bytes that the relay has not taken from the ring are to be sent again. */
static void take_back(struct session *s)
{
    struct iovec unread[2];
    int count = cw_wire_unread(&s->wire, unread);

    if (count < 0)
        give_up(s, cw_wire_error(EPROTO));
    if (count > 0 && cw_kept_restore(&s->kept, unread, count) < 0)
        give_up(s, "there is more to be sent again than can be kept");
}

static int smaller(uint64_t a, int b)
{
    return a < (uint64_t)b ? (int)a : b;
}

/* Keeps the number of the descriptor that the session had, if it is free: the program's are the
 * same in every incarnation. */
static int move(int fd, int number)
{
    int moved = fd == number ? fd : fcntl(fd, F_DUPFD_CLOEXEC, number);

    if (moved == number && fd != number)
        close(fd);
    else if (moved >= 0 && moved != fd)
        close(moved);
    return moved == number ? number : fd;
}

/* One attempt, of at most `left_ms`. Returns CW_OK, an error that another attempt may not meet, or
 * one that is final. */
static int try(struct session *s, int number, uint64_t left_ms, struct cw_welcome *welcome,
               struct cw_err *err)
{
    int fd = -1;

    for (int i = 0; i < s->place.count && fd < 0; i++) {
        fd = cw_connect_begin(&s->place, i, err);
        if (fd >= 0 && cw_connect_end(fd, &s->place, smaller(left_ms, ATTEMPT_MS), err) < 0) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0)
        return CW_ECLOSED;
    s->wire.fd = move(fd, number);
    cw_wire_want(&s->wire, ARENA_RINGS);
    return cw_hello_resume(&s->wire, s->numbers.received, &s->hello, s->key,
                           smaller(left_ms, ATTEMPT_MS), welcome, err);
}

static bool is_final(int code)
{
    return code != CW_OK && code != CW_ECLOSED && code != CW_ETIME && code != CW_EBUSY;
}

/* The relay was killed, and is back: its stream goes on from where its log says, with what we have
 * not received whole. */
static void begin_anew(struct session *s, const struct cw_welcome *welcome)
{
    s->numbers.in_seq = (uint32_t)welcome->acts;
    s->numbers.received = s->numbers.received_told = welcome->event;
    s->in_start = s->in_end = 0;
    s->sink_left = 0;
    s->received = welcome->received;
    s->returned = true;
}

/* Returns false when the session has ended at the relay, as it may after BYE. */
static bool reconnect(struct session *s, const char *why)
{
    uint64_t until = cw_clock_ns() + s->resume_ms * NS_IN_MS;
    int pause_ms = PAUSE_MIN_MS;
    int number = s->wire.fd;
    struct cw_welcome welcome;
    struct cw_err err = {0};
    int code;

    drop_connection(s);
    for (uint64_t now = cw_clock_ns(); now < until; now = cw_clock_ns()) {
        code = try(s, number, (until - now) / NS_IN_MS + 1, &welcome, &err);
        if (code == CW_OK && cw_kept_rewind(&s->kept, welcome.received) == CW_OK) {
            if (welcome.flags & CW_WELCOME_RETURNED)
                begin_anew(s, &welcome);
            return true;
        }
        if (code == CW_OK)
            give_up(s, "the relay says that it has received what cannot be");
        if (session_is_open(s))
            drop_connection(s);
        if (is_final(code) && s->ending)
            return false;
        if (is_final(code))
            give_up(s, err.text);
        pause_ms = pause_between(pause_ms);
    }
    give_up(s, why);
}

void session_lost(struct session *s, int error)
{
    const char *why = error ? cw_wire_error(error) : "end of file";
    bool paused;

    if (!s->key || error == EPROTO)
        give_up(s, why);
    take_back(s);
    paused =
        inputs_pause(true); /* the handshake's random numbers are no reading of the program's */
    s->over = !reconnect(s, why);
    inputs_pause(paused);
    s->connections++;
}

/* --- out ----------------------------------------------------------------------------------------
 */

uint8_t *session_queue(struct session *s, uint8_t type, size_t buffered, size_t length)
{
    uint8_t *at = s->out + s->out_used;

    cw_frame_begin(&s->numbers, at, type, (uint32_t)length);
    s->out_used += CW_FRAME_HEADER + buffered;
    return at + CW_FRAME_HEADER;
}

void session_append(struct session *s, const struct iovec *pieces, int count)
{
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len)
            memcpy(s->out + s->out_used, pieces[i].iov_base, pieces[i].iov_len);
        s->out_used += pieces[i].iov_len;
    }
}

/* Drops `size` written bytes from the front of the vectors. */
static void advance(struct iovec **vectors, int *count, size_t size)
{
    while (*count > 0 && size >= (*vectors)->iov_len) {
        size -= (*vectors)->iov_len;
        ++*vectors;
        --*count;
    }
    if (*count > 0) {
        (*vectors)->iov_base = (uint8_t *)(*vectors)->iov_base + size;
        (*vectors)->iov_len -= size;
    }
}

/* Through rings nothing is kept: what the other side has not taken is in them. */
static bool is_kept(const struct session *s)
{
    return s->wire.mode != CW_WIRE_RINGS;
}

static ssize_t write_vectors(struct session *s, struct iovec *vectors, int count, int *error)
{
    ssize_t n;

    do
        n = cw_wire_send(&s->wire, vectors, count);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN)
        *error = errno;
    return n;
}

/* What a connection that broke did not bring to the relay goes first. */
static bool write_again(struct session *s, int *error)
{
    struct iovec unsent[2];
    ssize_t n;

    while (cw_kept_left(&s->kept) > 0) {
        n = write_vectors(s, unsent, cw_kept_unsent(&s->kept, unsent), error);
        if (n < 0)
            return false;
        cw_kept_sent(&s->kept, (size_t)n);
        if (!is_kept(s))
            cw_kept_acknowledge(&s->kept, s->kept.sent);
    }
    return true;
}

/* As many of the vectors as have `size` bytes in all; the last one may be cut. Returns how many. */
static int limit(struct iovec *to, const struct iovec *from, int count, size_t size)
{
    int n = 0;

    while (n < count && size > 0) {
        to[n] = from[n];
        if (to[n].iov_len > size)
            to[n].iov_len = size;
        size -= to[n++].iov_len;
    }
    return n;
}

static void keep(struct session *s, const struct iovec *vectors, size_t size)
{
    for (size_t left = size; left > 0; vectors++) {
        size_t n = vectors->iov_len < left ? vectors->iov_len : left;

        cw_kept_put(&s->kept, vectors->iov_base, n);
        left -= n;
    }
    cw_kept_sent(&s->kept, size);
}

bool session_wants_ack(const struct session *s)
{
    return s->key && is_kept(s) && cw_kept_left(&s->kept) == 0 && cw_kept_room(&s->kept) == 0;
}

void session_forget(struct session *s)
{
    cw_kept_acknowledge(&s->kept, s->kept.acked + CW_ACK_BYTES);
}

bool session_on_ack(struct session *s, const uint8_t *body)
{
    uint64_t position = cw_ack_get(body);

    if (position < s->acked || position > s->kept.sent)
        return false;
    s->acked = position;
    return position <= s->kept.acked || cw_kept_acknowledge(&s->kept, position) == CW_OK;
}

bool session_write(struct session *s, struct iovec **vectors, int *count, int *error)
{
    struct iovec some[SESSION_VECTORS_MAX];
    ssize_t n;

    *error = 0;
    if (!write_again(s, error) || session_wants_ack(s))
        return false;
    if (s->key && is_kept(s))
        n = write_vectors(s, some, limit(some, *vectors, *count, cw_kept_room(&s->kept)), error);
    else
        n = write_vectors(s, *vectors, *count, error);
    if (n < 0)
        return false;
    if (s->key && is_kept(s))
        keep(s, *vectors, (size_t)n);
    else
        cw_kept_skip(&s->kept, (uint64_t)n);
    advance(vectors, count, (size_t)n);
    return true;
}

/* --- in -----------------------------------------------------------------------------------------
 */

static void sink_advance(struct session *s, size_t size)
{
    s->sink += size;
    s->sink_left -= size;
}

/* Large payload is read to its place, and only what follows it into the buffer. */
static ssize_t receive(struct session *s)
{
    bool direct = s->sink_left >= DIRECT_MIN && s->in_start == s->in_end;
    struct iovec vectors[2];
    size_t to_sink;
    size_t room;
    ssize_t n;

    if (s->in_start > 0) {
        memmove(s->in, s->in + s->in_start, s->in_end - s->in_start);
        s->in_end -= s->in_start;
        s->in_start = 0;
    }
    room = SESSION_IN_BYTES - s->in_end;
    if (s->wire.mode == CW_WIRE_RINGS && room > RING_READ)
        room = RING_READ;
    vectors[direct] = (struct iovec){s->in + s->in_end, room};
    if (direct)
        vectors[0] = (struct iovec){s->sink, s->sink_left};
    n = cw_wire_recv(&s->wire, vectors, direct ? 2 : 1);
    if (n <= 0)
        return n;
    s->numbers.received += (size_t)n;
    to_sink = !direct ? 0 : (size_t)n < s->sink_left ? (size_t)n : s->sink_left;
    if (to_sink)
        sink_advance(s, to_sink);
    s->in_end += (size_t)n - to_sink;
    return n;
}

bool session_fill(struct session *s)
{
    int error = 0;
    ssize_t n;

    if (cw_kept_left(&s->kept) > 0)
        write_again(s, &error);
    /* the relay may have said why before it closed */
    n = receive(s);
    if (n < 0 && !error && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0)
        session_lost(s, error ? error : n < 0 ? errno : 0);
    return n > 0;
}

/* Types whose variable part is wanted with the fixed one; the type bounds it. */
static bool wants_whole(uint8_t type)
{
    return type == CW_FRAME_REFUSED || type == CW_FRAME_READINGS || type == CW_FRAME_DECIDED;
}

int session_take_frame(struct session *s, struct session_frame *frame, struct cw_err *err)
{
    const uint8_t *at = s->in + s->in_start;
    size_t there = s->in_end - s->in_start;
    struct cw_header header;
    size_t needed;

    if (there < CW_FRAME_HEADER)
        return 0;
    needed = cw_frame_fixed(at[4]);
    if (there < CW_FRAME_HEADER + needed)
        return 0;
    if (cw_frame_check(at, &header, err) < 0)
        return err->code;
    if (wants_whole(header.type))
        needed = header.length;
    if (there < CW_FRAME_HEADER + needed)
        return 0;
    if (cw_frame_accept(&s->numbers, at, &header, err) < 0)
        return err->code;
    s->in_start += CW_FRAME_HEADER + needed;
    *frame = (struct session_frame){.type = header.type,
                                    .body = at + CW_FRAME_HEADER,
                                    .length = header.length,
                                    .more = header.length - needed};
    return 1;
}

const uint8_t *session_peek(const struct session *s, size_t size)
{
    return s->in_end - s->in_start < size ? NULL : s->in + s->in_start;
}

bool session_take_payload(struct session *s)
{
    size_t there = s->in_end - s->in_start;
    size_t size = there < s->sink_left ? there : s->sink_left;

    if (size == 0)
        return false;
    memcpy(s->sink, s->in + s->in_start, size);
    s->in_start += size;
    sink_advance(s, size);
    return true;
}
