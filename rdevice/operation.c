#include "rdevice/operation.h"
#include "common/clock.h"
#include "rdevice/inputs.h"

#include <string.h>

void operation_inputs(struct exchange *x)
{
    size_t size = inputs_written.used;
    struct cw_writer w;

    if (x->channel.on) {
        channel_note_inputs(&x->channel, x->cursor.polls);
        return;
    }
    if (size == 0 || !x->cursor.logged)
        return;
    w = cw_writer(exchange_lazy_frame(x, CW_FRAME_READINGS, READINGS_HEAD + size),
                  READINGS_HEAD + size);
    cw_put_u64(&w, x->cursor.polls);
    cw_put_bytes(&w, inputs_written.bytes, size);
    inputs_written.used = 0;
}

void operation_arrivals_taken(struct exchange *x)
{
    const struct arrivals *a = &x->channel.arrivals;
    const struct cw_taken taken = {.event = a->taken, .clock = x->channel.arrivals_polls};

    if (a->taken > 0)
        cw_taken_put(exchange_lazy_frame(x, CW_FRAME_TAKEN, CW_TAKEN_SIZE), &taken);
}

/* While room is made, more may happen: that is taken, too. */
void operation_taken(struct exchange *x)
{
    struct cw_taken taken = {.clock = x->cursor.polls};

    operation_inputs(x);
    exchange_make_room(x, CW_TAKEN_SIZE);
    taken.event = inbox_happened(&x->inbox);
    cw_taken_put(exchange_lazy_frame(x, CW_FRAME_TAKEN, CW_TAKEN_SIZE), &taken);
}

/* Where the body of this frame goes; NULL: an earlier incarnation has made the operation, or the
 * rank is its own mailbox. */
static uint8_t *operation_frame(struct exchange *x, uint8_t type, size_t size)
{
    x->cursor.acts += x->channel.on;
    if (x->channel.on || cursor_act(x))
        return NULL;
    operation_inputs(x);
    return exchange_frame(x, type, size);
}

void operation_recv(struct exchange *x, const struct cw_recv *recv)
{
    uint8_t *to = operation_frame(x, CW_FRAME_RECV, CW_RECV_SIZE);

    if (to)
        cw_recv_put(to, recv);
    else if (x->channel.on)
        mailbox_recv(&x->channel.mailbox, recv);
}

void operation_mrecv(struct exchange *x, const struct cw_mrecv *mrecv)
{
    uint8_t *to = operation_frame(x, CW_FRAME_MRECV, CW_MRECV_SIZE);

    if (to)
        cw_mrecv_put(to, mrecv);
    else if (x->channel.on)
        mailbox_mrecv(&x->channel.mailbox, mrecv);
}

void operation_cancel(struct exchange *x, const struct cw_recv *cancel)
{
    uint8_t *to = operation_frame(x, CW_FRAME_CANCEL, CW_RECV_SIZE);

    if (to)
        cw_recv_put(to, cancel);
    else if (x->channel.on)
        mailbox_cancel(&x->channel.mailbox, cancel);
    exchange_flush(x);
}

/* --- probes -------------------------------------------------------------------------------------
 */

static struct cw_probed ask(struct exchange *x, const struct cw_probe *probe)
{
    uint64_t since;

    operation_inputs(x);
    cw_probe_put(exchange_frame(x, CW_FRAME_PROBE, CW_PROBE_SIZE), probe);
    probes_ask(&x->probes, probe, session_position(&x->session));
    exchange_flush(x);
    since = cw_clock_ns();
    while (!x->probes.answered)
        if (!exchange_read(x))
            exchange_wait(x, since);
    return x->probes.answer;
}

struct cw_probed operation_probe(struct exchange *x, uint64_t tag, uint64_t mask, bool remove)
{
    struct cw_probe probe = {
        .tag = tag, .mask = mask, .remove = remove, .clock = ++x->cursor.polls};
    struct cw_probed answer = {.found = false};

    if (x->channel.on) {
        if (x->cursor.active)
            cursor_poll(x);
        else
            exchange_poll(x);
        answer = mailbox_probe(&x->channel.mailbox, tag, mask, remove);
        x->cursor.acts += answer.found;
        x->cursor.tally.answers += answer.found;
        return answer;
    }
    if (x->cursor.active) {
        cursor_probe(x, &answer);
        return answer;
    }
    /* a hint may be waiting in the socket */
    if (probes_known_none(&x->probes, tag, mask) &&
        !(exchange_read(x) && !probes_known_none(&x->probes, tag, mask)))
        return answer;
    answer = ask(x, &probe);
    x->cursor.acts += answer.found;
    return answer;
}

/* --- messages -----------------------------------------------------------------------------------
 */

/* The next at most `max` bytes of the vectors, as vectors; moves the start past them. */
static int cut(struct iovec **from, int *count, size_t max, struct iovec *to, size_t *size)
{
    int n = 0;

    *size = 0;
    while (*count > 0 && *size < max) {
        size_t take = (*from)->iov_len < max - *size ? (*from)->iov_len : max - *size;

        to[n++] = (struct iovec){.iov_base = (*from)->iov_base, .iov_len = take};
        *size += take;
        (*from)->iov_base = (uint8_t *)(*from)->iov_base + take;
        (*from)->iov_len -= take;
        if ((*from)->iov_len == 0) {
            (*from)++;
            (*count)--;
        }
    }
    return n;
}

/* --- messages through the channel memory ---
 */

static const uint32_t piece_types[] = {
    [CW_SEND_TAG] = CW_PIECE_TAG, [CW_SEND_SYNC] = CW_PIECE_SYNC, [CW_SEND_AM] = CW_PIECE_AM};

/* Without a log whoever waits for room takes what comes meanwhile: two ranks may send to each other
 * before they receive. With one there is no room until images have made some; or it is given up. */
static void await_room(struct exchange *x, uint64_t since)
{
    struct channel *c = &x->channel;

    if (c->others_keep && (!c->imaged || cw_clock_ns() - since > CHANNEL_ROOM_NS))
        cw_channel_set_spent(&c->memory);
    if (!(cw_channel_is_spent(&c->memory) ? exchange_poll(x) : exchange_read(x)))
        exchange_wait(x, since);
}

/* The next `size` bytes of the message at hand, but for those that were put before. */
static void put_pieces(struct exchange *x, const struct iovec *from, size_t size)
{
    uint64_t since = 0;
    size_t done = size < x->skip ? size : x->skip;
    int32_t put = 0;

    x->skip -= done;
    while (done < size || x->piece.type != CW_PIECE_MORE) {
        put = channel_put(&x->channel, x->to, &x->piece, from, done, size - done);
        if (put >= 0) {
            done += (size_t)put;
            x->piece.type = CW_PIECE_MORE;
            since = 0;
        } else {
            since = since ? since : cw_clock_ns();
            await_room(x, since);
        }
    }
    x->channel.waits_for = CHANNEL_NOBODY;
}

/* One that was made before has been put, all of it or as much as there was room for, if all that is
 * repeated ends here; unless the memory was lost: then it is put again. */
static void begin_pieces(struct exchange *x, const struct cw_send *send)
{
    uint64_t had = channel_begin(&x->channel, x->to, send->total);

    if (x->cursor.active && had != send->total && !x->channel.lost)
        exchange_diverged(x, "the log lacks what it had sent to rank %u", send->dst);
    x->skip = had == UINT64_MAX ? 0 : had;
    x->piece =
        (struct cw_piece){.type = had == UINT64_MAX ? piece_types[send->kind] : CW_PIECE_MORE,
                          .tag = send->tag,
                          .total = send->total,
                          .req = send->req};
}

/* Of what `pieces` hold. Without a log nothing is compared. */
static uint64_t hash_of(struct exchange *x, const struct operation_target *to,
                        const struct iovec *pieces, int count)
{
    return x->cursor.logged ? contents_of(&x->contents, pieces, count, to->header) : 0;
}

/* The bytes that the vectors hold, as SEND_DATA frames. */
static void put_rest(struct exchange *x, struct iovec *from, int count)
{
    struct iovec chunk[EXCHANGE_PIECES_MAX];
    size_t size;
    int n;

    while ((n = cut(&from, &count, CW_FRAME_DATA_MAX, chunk, &size)) > 0) {
        if (size == 0)
            continue; /* empty pieces at the end */
        exchange_make_room(x, 0);
        session_queue(&x->session, CW_FRAME_SEND_DATA, 0, size);
        exchange_flush_with(x, chunk, n);
    }
}

static size_t sum(struct iovec *to, const struct iovec *pieces, int count)
{
    size_t total = 0;

    for (int i = 0; i < count; i++) {
        to[i] = pieces[i];
        total += pieces[i].iov_len;
    }
    return total;
}

/* The header of a message, and behind it the first bytes, of `size` that are there: copied if they
 * are few, or written from where they lie. The program waits for that: it is not time outside of
 * MPI. */
static void put_first(struct exchange *x, const struct cw_send *send, struct iovec *from, int count,
                      size_t size)
{
    struct iovec chunk[EXCHANGE_PIECES_MAX];
    bool copied = size <= OPERATION_COPY_MAX;
    size_t first = size < CW_FRAME_DATA_MAX ? size : CW_FRAME_DATA_MAX;
    uint64_t before;

    x->skip = 0;
    exchange_make_room(x, CW_SEND_SIZE + (copied ? size : 0));
    cw_send_put(session_queue(&x->session, CW_FRAME_SEND, CW_SEND_SIZE, CW_SEND_SIZE + first),
                send);
    if (copied) {
        session_append(&x->session, from, count);
        exchange_flush(x);
        return;
    }
    before = cw_clock_ns();
    exchange_flush_with(x, chunk, cut(&from, &count, CW_FRAME_DATA_MAX, chunk, &first));
    put_rest(x, from, count);
    x->waiter.left_ns += cw_clock_ns() - before;
}

/* All of it but what the relay has. */
static void put_more(struct exchange *x, struct iovec *from, int count)
{
    struct iovec chunk[EXCHANGE_PIECES_MAX];
    size_t skipped;

    cut(&from, &count, x->skip, chunk, &skipped);
    x->skip -= skipped;
    put_rest(x, from, count);
}

/* What it follows from, and with channel memory it itself, is noted before anybody can see a byte
 * of it. */
static void note_send(struct exchange *x, const struct cw_send *send)
{
    operation_inputs(x);
    if (x->channel.on)
        channel_note_send(&x->channel, send);
}

/* Whether the relay has heard of it; what it has of it is in x->skip. */
static bool is_told(struct exchange *x, const struct cw_send *send, bool made)
{
    uint64_t act = x->channel.on ? ++x->channel.told : x->cursor.acts;

    return cursor_was_told(&x->cursor, act, send->total, &x->skip) && (made || x->channel.on);
}

void operation_send(struct exchange *x, const struct operation_target *to, uint64_t total,
                    const struct iovec *pieces, int count)
{
    struct iovec rest[EXCHANGE_PIECES_MAX];
    size_t size = sum(rest, pieces, count);
    const struct cw_send send = {.dst = to->dst,
                                 .kind = to->kind,
                                 .req = to->req,
                                 .tag = to->tag,
                                 .total = total ? total : size,
                                 .clock = x->cursor.polls,
                                 .contents = hash_of(x, to, pieces, count)};
    bool made = cursor_send(x, &send);

    if (!made)
        note_send(x, &send);
    x->to = x->channel.on ? channel_count_sent(&x->channel, to->dst, send.total) : CHANNEL_FAR;
    if (x->to != CHANNEL_FAR) {
        begin_pieces(x, &send);
        put_pieces(x, pieces, size);
    } else if (is_told(x, &send, made)) {
        put_more(x, rest, count);
    } else {
        put_first(x, &send, rest, count, size);
    }
}

void operation_send_more(struct exchange *x, const void *bytes, size_t size)
{
    struct iovec piece = {.iov_base = (void *)bytes, .iov_len = size};

    if (x->cursor.logged)
        contents_more(&x->contents, bytes, size);
    if (x->to != CHANNEL_FAR)
        put_pieces(x, &piece, size);
    else
        put_more(x, &piece, 1);
}
