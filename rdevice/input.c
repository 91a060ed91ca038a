/* From the relay to the device: frames, and payload straight into the program's buffers. */
#include "common/clock.h"
#include "rdevice/arena.h"
#include "rdevice/clock.h"
#include "rdevice/device.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define DIRECT_MIN 4096u /* payload bytes still to come that are worth reading past the buffer */
#define RING_READ                                                                                  \
    1024 /* bytes taken from a ring at a time, to know what comes: taking costs little there */

static void broken(const char *what) __attribute__((noreturn));

static void broken(const char *what)
{
    /* an event that does not fit is the log's, and the program has not asked for it */
    if (device.replay.active)
        replay_mismatch(what);
    if (device.replay.active)
        device_fatal(CW_REPORT_FATAL,
                     "incarnation %u does not repeat what it did before: relay %s has a log of "
                     "something else: %s",
                     device.setup.incarnation, device.setup.address, what);
    device_fatal(CW_REPORT_FATAL, "relay %s broke the protocol: %s", device.setup.address, what);
}

static void take_event_number(struct device_event *event, uint64_t number)
{
    if (number != device.event + 1)
        broken("events out of order");
    device.event = event->number = number;
}

static void happen(struct device_event *event)
{
    event->next = NULL;
    *device.happened_tail = event;
    device.last_happened = event->number;
    device.happened_tail = &event->next;
}

/* The payload of `size` bytes goes to `to`; after the last one `event` has happened. */
static void set_sink(uint8_t *to, size_t size, struct device_event *event)
{
    device.sink = to;
    device.sink_left = size;
    device.sink_event = event;
    device.amid = !event;
    if (size == 0 && event)
        happen(event);
}

static struct device_am *am_find(const struct cw_message *m)
{
    struct device_am **at = &device.open_ams;
    struct device_am *am;

    if (m->flags & CW_MESSAGE_FIRST) {
        if (m->total > CW_MESSAGE_MAX)
            broken("an active message above the bound");
        am = device_alloc(sizeof(*am) + m->total);
        *am = (struct device_am){.event = {.active = true},
                                 .next_open = device.open_ams,
                                 .stream = m->req,
                                 .id = m->tag,
                                 .total = m->total};
        device.open_ams = am;
        return am;
    }
    while (*at && (*at)->stream != m->req)
        at = &(*at)->next_open;
    if (!*at)
        broken("more of an active message that has not begun");
    return *at;
}

static void am_close(struct device_am *am)
{
    struct device_am **at = &device.open_ams;

    while (*at != am)
        at = &(*at)->next_open;
    *at = am->next_open;
}

static void on_active_message(const struct cw_message *m, size_t size)
{
    struct device_am *am = am_find(m);
    uint8_t *to = am->bytes + am->received;
    bool last = m->flags & CW_MESSAGE_LAST;

    if (size > am->total - am->received || (last && am->received + size != am->total))
        broken("an active message whose bytes do not add up");
    am->received += size;
    if (last) {
        take_event_number(&am->event, m->event);
        am_close(am);
    }
    set_sink(to, size, last ? &am->event : NULL);
}

/* Bytes that the receive will get in all: the message, or what the receive has room for. */
static size_t request_wanted(const struct device_request *request)
{
    return request->total < request->capacity ? request->total : request->capacity;
}

static void request_begin(struct device_request *request, const struct cw_message *m)
{
    request->begun = true;
    request->tag = m->tag;
    request->total = m->total;
    request->status = m->flags & CW_MESSAGE_TRUNC ? DEVICE_TRUNCATED : DEVICE_OK;
    if (request->staged) {
        request->staging_size = request_wanted(request);
        request->target = device_alloc(request->staging_size);
    }
}

static void on_message(const uint8_t *body, size_t size)
{
    struct device_request *request;
    struct cw_message m;
    size_t left;
    uint8_t *to;
    bool last;

    if (!cw_message_get(body, &m))
        broken("MESSAGE that cannot be read");
    last = m.flags & CW_MESSAGE_LAST;
    if (m.flags & CW_MESSAGE_ACTIVE) {
        on_active_message(&m, size);
        return;
    }
    request = request_find(m.req);
    if (!request || !request->receiving || request->begun == !!(m.flags & CW_MESSAGE_FIRST))
        broken("MESSAGE for a receive that is not posted");
    if (!request->begun)
        request_begin(request, &m);
    left = request_wanted(request) - request->received;
    if (size > left || last != (size == left))
        broken("MESSAGE whose bytes do not add up");
    to = size ? request->target + request->received : NULL;
    request->received += size;
    request->busy = !last;
    if (last)
        take_event_number(&request->event, m.event);
    set_sink(to, size, last ? &request->event : NULL);
}

static void on_done(uint8_t type, const uint8_t *body)
{
    struct device_request *request;
    struct cw_done done;

    if (!cw_done_get(body, &done))
        broken("SENT or CANCELED that cannot be read");
    request = request_find(done.req);
    if (!request || request->receiving != (type == CW_FRAME_CANCELED) || request->begun)
        broken("SENT or CANCELED for a request that does not wait for it");
    take_event_number(&request->event, done.event);
    request->status = type == CW_FRAME_CANCELED ? DEVICE_CANCELED : DEVICE_OK;
    request->busy = false;
    happen(&request->event);
}

/* At once: a HINT that follows in the same read must find it. */
static void remember_none(const struct cw_probe *probe)
{
    uint32_t at = device.none_count < DEVICE_NONE_KNOWN ? device.none_count++ : 0;

    device.none[at] = *probe;
}

static void on_probed(const uint8_t *body)
{
    struct cw_probed probed;

    if (!cw_probed_get(body, &probed))
        broken("PROBED that cannot be read");
    if (device.replay.active) {
        replay_on_answer(&probed);
        return;
    }
    device.probe = (struct device_probe){
        .found = probed.found, .msg = probed.msg, .tag = probed.tag, .total = probed.total};
    device.probe_answered = true;
    device.mailbox_empty = probed.unexpected == 0;
    if (!probed.found)
        remember_none(&device.asked);
}

static void on_refused(const uint8_t *body, size_t size)
{
    struct cw_notice_body refused;

    if (!cw_notice_get(body, size, &refused))
        broken("REFUSED that cannot be read");
    device_fatal(CW_REPORT_FATAL, "relay %s refuses to go on: %s", device.setup.address,
                 refused.text);
}

static void on_taken(const uint8_t *body)
{
    struct cw_taken taken;

    if (!cw_taken_get(body, &taken) || taken.event <= device.event || !device.replay.active)
        broken("TAKEN that does not add up");
    replay_on_taken(&taken);
}

/* `body` has the fixed part of the type, or all of it where wants_whole() says so; for MESSAGE,
 * `more` payload bytes follow as they come. */
static void dispatch(uint8_t type, const uint8_t *body, size_t length, size_t more)
{
    switch (type) {
    case CW_FRAME_MESSAGE:
        on_message(body, more);
        break;
    case CW_FRAME_SENT:
    case CW_FRAME_CANCELED:
        on_done(type, body);
        break;
    case CW_FRAME_PROBED:
        on_probed(body);
        break;
    case CW_FRAME_TAKEN:
        on_taken(body);
        break;
    case CW_FRAME_READINGS:
        clock_repeat(body, length);
        break;
    case CW_FRAME_REPLAYED:
        replay_on_end();
        break;
    case CW_FRAME_HINT:
        device.mailbox_empty = false;
        device.none_count = 0;
        break;
    case CW_FRAME_FAREWELL:
        device.farewell = true;
        break;
    case CW_FRAME_REFUSED:
        on_refused(body, length);
        break;
    case CW_FRAME_ACK:
        break;
    default:
        broken("a frame that a rank does not expect");
    }
}

/* Types whose variable part is wanted with the fixed one; the type bounds it. */
static bool wants_whole(uint8_t type)
{
    return type == CW_FRAME_REFUSED || type == CW_FRAME_READINGS;
}

/* Acts on the frame at the start of the buffer; false when it is not complete. */
static bool take_frame(void)
{
    const uint8_t *at = device.in + device.in_start;
    size_t there = device.in_end - device.in_start;
    struct cw_header header;
    struct cw_err err;
    size_t needed;

    if (there < CW_FRAME_HEADER)
        return false;
    needed = cw_frame_fixed(at[4]);
    if (there < CW_FRAME_HEADER + needed)
        return false;
    if (cw_frame_check(at, &header, &err) < 0)
        broken(err.text);
    if (wants_whole(header.type))
        needed = header.length;
    if (there < CW_FRAME_HEADER + needed)
        return false;
    if (cw_frame_accept(&device.session, at, &header, &err) < 0)
        broken(err.text);
    device.in_start += CW_FRAME_HEADER + needed;
    dispatch(header.type, at + CW_FRAME_HEADER, header.length, header.length - needed);
    return true;
}

static void sink_advance(size_t size)
{
    device.sink += size;
    device.sink_left -= size;
    if (device.sink_left == 0 && device.sink_event)
        happen(device.sink_event);
}

static bool take_payload(void)
{
    size_t there = device.in_end - device.in_start;
    size_t size = there < device.sink_left ? there : device.sink_left;

    if (size == 0)
        return false;
    memcpy(device.sink, device.in + device.in_start, size);
    device.in_start += size;
    sink_advance(size);
    return true;
}

/* Large payload is read to its place, and only what follows it into the buffer. */
static ssize_t receive(void)
{
    bool direct = device.sink_left >= DIRECT_MIN && device.in_start == device.in_end;
    struct iovec vectors[2];
    size_t to_sink;
    size_t room;
    ssize_t n;

    if (device.in_start > 0) {
        memmove(device.in, device.in + device.in_start, device.in_end - device.in_start);
        device.in_end -= device.in_start;
        device.in_start = 0;
    }
    room = DEVICE_IN_BYTES - device.in_end;
    if (device.wire.mode == CW_WIRE_RINGS && room > RING_READ)
        room = RING_READ;
    vectors[direct] = (struct iovec){device.in + device.in_end, room};
    if (direct)
        vectors[0] = (struct iovec){device.sink, device.sink_left};
    n = cw_wire_recv(&device.wire, vectors, direct ? 2 : 1);
    if (n <= 0)
        return n;
    to_sink = !direct ? 0 : (size_t)n < device.sink_left ? (size_t)n : device.sink_left;
    if (to_sink)
        sink_advance(to_sink);
    device.in_end += (size_t)n - to_sink;
    return n;
}

/* Returns false when there is nothing now. */
static bool fill(void)
{
    ssize_t n = receive();

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0)
        device_fatal(CW_REPORT_RELAY_LOST, "relay %s: connection lost: %s", device.setup.address,
                     n < 0 ? cw_wire_error(errno) : "end of file");
    return true;
}

bool input_read(void)
{
    bool more = true;

    if (!fill())
        return false;
    while (more)
        more = device.sink_left ? take_payload() : take_frame();
    return true;
}

static void fill_waiting(void)
{
    uint64_t since = cw_clock_ns();

    while (!fill())
        wait_socket(false, since);
}

uint8_t input_next_type(void)
{
    while (device.in_end - device.in_start < CW_FRAME_HEADER)
        fill_waiting();
    return device.in[device.in_start + 4];
}

void input_take_frame(void)
{
    while (!take_frame())
        fill_waiting();
    while (device.sink_left > 0)
        if (!take_payload())
            fill_waiting();
}
