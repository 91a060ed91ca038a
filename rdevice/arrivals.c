#include "rdevice/arrivals.h"
#include "rdevice/arena.h"

struct arrival {
    struct arrival *next;
    struct waiting_message *message; /* NULL: a synchronous send of this rank was matched */
    uint32_t req;                    /* that one; of a message, its sender */
    uint64_t received;
    uint64_t total;
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

static void drop_arrival(struct arrival *arrival)
{
    if (arrival->message)
        mailbox_drop(arrival->message);
    arena_free(arrival, sizeof(*arrival));
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

static void begin_message(struct arrivals *a, const struct cw_message *header)
{
    a->coming = new_arrival(&(struct arrival){.next = a->coming,
                                              .message = mailbox_make(a->mailbox, header, a->bytes),
                                              .req = header->req,
                                              .total = header->total});
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
    if (first)
        begin_message(a, &header);
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

void arrivals_payload_came(struct arrivals *a)
{
    struct arrival *arrival = a->at;

    a->at = NULL;
    if (!a->ends)
        return;
    a->ends = false;
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
    if (arrival->message)
        mailbox_take(a->mailbox, arrival->message);
    else
        wrong = mailbox_sent(a->mailbox, arrival->req);
    arena_free(arrival, sizeof(*arrival));
    return wrong;
}

/* --- what comes again ----------------------------------------------------------------------------
 */

static void drop_all(struct arrival **list)
{
    while (*list) {
        struct arrival *arrival = *list;

        *list = arrival->next;
        drop_arrival(arrival);
    }
}

void arrivals_on_return(struct arrivals *a)
{
    a->at = NULL;
    a->ends = false;
    drop_all(&a->coming);
}

void arrivals_on_restore(struct arrivals *a)
{
    arrivals_on_return(a);
    drop_all(&a->whole);
    a->whole_tail = &a->whole;
    a->bytes = 0;
    a->event = a->taken;
}
