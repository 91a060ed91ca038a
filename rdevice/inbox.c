#include "rdevice/inbox.h"
#include "rdevice/arena.h"

#include <string.h>
#include <sys/uio.h>

void inbox_begin(struct inbox *b)
{
    *b = (struct inbox){.happened = NULL};
    b->happened_tail = &b->happened;
    b->own_tail = &b->own;
}

static const char *take_event_number(struct inbox *b, struct event *event, uint64_t number)
{
    if (number != b->event + 1)
        return "events out of order";
    b->event = event->number = number;
    return NULL;
}

static void happen(struct inbox *b, struct event *event)
{
    event->next = NULL;
    *b->happened_tail = event;
    b->last_happened = event->number;
    b->happened_tail = &event->next;
}

/* --- messages -----------------------------------------------------------------------------------
 */

void inbox_payload_came(struct inbox *b)
{
    if (b->ends)
        happen(b, b->ends);
    b->ends = NULL;
}

static struct am *am_new(struct inbox *b, const struct cw_message *m)
{
    struct am *am = arena_alloc(sizeof(*am) + m->total);

    *am = (struct am){.event = {.active = true},
                      .next_open = b->open_ams,
                      .stream = m->req,
                      .id = m->tag,
                      .total = m->total};
    b->open_ams = am;
    return am;
}

static struct am *am_find(const struct inbox *b, uint32_t stream)
{
    struct am *am = b->open_ams;

    while (am && am->stream != stream)
        am = am->next_open;
    return am;
}

static void am_close(struct inbox *b, struct am *am)
{
    struct am **at = &b->open_ams;

    while (*at != am)
        at = &(*at)->next_open;
    *at = am->next_open;
}

static const char *on_active_message(struct inbox *b, const struct cw_message *m, size_t size,
                                     uint8_t **to)
{
    bool last = m->flags & CW_MESSAGE_LAST;
    const char *wrong = NULL;
    struct am *am;

    if ((m->flags & CW_MESSAGE_FIRST) && m->total > CW_MESSAGE_MAX)
        return "an active message above the bound";
    am = m->flags & CW_MESSAGE_FIRST ? am_new(b, m) : am_find(b, m->req);
    if (!am)
        return "more of an active message that has not begun";
    if (size > am->total - am->received || (last && am->received + size != am->total))
        return "an active message whose bytes do not add up";
    *to = am->bytes + am->received;
    am->received += size;
    if (last) {
        wrong = take_event_number(b, &am->event, m->event);
        am_close(b, am);
    }
    b->ends = last ? &am->event : NULL;
    return wrong;
}

/* Bytes that the receive will get in all: the message, or what the receive has room for. */
static size_t request_wanted(const struct request *request)
{
    return request->total < request->capacity ? request->total : request->capacity;
}

static void request_begin(struct request *request, const struct cw_message *m)
{
    request->begun = true;
    request->tag = m->tag;
    request->total = m->total;
    request->status = m->flags & CW_MESSAGE_TRUNC ? REQUEST_TRUNCATED : REQUEST_OK;
    if (request->staged) {
        request->staging_size = request_wanted(request);
        request->target = arena_alloc(request->staging_size);
    }
}

const char *inbox_place(struct request *request, const struct cw_message *m, size_t size,
                        uint8_t **to)
{
    bool last = m->flags & CW_MESSAGE_LAST;
    size_t left;

    if (!request || !request->receiving || request->begun == !!(m->flags & CW_MESSAGE_FIRST))
        return "MESSAGE for a receive that is not posted";
    if (!request->begun)
        request_begin(request, m);
    left = request_wanted(request) - request->received;
    if (size > left || last != (size == left))
        return "MESSAGE whose bytes do not add up";
    *to = size ? request->target + request->received : NULL;
    request->received += size;
    return NULL;
}

const char *inbox_message(struct inbox *b, const struct request_table *requests,
                          const struct cw_message *m, size_t size, uint8_t **to)
{
    bool last = m->flags & CW_MESSAGE_LAST;
    struct request *request;
    const char *wrong;

    if (m->flags & CW_MESSAGE_ACTIVE)
        return on_active_message(b, m, size, to);
    request = request_find(requests, m->req);
    wrong = inbox_place(request, m, size, to);
    if (wrong)
        return wrong;
    request->busy = !last;
    b->ends = last ? &request->event : NULL;
    return last ? take_event_number(b, &request->event, m->event) : NULL;
}

void inbox_received(struct inbox *b, struct request *request)
{
    request->event.number = ++b->event;
    request->busy = false;
    happen(b, &request->event);
}

const char *inbox_on_message(struct inbox *b, const struct request_table *requests,
                             const uint8_t *body, size_t size, uint8_t **to)
{
    struct cw_message m;

    return cw_message_get(body, &m) ? inbox_message(b, requests, &m, size, to)
                                    : "MESSAGE that cannot be read";
}

/* --- a relay that is back -----------------------------------------------------------------------
 */

static void drop_am(struct am *am)
{
    arena_free(am, sizeof(*am) + am->total);
}

static void restart(void *ctx, struct request *request)
{
    (void)ctx;
    if (!request->receiving || !request->begun)
        return;
    if (request->staged)
        arena_free(request->target, request->staging_size);
    request->begun = false;
    request->received = 0;
}

static void await_again(void *here, struct request *request)
{
    if (request->offered == REQUEST_NOT_OFFERED ||
        (request->offered == REQUEST_HERE && !*(const bool *)here))
        return;
    request->offered = REQUEST_AWAITED;
    restart(NULL, request);
}

void inbox_await_again(const struct request_table *requests, bool here)
{
    request_each(requests, await_again, &here);
}

void inbox_on_return(struct inbox *b, const struct request_table *requests)
{
    struct event *last = b->ends;

    b->ends = NULL;
    if (last) {
        b->event--;
        if (last->active)
            drop_am((struct am *)last);
        else
            ((struct request *)last)->busy = true;
    }
    while (b->open_ams) {
        struct am *am = b->open_ams;

        b->open_ams = am->next_open;
        drop_am(am);
    }
    request_each(requests, restart, NULL);
}

void inbox_on_restore(struct inbox *b, const struct request_table *requests)
{
    uint64_t taken = inbox_last_taken(b);
    struct event *event = b->happened;

    while (event) {
        struct event *next = event->next;

        if (event->active)
            drop_am((struct am *)event);
        else
            ((struct request *)event)->busy = true;
        event = next;
    }
    b->happened = NULL;
    b->happened_tail = &b->happened;
    inbox_on_return(b, requests);
    b->event = taken;
}

/* --- other events -------------------------------------------------------------------------------
 */

const char *inbox_done(struct inbox *b, const struct request_table *requests, uint8_t type,
                       const struct cw_done *done)
{
    struct request *request = request_find(requests, done->req);
    const char *wrong;

    if (!request || request->receiving != (type == CW_FRAME_CANCELED) || request->begun)
        return "SENT or CANCELED for a request that does not wait for it";
    wrong = take_event_number(b, &request->event, done->event);
    if (wrong)
        return wrong;
    request->status = type == CW_FRAME_CANCELED ? REQUEST_CANCELED : REQUEST_OK;
    request->busy = false;
    happen(b, &request->event);
    return NULL;
}

const char *inbox_on_done(struct inbox *b, const struct request_table *requests, uint8_t type,
                          const uint8_t *body)
{
    struct cw_done done;

    return cw_done_get(body, &done) ? inbox_done(b, requests, type, &done)
                                    : "SENT or CANCELED that cannot be read";
}

static void add_own(struct inbox *b, struct event *event)
{
    event->next = NULL;
    *b->own_tail = event;
    b->own_tail = &event->next;
}

void inbox_complete_own(struct inbox *b, struct request *request)
{
    request->busy = false;
    add_own(b, &request->event);
}

void inbox_add_own(struct inbox *b, uint64_t id, const struct iovec *pieces, int count)
{
    struct am *am;
    size_t total = 0;

    for (int i = 0; i < count; i++)
        total += pieces[i].iov_len;
    am = arena_alloc(sizeof(*am) + total);
    *am = (struct am){.event = {.active = true}, .id = id, .total = total};
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len)
            memcpy(am->bytes + am->received, pieces[i].iov_base, pieces[i].iov_len);
        am->received += pieces[i].iov_len;
    }
    add_own(b, &am->event);
}

struct event *inbox_take(struct inbox *b)
{
    struct event *all;

    *b->own_tail = b->happened;
    all = b->own;
    b->happened = b->own = NULL;
    b->happened_tail = &b->happened;
    b->own_tail = &b->own;
    return all;
}
