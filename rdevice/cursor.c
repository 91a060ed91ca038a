#include "rdevice/cursor.h"
#include "rdevice/exchange.h"
#include "rdevice/fatal.h"
#include "rdevice/inputs.h"
#include "rdevice/trace.h"

#include <inttypes.h>
#include <stdio.h>

#define REPLAY_FLUSH_POLLS 256u /* polls after which the relay gets to see what was repeated */

/* With channel memory, where the log is there to be read. */
static enum cursor_item peek_noted(struct exchange *x)
{
    struct cw_piece *noted = &x->cursor.noted;

    if (!channel_next(&x->channel, noted))
        return CURSOR_END;
    if (noted->type == CW_PIECE_INPUTS)
        x->cursor.readings_clock = noted->tag;
    return noted->type == CW_PIECE_TOOK     ? CURSOR_TAKEN
           : noted->type == CW_PIECE_INPUTS ? CURSOR_READINGS
                                            : CURSOR_SEND;
}

/* What the log holds next; waits for the relay to say it. Readings stay where they are until an
 * input is asked for. */
static enum cursor_item peek(struct exchange *x)
{
    if (x->channel.on)
        return peek_noted(x);
    while (x->cursor.next == CURSOR_UNKNOWN) {
        if (exchange_next_readings(x, &x->cursor.readings_clock))
            return CURSOR_READINGS;
        exchange_take_frame(x);
    }
    return x->cursor.next;
}

void cursor_live(struct exchange *x)
{
    struct cw_taken live = {.event = x->channel.on ? x->channel.repeated : x->inbox.event,
                            .clock = x->cursor.polls};

    if (x->channel.on)
        channel_live(&x->channel);
    x->cursor.active = false;
    trace_repeating = false;
    cw_taken_put(exchange_frame(x, CW_FRAME_LIVE, CW_TAKEN_SIZE), &live);
    exchange_flush(x);
    wait_left(&x->waiter);
}

/* Past the last determinant and the last operation the rank is live. The last determinant may be
 * readings: then it ends when they are used up. */
static void settle(struct exchange *x)
{
    const struct cursor *c = &x->cursor;

    if ((!x->channel.on && c->acts < c->acts_made) || inputs_unrepeated() > 0 ||
        peek(x) != CURSOR_END)
        return;
    cursor_live(x);
}

/* The program makes an operation, or takes something: it must have asked for inputs as it did. */
static void check_inputs(const struct exchange *x)
{
    if (inputs_unrepeated() > 0)
        exchange_diverged(x, "it had asked for the time before");
}

/* Counts one more. Returns true when an earlier incarnation has made it. */
static bool is_made(struct cursor *c)
{
    c->acts++;
    return c->active && c->acts <= c->acts_made;
}

static bool repeat_act(struct exchange *x, bool made)
{
    if (!x->cursor.active)
        return false;
    check_inputs(x);
    settle(x);
    if (!made && x->cursor.active)
        exchange_diverged(x, "it sends or receives where it had waited");
    return made;
}

bool cursor_act(struct exchange *x)
{
    return repeat_act(x, is_made(&x->cursor));
}

/* Only of the last one may bytes be missing. */
bool cursor_send(struct exchange *x, struct cw_send *send, uint64_t *has)
{
    struct cursor *c = &x->cursor;
    bool made = is_made(c);

    if (made) {
        *has = send->total;
        if (c->acts == c->acts_made)
            *has -= c->missing < send->total ? c->missing : send->total;
        send->flags = contents_are_borne(&x->contents) ? CW_CHECK_BEARS : 0;
        cw_send_put(exchange_frame(x, CW_FRAME_CHECK, CW_SEND_SIZE), send);
    }
    return repeat_act(x, made);
}

/* --- with channel memory -------------------------------------------------------------------------
 */

/* Takes what was taken at this poll clock; returns whether anything was. */
static bool repeat_took(struct exchange *x)
{
    struct cursor *c = &x->cursor;
    bool any = false;

    while (c->active && peek(x) == CURSOR_TAKEN) {
        uint64_t clock = c->noted.tag;

        if (clock > c->polls)
            break;
        if (clock < c->polls)
            exchange_diverged(x,
                              "it polls where it had taken a message from rank %u at poll %" PRIu64,
                              c->noted.req, clock);
        check_inputs(x);
        channel_repeat_took(&x->channel, &c->noted);
        any = true;
    }
    if (c->active)
        settle(x);
    return any;
}

/* Bytes that no program sets, and what threads compute, may differ without harm. */
static void contents_differ(struct exchange *x, const struct cw_send *was, const struct cw_send *is)
{
    char text[CW_TEXT_MAX / 2];

    snprintf(text, sizeof(text),
             "act %" PRIu64 ", a message of %" PRIu64 " bytes to rank %u with tag %" PRIx64
             ", has other contents: hash %016" PRIx64 ", it was %016" PRIx64,
             x->cursor.acts, is->total, is->dst, is->tag, is->contents, was->contents);
    if (!contents_are_borne(&x->contents))
        exchange_diverged(x, "%s", text);
    if (!x->cursor.differs)
        fatal_tell(CW_REPORT_DIFFERS, text);
    x->cursor.differs = true;
}

static void compare_send(struct exchange *x, const struct cw_send *was, const struct cw_send *is)
{
    if (was->dst != is->dst || was->kind != is->kind || was->tag != is->tag ||
        was->total != is->total)
        exchange_diverged(x,
                          "it sends %" PRIu64 " bytes with tag %" PRIx64
                          " to rank %u, and had sent %" PRIu64 " bytes with tag %" PRIx64
                          " to rank %u",
                          is->total, is->tag, is->dst, was->total, was->tag, was->dst);
    if (was->contents != is->contents)
        contents_differ(x, was, is);
}

void cursor_note_send(struct exchange *x, const struct cw_send *send)
{
    struct cursor *c = &x->cursor;
    struct cw_send was;

    c->acts++;
    if (c->active) {
        check_inputs(x);
        settle(x);
    }
    if (!c->active) {
        channel_note_inputs(&x->channel, c->polls);
        channel_note_send(&x->channel, send);
        return;
    }
    if (peek(x) != CURSOR_SEND)
        exchange_diverged(x, "it sends where it had waited");
    was = channel_noted_send(&x->channel, &c->noted);
    compare_send(x, &was, send);
    channel_repeated(&x->channel, &c->noted);
    settle(x);
}

static bool poll_noted(struct exchange *x)
{
    struct cursor *c = &x->cursor;
    bool any = repeat_took(x);
    enum cursor_item next;

    if (!c->active)
        return any;
    next = peek(x);
    if ((next == CURSOR_READINGS || inputs_unrepeated() > 0) && c->polls > c->readings_clock)
        exchange_diverged(x, "it waits where it had asked for the time");
    if (next == CURSOR_SEND && channel_noted_send(&x->channel, &c->noted).clock < c->polls)
        exchange_diverged(x, "it waits where it had sent");
    return any;
}

/* A rank that waits for something that never came must not wait for ever. What it was about to send
 * then tells most. */
static void check_waiting(struct exchange *x)
{
    const struct cursor *c = &x->cursor;

    exchange_acknowledge(x);
    if (c->polls % REPLAY_FLUSH_POLLS == 0)
        exchange_flush(x);
    if (c->acts < c->acts_made && c->polls > c->acts_clock)
        exchange_diverged(x, "it waits where it had sent or received");
}

bool cursor_poll(struct exchange *x)
{
    struct cursor *c = &x->cursor;
    enum cursor_item next;
    uint64_t event;

    if (x->channel.on)
        return poll_noted(x);
    check_waiting(x);
    next = peek(x);
    if ((next == CURSOR_READINGS || inputs_unrepeated() > 0) && c->polls > c->readings_clock)
        exchange_diverged(x, "it waits where it had asked for the time");
    if (next == CURSOR_ANSWER && c->answer.clock <= c->polls)
        exchange_diverged(x, "it waits where a probe had found a message");
    if (next == CURSOR_END)
        settle(x);
    if (next != CURSOR_TAKEN || c->taken.clock > c->polls)
        return false;
    if (c->taken.clock < c->polls)
        exchange_diverged(x, "it polls where it had taken event %" PRIu64 " at poll %" PRIu64,
                          c->taken.event, c->taken.clock);
    check_inputs(x);
    c->next = CURSOR_UNKNOWN;
    event = c->taken.event;
    while (x->inbox.event < event)
        exchange_take_frame(x);
    settle(x);
    return true;
}

bool cursor_probe(struct exchange *x, struct cw_probed *answer)
{
    struct cursor *c = &x->cursor;
    bool found = peek(x) == CURSOR_ANSWER && c->answer.clock <= c->polls;

    if (found && c->answer.clock < c->polls)
        exchange_diverged(x, "a probe comes later than it had");
    if (found) {
        check_inputs(x);
        *answer = c->answer;
        c->next = CURSOR_UNKNOWN;
        c->acts++;
    }
    settle(x);
    return found;
}

bool cursor_inputs(struct exchange *x)
{
    if (!x->cursor.active)
        return false;
    if (peek(x) == CURSOR_READINGS) {
        if (!x->channel.on) {
            exchange_take_frame(x);
            return true;
        }
        inputs_repeat(channel_noted_inputs(&x->channel), x->cursor.noted.size);
        channel_repeated(&x->channel, &x->cursor.noted);
        return true;
    }
    settle(x);
    if (x->cursor.active)
        exchange_diverged(x, "it asks for the time where it had not");
    return false;
}

void cursor_used_up(struct exchange *x, bool ends)
{
    if (x->cursor.active)
        settle(x);
    if (x->cursor.active && ends)
        exchange_diverged(x, "it ends");
}
