#include "rdevice/cursor.h"
#include "rdevice/exchange.h"
#include "rdevice/inputs.h"
#include "rdevice/trace.h"

#include <inttypes.h>

#define REPLAY_FLUSH_POLLS 256u /* polls after which the relay gets to see what was repeated */

/* What the log holds next; waits for the relay to say it. Readings stay where they are until an
 * input is asked for. */
static enum cursor_item peek(struct exchange *x)
{
    while (x->cursor.next == CURSOR_UNKNOWN) {
        if (exchange_next_readings(x, &x->cursor.readings_clock))
            return CURSOR_READINGS;
        exchange_take_frame(x);
    }
    return x->cursor.next;
}

/* Past the last determinant and the last operation the rank is live. The last determinant may be
 * readings: then it ends when they are used up. */
static void settle(struct exchange *x)
{
    struct cursor *c = &x->cursor;
    struct cw_taken live;

    if (c->acts < c->acts_made || inputs_unrepeated() > 0 || peek(x) != CURSOR_END)
        return;
    live = (struct cw_taken){.event = x->inbox.event, .clock = c->polls};
    c->active = false;
    trace_repeating = false;
    cw_taken_put(exchange_frame(x, CW_FRAME_LIVE, CW_TAKEN_SIZE), &live);
    exchange_flush(x);
    wait_left(&x->waiter);
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
        exchange_take_frame(x);
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
