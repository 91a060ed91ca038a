#include "rdevice/replay.h"
#include "rdevice/clock.h"
#include "rdevice/trace.h"

#define REPLAY_FLUSH_POLLS 256u /* polls after which the relay gets to see what was repeated */

/* What the log holds next; waits for the relay to say it. Readings stay where they are until a
 * clock is asked. */
static enum journal_item peek(struct exchange *x)
{
    uint64_t clock;

    while (journal_next(&x->journal) == JOURNAL_UNKNOWN) {
        if (exchange_next_readings(x, &clock)) {
            journal_on_readings(&x->journal, clock);
            return JOURNAL_READINGS;
        }
        exchange_take_frame(x);
    }
    return journal_next(&x->journal);
}

static void go_live(struct exchange *x)
{
    struct cw_taken live = {.event = inbox_last_event(&x->inbox),
                            .clock = journal_polls(&x->journal)};

    journal_go_live(&x->journal);
    trace_repeats(false);
    cw_taken_put(exchange_frame(x, CW_FRAME_LIVE, CW_TAKEN_SIZE), &live);
    exchange_flush(x);
    wait_left(&x->waiter);
}

/* Past the last determinant and the last act the rank is live. */
static void settle(struct exchange *x)
{
    if (journal_may_end(&x->journal) && peek(x) == JOURNAL_END)
        go_live(x);
}

static bool repeat_act(struct exchange *x, bool made)
{
    journal_check_readings(&x->journal);
    settle(x);
    if (!made)
        journal_check_new_act(&x->journal);
    return made;
}

bool replay_act(struct exchange *x)
{
    bool made = journal_act(&x->journal);

    return journal_is_active(&x->journal) && repeat_act(x, made);
}

bool replay_send(struct exchange *x, struct cw_send *send, uint64_t *has)
{
    bool made = journal_act(&x->journal);

    if (!journal_is_active(&x->journal))
        return false;
    if (made) {
        *has = journal_bytes_sent(&x->journal, send->total);
        send->flags = contents_are_borne(&x->contents) ? CW_CHECK_BEARS : 0;
        cw_send_put(exchange_frame(x, CW_FRAME_CHECK, CW_SEND_SIZE), send);
    }
    return repeat_act(x, made);
}

/* A rank that waits for something that never came must not wait for ever. What it was about to send
 * then tells most. */
static void check_waiting(struct exchange *x)
{
    exchange_acknowledge(x);
    if (journal_polls(&x->journal) % REPLAY_FLUSH_POLLS == 0)
        exchange_flush(x);
    journal_check_waiting(&x->journal);
}

bool replay_poll(struct exchange *x)
{
    enum journal_item next;
    uint64_t event;

    check_waiting(x);
    next = peek(x);
    if (next == JOURNAL_READINGS || clock_unrepeated() > 0)
        journal_check_asked(&x->journal);
    if (journal_takes(&x->journal, &event)) {
        while (inbox_last_event(&x->inbox) < event)
            exchange_take_frame(x);
        settle(x);
        return true;
    }
    if (next == JOURNAL_END)
        settle(x);
    return false;
}

bool replay_probe(struct exchange *x, struct cw_probed *answer)
{
    bool found;

    peek(x);
    found = journal_answers(&x->journal, answer);
    settle(x);
    return found;
}

bool replay_readings(struct exchange *x)
{
    if (!journal_is_active(&x->journal))
        return false;
    if (peek(x) == JOURNAL_READINGS) {
        exchange_take_frame(x);
        return true;
    }
    settle(x);
    if (journal_is_active(&x->journal))
        journal_mismatch_reading(&x->journal);
    return false;
}

void replay_readings_used(struct exchange *x)
{
    if (journal_is_active(&x->journal))
        settle(x);
}

void replay_finish(struct exchange *x)
{
    if (journal_is_active(&x->journal))
        settle(x);
    if (journal_is_active(&x->journal))
        journal_mismatch_end(&x->journal);
}
