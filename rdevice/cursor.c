#include "rdevice/cursor.h"
#include "rdevice/exchange.h"
#include "rdevice/fatal.h"
#include "rdevice/inputs.h"
#include "rdevice/trace.h"

#include <inttypes.h>
#include <stdio.h>

#define REPLAY_FLUSH_POLLS 256u /* polls after which the relay gets to see what was repeated */

/* With channel memory, where the log is there to be read. */
static void look_at_noted(struct exchange *x, struct cursor_item *next)
{
    if (!channel_next(&x->channel, &next->noted)) {
        next->kind = CURSOR_END;
    } else if (next->noted.type == CW_PIECE_SEND) {
        next->kind = CURSOR_SEND;
        next->clock = channel_noted_send(&x->channel, &next->noted).clock;
    } else {
        next->kind = next->noted.type == CW_PIECE_TOOK ? CURSOR_TAKEN : CURSOR_READINGS;
        next->clock = next->noted.tag;
    }
}

/* What the log holds next; waits for the relay to say it. Readings stay where they are until an
 * input is asked for. */
static const struct cursor_item *peek(struct exchange *x)
{
    struct cursor_item *next = &x->cursor.next;

    while (next->kind == CURSOR_UNKNOWN) {
        if (x->channel.on)
            look_at_noted(x, next);
        else if (exchange_next_readings(x, &next->clock))
            next->kind = CURSOR_READINGS;
        else
            exchange_take_frame(x);
    }
    return next;
}

/* It is repeated. */
static void pass(struct exchange *x)
{
    if (x->channel.on)
        channel_repeated(&x->channel, &x->cursor.next.noted);
    x->cursor.next.kind = CURSOR_UNKNOWN;
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

    if (!c->active || c->acts < c->acts_made || inputs_unrepeated() > 0 ||
        peek(x)->kind != CURSOR_END)
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
    if (peek(x)->kind != CURSOR_SEND)
        exchange_diverged(x, "it sends where it had waited");
    was = channel_noted_send(&x->channel, &c->next.noted);
    compare_send(x, &was, send);
    pass(x);
    settle(x);
}

/* --- polls ---------------------------------------------------------------------------------------
 */

/* What was taken at this poll is taken again. */
static void take_again(struct exchange *x)
{
    struct cursor_item taken = x->cursor.next;

    check_inputs(x);
    while (x->channel.on && channel_lacks(&x->channel, &taken.noted))
        exchange_take_frame(x);
    if (x->channel.on)
        channel_repeat_took(&x->channel, &taken.noted);
    exchange_tell_matched(x);
    pass(x);
    while (!x->channel.on && x->inbox.event < taken.event)
        exchange_take_frame(x);
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

/* What is still to be repeated at a poll, or a probe, was done at this one or later. */
static void check_late(struct exchange *x)
{
    static const char *const had[] = {[CURSOR_TAKEN] = "taken what had come",
                                      [CURSOR_ANSWER] = "found a message by a probe",
                                      [CURSOR_READINGS] = "asked for the time",
                                      [CURSOR_SEND] = "sent"};
    const struct cursor *c = &x->cursor;
    bool reads = inputs_unrepeated() > 0;
    enum cursor_kind kind = reads ? CURSOR_READINGS : peek(x)->kind;
    uint64_t clock = reads ? c->readings_clock : c->next.clock;
    bool at_poll = kind == CURSOR_TAKEN || kind == CURSOR_ANSWER;

    if (kind != CURSOR_END && clock < c->polls + at_poll)
        exchange_diverged(x, "it waits where it had %s at poll %" PRIu64, had[kind], clock);
}

bool cursor_poll(struct exchange *x)
{
    struct cursor *c = &x->cursor;
    bool any = false;

    check_waiting(x);
    while (c->active && peek(x)->kind == CURSOR_TAKEN && c->next.clock == c->polls) {
        take_again(x);
        any = true;
    }
    settle(x);
    if (c->active)
        check_late(x);
    return any;
}

bool cursor_probe(struct exchange *x, struct cw_probed *answer)
{
    struct cursor *c = &x->cursor;
    bool found = peek(x)->kind == CURSOR_ANSWER && c->next.clock == c->polls;

    if (found) {
        check_inputs(x);
        *answer = c->next.answer;
        c->acts++;
        pass(x);
    }
    settle(x);
    if (c->active)
        check_late(x);
    return found;
}

bool cursor_inputs(struct exchange *x)
{
    struct cursor *c = &x->cursor;

    if (!c->active)
        return false;
    if (peek(x)->kind != CURSOR_READINGS) {
        settle(x);
        if (c->active)
            exchange_diverged(x, "it asks for the time where it had not");
        return false;
    }
    c->readings_clock = c->next.clock;
    if (x->channel.on)
        inputs_repeat(channel_noted_inputs(&x->channel), c->next.noted.size);
    else
        exchange_take_frame(x);
    pass(x);
    return true;
}

void cursor_used_up(struct exchange *x, bool ends)
{
    settle(x);
    if (x->cursor.active && ends)
        exchange_diverged(x, "it ends");
}
