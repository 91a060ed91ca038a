#include "rdevice/cursor.h"
#include "rdevice/exchange.h"
#include "rdevice/fatal.h"
#include "rdevice/inputs.h"
#include "rdevice/trace.h"

#include <inttypes.h>
#include <stdio.h>

#define REPLAY_FLUSH_POLLS 256u /* polls after which the relay gets to see what was repeated */

/* What the program did at that place of its log. */
static const char *const had[] = {[CURSOR_TAKEN] = "taken what had come",
                                  [CURSOR_ANSWER] = "found a message by a probe",
                                  [CURSOR_READINGS] = "asked for the time",
                                  [CURSOR_SEND] = "sent",
                                  [CURSOR_END] = "received"};

/* With channel memory, where the log is there to be read. */
static void look_at_noted(struct exchange *x, struct cursor_item *next)
{
    if (!channel_next(&x->channel, &next->noted)) {
        next->kind = CURSOR_END;
    } else if (next->noted.type == CW_PIECE_SEND) {
        next->kind = CURSOR_SEND;
        next->send = channel_noted_send(&x->channel, &next->noted);
        next->clock = next->send.clock;
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

bool cursor_act(struct exchange *x)
{
    struct cursor *c = &x->cursor;

    c->acts++;
    if (!c->active)
        return false;
    check_inputs(x);
    settle(x);
    if (c->acts > c->acts_made && c->active)
        exchange_diverged(x, "it receives where it had %s", had[peek(x)->kind]);
    return c->acts <= c->acts_made;
}

/* --- sends ---------------------------------------------------------------------------------------
 */

#define SEND_TEXT 128

static void describe(char to[SEND_TEXT], const struct cw_send *send)
{
    static const char *const kinds[] = {[CW_SEND_TAG] = "a message",
                                        [CW_SEND_SYNC] = "a synchronous message",
                                        [CW_SEND_AM] = "an active message"};

    snprintf(to, SEND_TEXT, "%s of %" PRIu64 " bytes to rank %u with tag %#" PRIx64,
             kinds[send->kind], send->total, send->dst, send->tag);
}

/* Bytes that no program sets, and what threads compute, may differ without harm. */
static void contents_differ(struct exchange *x, const struct cw_send *was, const struct cw_send *is)
{
    struct cursor *c = &x->cursor;
    char text[CW_TEXT_MAX + 1];
    char send[SEND_TEXT];
    size_t act;

    describe(send, is);
    act = (size_t)snprintf(text, sizeof(text), "act %" PRIu64 ", ", c->acts);
    snprintf(text + act, sizeof(text) - act,
             "%s, has other contents: hash %016" PRIx64 ", it was %016" PRIx64, send, is->contents,
             was->contents);
    if (!contents_are_borne(&x->contents))
        exchange_diverged(x, "%s", text + act);
    tally_append(&c->tally, text, sizeof(text));
    if (!c->differs)
        fatal_tell(CW_REPORT_DIFFERS, text);
    c->differs = true;
}

static void compare_send(struct exchange *x, const struct cw_send *was, const struct cw_send *is)
{
    char was_text[SEND_TEXT];
    char is_text[SEND_TEXT];

    if (was->dst != is->dst || was->kind != is->kind || was->tag != is->tag ||
        was->total != is->total) {
        describe(was_text, was);
        describe(is_text, is);
        exchange_diverged(x, "it sends %s where it had sent %s", is_text, was_text);
    }
    if (was->contents == 0 || is->contents == 0)
        return;
    if (was->contents != is->contents)
        contents_differ(x, was, is);
    else
        x->cursor.tally = (struct tally){.act = x->cursor.acts, .poll = x->cursor.polls};
}

bool cursor_send(struct exchange *x, const struct cw_send *send)
{
    struct cursor *c = &x->cursor;

    c->acts++;
    if (!c->active)
        return false;
    check_inputs(x);
    settle(x);
    if (!c->active)
        return false;
    if (peek(x)->kind != CURSOR_SEND)
        exchange_diverged(x, "it sends where it had %s", had[c->next.kind]);
    compare_send(x, &c->next.send, send);
    pass(x);
    settle(x);
    return true;
}

/* --- polls ---------------------------------------------------------------------------------------
 */

/* What others see of this rank they may wait for. */
static void await_piece(struct exchange *x, const struct cw_piece *piece)
{
    exchange_flush(x);
    channel_await(&x->channel, piece);
}

/* What was taken at this poll is taken again. */
static void take_again(struct exchange *x)
{
    struct cursor_item taken = x->cursor.next;

    check_inputs(x);
    while (x->channel.on && channel_lacks(&x->channel, &taken.noted))
        exchange_take_frame(x);
    while (x->channel.on && !channel_repeat_took(&x->channel, &taken.noted))
        await_piece(x, &taken.noted);
    exchange_tell_news(x);
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
        c->tally.answers++;
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
        cursor_repeat_inputs(c, channel_noted_inputs(&x->channel), c->next.noted.size);
    else
        exchange_take_frame(x);
    pass(x);
    return true;
}

/* Which of the sends that it matched after its last poll it had told as it ended. */
static bool had_told(struct exchange *x)
{
    const struct cursor_item *next = &x->cursor.next;

    return x->cursor.active && x->channel.on && peek(x)->kind == CURSOR_TAKEN &&
           next->noted.more == 0 && next->clock == x->cursor.polls;
}

void cursor_used_up(struct exchange *x, bool ends)
{
    while (ends && had_told(x))
        take_again(x);
    settle(x);
    if (x->cursor.active && ends)
        exchange_diverged(x, "it ends");
}
