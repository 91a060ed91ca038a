#include "rdevice/arrivals.h"
#include "rdevice/arena.h"

struct arrival {
    struct arrival *next;
    struct waiting_message *message; /* one, or an offer */
    struct request *asked;           /* or an offer that has come to its receive; else: a send */
    uint32_t req;                    /* that was matched; of a message, its sender */
    uint64_t received;
    uint64_t total; /* bytes that come with it */
    uint64_t needs; /* room in the mailbox */
};

void arrivals_begin(struct arrivals *a, struct mailbox *mailbox)
{
    *a = (struct arrivals){.mailbox = mailbox};
    a->whole_tail = &a->whole;
}

static struct arrival *new_arrival(const struct arrival *of)
{
    struct arrival *arrival = arena_alloc(sizeof(*arrival));

    *arrival = *of;
    return arrival;
}

/* It is here no more. */
static void free_arrival(struct arrivals *a, struct arrival *arrival)
{
    a->room_taken -= arrival->needs;
    arena_free(arrival, sizeof(*arrival));
}

static void drop_arrival(struct arrivals *a, struct arrival *arrival)
{
    if (arrival->message)
        mailbox_drop(arrival->message);
    free_arrival(a, arrival);
}

/* It is an event: the next one, as the number said. */
static void come(struct arrivals *a, struct arrival *arrival)
{
    arrival->next = NULL;
    *a->whole_tail = arrival;
    a->whole_tail = &arrival->next;
    a->bytes += sizeof(*arrival) + arrival->total;
    a->event++;
}

/* --- messages ------------------------------------------------------------------------------------
 */

static struct arrival **find(struct arrivals *a, uint32_t src)
{
    struct arrival **at = &a->coming;

    while (*at && (*at)->req != src)
        at = &(*at)->next;
    return at;
}

/* False: the relay was not told that there is room for it. */
static bool begin_message(struct arrivals *a, const struct cw_message *header)
{
    const struct mailbox *m = a->mailbox;
    bool offered = header->flags & CW_MESSAGE_OFFERED;
    uint64_t needs = mailbox_needs(header);

    if (needs > 0 && m->far_bytes + a->room_taken + needs > m->far_room)
        return false;
    a->room_taken += needs;
    a->coming = new_arrival(&(struct arrival){.next = a->coming,
                                              .message = mailbox_make(header),
                                              .req = header->req,
                                              .total = offered ? 0 : header->total,
                                              .needs = needs});
    return true;
}

const char *arrivals_on_message(struct arrivals *a, const uint8_t *body, size_t size, uint8_t **to)
{
    struct cw_message header;
    struct arrival *arrival;
    bool first, last;

    if (!cw_arrival_get(body, &header))
        return "ARRIVAL that cannot be read";
    first = header.flags & CW_MESSAGE_FIRST;
    last = header.flags & CW_MESSAGE_LAST;
    if (first != !*find(a, header.req))
        return first ? "a message that begins amid another one"
                     : "more of a message that has not begun";
    if (first && !begin_message(a, &header))
        return "a message for which there is no room";
    arrival = *find(a, header.req);
    if (size > arrival->total - arrival->received ||
        last != (size == arrival->total - arrival->received))
        return "ARRIVAL whose bytes do not add up";
    if (last && header.event != a->event + 1)
        return "events out of order";
    *to = mailbox_bytes(arrival->message) + arrival->received;
    arrival->received += size;
    a->at = arrival;
    a->ends = last;
    return NULL;
}

const char *arrivals_on_asked(struct arrivals *a, const uint8_t *body, size_t size, uint8_t **to)
{
    const struct mailbox *m = a->mailbox;
    struct request *request;
    struct cw_message header;
    const char *wrong;

    if (!cw_message_get(body, &header))
        return "MESSAGE that cannot be read";
    request = request_find(m->requests, header.req);
    if (!request || request->offered != REQUEST_AWAITED)
        return "MESSAGE that this rank has not asked for";
    a->ends = header.flags & CW_MESSAGE_LAST;
    if (a->ends && header.event != a->event + 1)
        return "events out of order";
    wrong = inbox_place(request, &header, size, to);
    if (!wrong && a->ends)
        a->at = new_arrival(&(struct arrival){.asked = request});
    return wrong;
}

void arrivals_payload_came(struct arrivals *a)
{
    struct arrival *arrival = a->at;

    a->at = NULL;
    if (!a->ends)
        return;
    a->ends = false;
    if (arrival->asked)
        arrival->asked->offered = REQUEST_HERE;
    else
        *find(a, arrival->req) = arrival->next;
    come(a, arrival);
}

const char *arrivals_on_sent(struct arrivals *a, const uint8_t *body)
{
    struct cw_done done;

    if (!cw_done_get(body, &done))
        return "SENT that cannot be read";
    if (done.event != a->event + 1)
        return "events out of order";
    come(a, new_arrival(&(struct arrival){.req = done.req}));
    return NULL;
}

const char *arrivals_take(struct arrivals *a)
{
    struct arrival *arrival = a->whole;
    const char *wrong = NULL;

    a->whole = arrival->next;
    if (!a->whole)
        a->whole_tail = &a->whole;
    a->bytes -= sizeof(*arrival) + arrival->total;
    a->taken++;
    if (arrival->message) {
        mailbox_take(a->mailbox, arrival->message);
    } else if (arrival->asked) {
        arrival->asked->offered = REQUEST_NOT_OFFERED;
        inbox_received(a->mailbox->inbox, arrival->asked);
    } else {
        wrong = mailbox_sent(a->mailbox, arrival->req);
    }
    free_arrival(a, arrival);
    return wrong;
}

/* --- what comes again ----------------------------------------------------------------------------
 */

static void drop_all(struct arrivals *a, struct arrival **list)
{
    while (*list) {
        struct arrival *arrival = *list;

        *list = arrival->next;
        drop_arrival(a, arrival);
    }
}

/* `here`: also what had been asked for, and is here. */
static void begin_anew(struct arrivals *a, bool here)
{
    if (a->at && a->at->asked)
        drop_arrival(a, a->at);
    a->at = NULL;
    a->ends = false;
    drop_all(a, &a->coming);
    inbox_await_again(a->mailbox->requests, here);
}

void arrivals_on_return(struct arrivals *a)
{
    begin_anew(a, false);
}

void arrivals_on_restore(struct arrivals *a)
{
    begin_anew(a, true);
    drop_all(a, &a->whole);
    a->whole_tail = &a->whole;
    a->bytes = 0;
    a->event = a->taken;
}
