#include "rdevice/mailbox.h"
#include "common/copy.h"
#include "rdevice/arena.h"
#include "rdevice/fatal.h"

#include <string.h>

#define GROW_MIN 16u /* entries of a table; it doubles */

/* A message that began to come. */
struct message {
    uint64_t tag;
    uint64_t total;
    uint64_t arrived;
    uint64_t capacity;   /* of its receive, once it is matched */
    uint64_t delivered;  /* bytes that the receive has */
    uint32_t src;        /* where it stands in channel memory; of one that is far, the rank */
    bool far;            /* it came through the relay ... */
    bool offered;        /* ... which has its bytes ... */
    uint32_t number;     /* ... under this number */
    uint32_t type;       /* enum cw_piece_type */
    uint32_t sender_req; /* of CW_PIECE_SYNC */
    uint32_t req;        /* of its receive, or the stream number of an active message */
    bool matched;
    bool begun; /* the inbox knows of it */
};

/* One that came before its receive. */
struct waiting_message {
    struct match_waiting waiting; /* first: found by its address */
    struct message message;
    uint8_t bytes[]; /* room for all */
};

/* From one rank: a message goes straight to its receive, and has no record then. */
struct mailbox_sender {
    struct message direct;
    struct message *coming; /* it, or one that waits: it is not whole yet; NULL: none */
};

static void *match_alloc(void *owner, size_t size)
{
    (void)owner;
    return arena_alloc(size);
}

static void match_free(void *owner, void *at, size_t size)
{
    (void)owner;
    if (at)
        arena_free(at, size);
}

static const struct match_memory match_memory = {match_alloc, match_free};

static void *zeroed(size_t size)
{
    return memset(arena_alloc(size), 0, size);
}

void mailbox_begin(struct mailbox *m, struct inbox *inbox, const struct request_table *requests,
                   uint32_t ranks, uint64_t room)
{
    *m = (struct mailbox){.inbox = inbox,
                          .requests = requests,
                          .room = room,
                          .senders = zeroed(ranks * sizeof(*m->senders))};
    match_init(&m->index, &match_memory, NULL);
}

/* A table twice as large, of which what is new is zero. */
static void *grown(void *table, uint32_t *size, size_t entry)
{
    uint32_t before = *size;
    void *to;

    *size = before ? 2 * before : GROW_MIN;
    to = zeroed(*size * entry);
    if (before) {
        memcpy(to, table, before * entry);
        arena_free(table, before * entry);
    }
    return to;
}

/* --- messages ------------------------------------------------------------------------------------
 */

static struct waiting_message *waiting_of(struct message *message)
{
    return (struct waiting_message *)((uint8_t *)message -
                                      offsetof(struct waiting_message, message));
}

static uint64_t wanted(const struct message *message)
{
    return message->total < message->capacity ? message->total : message->capacity;
}

/* The next at most *size bytes of it go to its receive: to *to, *size of them; then
 * inbox_payload_came(). What the receive has no room for goes nowhere. */
static const char *deliver(struct mailbox *m, struct message *message, size_t *size, uint8_t **to)
{
    uint64_t left = wanted(message) - message->delivered;
    struct cw_message header = {.req = message->req,
                                .tag = message->tag,
                                .total = message->total,
                                .flags = message->begun ? 0 : CW_MESSAGE_FIRST};

    if (*size > left)
        *size = (size_t)left;
    if (*size == left) {
        header.flags |= CW_MESSAGE_LAST;
        header.event = m->inbox->event + 1;
    }
    header.flags |= message->capacity < message->total ? CW_MESSAGE_TRUNC : 0;
    header.flags |= message->type == CW_PIECE_AM ? CW_MESSAGE_ACTIVE : 0;
    message->begun = true;
    message->delivered += *size;
    return inbox_message(m->inbox, m->requests, &header, *size, to);
}

static bool is_delivered(const struct message *message)
{
    return message->begun && message->delivered == wanted(message);
}

static void add_news(struct mailbox *m, struct mailbox_news news)
{
    if (m->news_count == m->news_size)
        m->news = grown(m->news, &m->news_size, sizeof(*m->news));
    m->news[m->news_count++] = news;
}

/* The relay hands over what there is room for, and offers the rest. */
static void tell_room(struct mailbox *m)
{
    m->far_told = m->far_matched;
    add_news(m, (struct mailbox_news){.kind = NEWS_ROOM, .bytes = m->far_told + m->far_room});
}

static void note_matched(struct mailbox *m, const struct message *message)
{
    if (message->offered) /* its sender hears of it when the relay does */
        add_news(m, (struct mailbox_news){.kind = NEWS_ASKED,
                                          .req = message->req,
                                          .msg = message->number,
                                          .bytes = message->capacity});
    else if (message->type == CW_PIECE_SYNC)
        add_news(m, (struct mailbox_news){.kind = message->far ? NEWS_MATCHED : NEWS_SENT,
                                          .rank = message->src,
                                          .req = message->sender_req});
}

static void give_receive(struct mailbox *m, struct message *message, uint32_t req,
                         uint64_t capacity)
{
    message->matched = true;
    message->req = req;
    message->capacity = capacity;
    m->received++;
    m->received_bytes += message->total < capacity ? message->total : capacity;
    note_matched(m, message);
}

/* Of one that waits. */
static size_t size_of(const struct waiting_message *waiting)
{
    return sizeof(*waiting) + (waiting->message.offered ? 0 : waiting->message.total);
}

/* ... of the room for those that came through the relay. */
static uint64_t far_taken(const struct message *message)
{
    bool waits = message->far && !message->offered && message->type != CW_PIECE_AM;

    return waits ? cw_room_taken(message->total) : 0;
}

/* It waits no more. */
static void leave(struct mailbox *m, struct waiting_message *waiting)
{
    uint64_t far = far_taken(&waiting->message);

    if (!waiting->message.far)
        m->waiting_bytes -= size_of(waiting);
    m->far_bytes -= far;
    m->far_matched += far;
    if (m->far_matched - m->far_told > m->far_room / MAILBOX_FAR_PARTS)
        tell_room(m);
    arena_free(waiting, size_of(waiting));
}

/* An offer has its receive, to which the relay hands it then. */
static void ask(struct mailbox *m, struct waiting_message *offer, uint32_t req, uint64_t capacity)
{
    struct request *request = request_find(m->requests, req);

    if (!request)
        fatal_exit(CW_REPORT_FATAL, "a receive of this rank has gone before its message");
    request->offered = REQUEST_AWAITED;
    give_receive(m, &offer->message, req, capacity);
    leave(m, offer);
}

/* One that waited has its receive: this rank's own, which the inbox takes. What is still to come
 * goes there straight. */
static void receive_waiting(struct mailbox *m, struct waiting_message *from, uint32_t req,
                            uint64_t capacity)
{
    struct message *message = &from->message;
    struct mailbox_sender *sender = message->far ? NULL : &m->senders[message->src];
    size_t size = (size_t)message->arrived;
    const char *wrong;
    uint8_t *to;

    if (message->offered) {
        ask(m, from, req, capacity);
        return;
    }
    if (sender && sender->coming == message) {
        sender->direct = *message;
        sender->coming = message = &sender->direct;
    }
    give_receive(m, message, req, capacity);
    wrong = deliver(m, message, &size, &to);
    if (wrong)
        fatal_exit(CW_REPORT_FATAL, "a receive of this rank gets %s", wrong);
    if (size)
        cw_copy(to, from->bytes, size);
    inbox_payload_came(m->inbox);
    leave(m, from);
}

/* --- pieces --------------------------------------------------------------------------------------
 */

static bool has_room(const struct mailbox *m, uint64_t size)
{
    uint64_t used = m->waiting_bytes + m->active_bytes;
    uint64_t room = m->room + m->stretched;

    return used <= room && size <= room - used;
}

bool mailbox_takes(struct mailbox *m, const struct cw_piece *piece)
{
    if (!m->inbox->happened && !m->inbox->open_ams)
        m->active_bytes = 0;
    return piece->type > CW_PIECE_AM || piece->total > CW_MESSAGE_MAX ||
           has_room(m, sizeof(struct waiting_message) + piece->total) ||
           (piece->type != CW_PIECE_AM && match_find_posted(&m->index, piece->tag));
}

bool mailbox_stretches(struct mailbox *m, uint64_t total)
{
    uint64_t more = sizeof(struct waiting_message) + total;

    if (total > CW_MESSAGE_MAX || m->stretched + more > m->room)
        return false;
    m->stretched += more;
    return true;
}

static struct message *keep(struct mailbox *m, const struct message *message)
{
    struct waiting_message *to = arena_alloc(sizeof(*to) + message->total);

    to->waiting.tag = message->tag;
    to->message = *message;
    m->waiting_bytes += sizeof(*to) + message->total;
    m->unexpected++;
    match_wait(&m->index, &to->waiting); /* the arena ends the process where it has no room */
    return &to->message;
}

static struct message *begin(struct mailbox *m, uint32_t src, const struct cw_piece *piece)
{
    struct message *message = &m->senders[src].direct;
    struct match_posted *posted;

    *message = (struct message){.tag = piece->tag,
                                .total = piece->total,
                                .src = src,
                                .type = piece->type,
                                .sender_req = piece->req};
    if (piece->type == CW_PIECE_AM) {
        m->active_bytes += message->total;
        give_receive(m, message, m->streams++, UINT64_MAX);
    } else if ((posted = match_find_posted(&m->index, piece->tag))) {
        match_unpost(&m->index, posted);
        give_receive(m, message, posted->req, posted->capacity);
        arena_free(posted, sizeof(*posted));
    } else {
        message = keep(m, message);
    }
    return message;
}

static const char *arrive(struct mailbox *m, struct message *message, const struct cw_piece *piece,
                          const struct cw_stream *stream)
{
    const char *wrong = NULL;
    size_t size = piece->size;
    uint8_t *to = NULL;
    bool goes = message->matched && !is_delivered(message);

    if (goes)
        wrong = deliver(m, message, &size, &to);
    else if (!message->matched)
        to = waiting_of(message)->bytes + message->arrived;
    if (wrong)
        return wrong;
    if (size && to)
        cw_copy(to, cw_stream_payload(stream), size);
    if (goes)
        inbox_payload_came(m->inbox);
    message->arrived += piece->size;
    if (message->arrived == message->total)
        m->senders[message->src].coming = NULL;
    return NULL;
}

const char *mailbox_sent(struct mailbox *m, uint32_t req)
{
    const struct cw_done done = {.req = req, .event = m->inbox->event + 1};

    return inbox_done(m->inbox, m->requests, CW_FRAME_SENT, &done);
}

const char *mailbox_piece(struct mailbox *m, uint32_t src, const struct cw_piece *piece,
                          const struct cw_stream *stream)
{
    struct message *message = m->senders[src].coming;

    if (piece->type == CW_PIECE_SENT)
        return mailbox_sent(m, piece->req);
    if ((piece->type == CW_PIECE_MORE) != (message != NULL))
        return message ? "a message that begins amid another one"
                       : "more of a message that has not begun";
    if (!message && piece->total > CW_MESSAGE_MAX)
        return "a message above the bound";
    if (piece->size > (message ? message->total - message->arrived : piece->total))
        return "more bytes than a message has";
    if (!message)
        message = m->senders[src].coming = begin(m, src, piece);
    return arrive(m, message, piece, stream);
}

/* --- messages through the relay ------------------------------------------------------------------
 */

void mailbox_open_far(struct mailbox *m)
{
    m->far_room = m->room / MAILBOX_FAR_SHARE;
    if (m->far_room > MAILBOX_FAR_MAX)
        m->far_room = MAILBOX_FAR_MAX;
    tell_room(m);
}

static uint32_t type_of(const struct cw_message *header)
{
    if (header->flags & CW_MESSAGE_ACTIVE)
        return CW_PIECE_AM;
    return header->flags & CW_MESSAGE_SYNC ? CW_PIECE_SYNC : CW_PIECE_TAG;
}

/* As the header says. */
static struct message far_message(const struct cw_message *header)
{
    return (struct message){.tag = header->tag,
                            .total = header->total,
                            .arrived = header->total,
                            .src = header->req,
                            .far = true,
                            .offered = header->flags & CW_MESSAGE_OFFERED,
                            .number = header->msg,
                            .type = type_of(header),
                            .sender_req = header->sync};
}

struct waiting_message *mailbox_make(const struct cw_message *header)
{
    struct waiting_message of = {.waiting = {.tag = header->tag}, .message = far_message(header)};
    struct waiting_message *to = arena_alloc(size_of(&of));

    *to = of;
    return to;
}

uint64_t mailbox_needs(const struct cw_message *header)
{
    const struct message message = far_message(header);

    return far_taken(&message);
}

uint8_t *mailbox_bytes(struct waiting_message *message)
{
    return message->bytes;
}

void mailbox_drop(struct waiting_message *message)
{
    arena_free(message, size_of(message));
}

void mailbox_take(struct mailbox *m, struct waiting_message *message)
{
    bool active = message->message.type == CW_PIECE_AM;
    struct match_posted *posted =
        active ? NULL : match_find_posted(&m->index, message->waiting.tag);

    m->far_bytes += far_taken(&message->message);
    if (active) {
        receive_waiting(m, message, m->streams++, UINT64_MAX);
    } else if (posted) {
        match_unpost(&m->index, posted);
        receive_waiting(m, message, posted->req, posted->capacity);
        arena_free(posted, sizeof(*posted));
    } else {
        m->unexpected++;
        match_wait(&m->index, &message->waiting);
    }
}

/* --- what the rank asks for ----------------------------------------------------------------------
 */

void mailbox_recv(struct mailbox *m, const struct cw_recv *recv)
{
    struct match_waiting *waiting = match_find_waiting(&m->index, recv->tag, recv->mask);
    struct match_posted *posted;

    if (waiting) {
        match_unwait(&m->index, waiting);
        receive_waiting(m, (struct waiting_message *)waiting, recv->req, recv->capacity);
        return;
    }
    posted = arena_alloc(sizeof(*posted));
    *posted = (struct match_posted){
        .req = recv->req, .tag = recv->tag, .mask = recv->mask, .capacity = recv->capacity};
    match_post(&m->index, posted); /* as keep() */
}

void mailbox_mrecv(struct mailbox *m, const struct cw_mrecv *mrecv)
{
    struct waiting_message *message =
        mrecv->msg < m->taken_out_size ? m->taken_out[mrecv->msg] : NULL;

    if (!message)
        fatal_exit(CW_REPORT_FATAL, "MPICH receives message %u, which no probe took out",
                   mrecv->msg);
    m->taken_out[mrecv->msg] = NULL;
    receive_waiting(m, message, mrecv->req, mrecv->capacity);
}

void mailbox_cancel(struct mailbox *m, const struct cw_recv *cancel)
{
    const struct cw_done done = {.req = cancel->req, .event = m->inbox->event + 1};
    struct match_posted *posted =
        match_find_request(&m->index, cancel->req, cancel->tag, cancel->mask);

    if (!posted)
        return;
    match_unpost(&m->index, posted);
    arena_free(posted, sizeof(*posted));
    inbox_done(m->inbox, m->requests, CW_FRAME_CANCELED, &done);
}

static uint32_t take_out(struct mailbox *m, struct match_waiting *waiting)
{
    uint32_t at = 0;

    while (at < m->taken_out_size && m->taken_out[at])
        at++;
    if (at == MAILBOX_TAKEN_OUT_MAX)
        fatal_exit(CW_REPORT_FATAL, "%u messages were taken out by MPI_Mprobe and not received",
                   MAILBOX_TAKEN_OUT_MAX);
    if (at == m->taken_out_size)
        m->taken_out = grown(m->taken_out, &m->taken_out_size, sizeof(struct waiting_message *));
    match_unwait(&m->index, waiting);
    m->taken_out[at] = (struct waiting_message *)waiting;
    return at;
}

struct cw_probed mailbox_probe(struct mailbox *m, uint64_t tag, uint64_t mask, bool remove)
{
    struct match_waiting *waiting = match_find_waiting(&m->index, tag, mask);
    struct cw_probed probed = {.found = waiting != NULL};

    if (!waiting)
        return probed;
    probed.tag = waiting->tag;
    probed.total = ((struct waiting_message *)waiting)->message.total;
    if (remove)
        probed.msg = take_out(m, waiting);
    return probed;
}
