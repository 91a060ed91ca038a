#include "rdevice/replay.h"
#include "common/clock.h"
#include "rdevice/clock.h"
#include "rdevice/device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define REPLAY_FLUSH_POLLS 256u /* polls after which the relay gets to see what was repeated */

static void diverged(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void diverged(const char *fmt, ...)
{
    char text[CW_TEXT_MAX / 2];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    device_fatal(CW_REPORT_FATAL,
                 "incarnation %u does not repeat what it did before: at poll %" PRIu64
                 ", act %" PRIu64 " of %" PRIu64 ", %s",
                 device.setup.incarnation, device.stats.polls, device.acts, device.replay.acts,
                 text);
}

void replay_mismatch(const char *what)
{
    diverged("the log holds %s", what);
}

void replay_begin(const struct cw_welcome *welcome)
{
    device.replay = (struct replay){.active = welcome->flags & CW_WELCOME_REPLAY,
                                    .acts = welcome->acts,
                                    .acts_clock = welcome->clock,
                                    .missing = welcome->missing};
}

static void go_live(void)
{
    struct cw_taken live = {.event = device.event, .clock = device.stats.polls};

    device.replay.active = false;
    cw_taken_put(output_frame(CW_FRAME_LIVE, CW_TAKEN_SIZE), &live);
    output_flush();
    device.active_ns = cw_clock_ns();
}

/* What the log holds next; waits for the relay to say it. Readings stay where they are until a
 * clock is asked. */
static enum replay_item peek(void)
{
    struct replay *r = &device.replay;

    while (r->next == REPLAY_UNKNOWN) {
        if (input_next_type() == CW_FRAME_READINGS)
            return REPLAY_READINGS;
        input_take_frame();
    }
    return r->next;
}

/* Past the last determinant and the last act the rank is live. The last determinant may be
 * readings: that they are used up shows only when the program does the next thing. */
static void settle(void)
{
    if (device.acts >= device.replay.acts && clock_unrepeated() == 0 && peek() == REPLAY_END)
        go_live();
}

static void check_readings(void)
{
    if (clock_unrepeated() > 0)
        diverged("it had asked for the time before");
}

/* The act at hand is beyond those that were made: it must be a new one. */
static void settle_before_act(void)
{
    settle();
    if (device.replay.active)
        diverged("it sends or receives where it had waited");
}

bool replay_act(void)
{
    struct replay *r = &device.replay;

    if (!r->active)
        return false;
    check_readings();
    if (device.acts > r->acts) {
        settle_before_act();
        return false;
    }
    if (device.acts == r->acts)
        settle();
    return true;
}

bool replay_send(const struct cw_send *send, uint64_t *has)
{
    struct replay *r = &device.replay;

    if (!r->active || device.acts > r->acts)
        return replay_act();
    *has = send->total;
    if (device.acts == r->acts)
        *has -= r->missing < send->total ? r->missing : send->total;
    cw_send_put(output_frame(CW_FRAME_CHECK, CW_SEND_SIZE), send);
    return replay_act();
}

/* Who waits for something that never came must not wait for ever. What it was about to send then
 * tells most. */
static void check_waiting(uint64_t now)
{
    if (now % REPLAY_FLUSH_POLLS == 0)
        output_flush();
    if (device.acts < device.replay.acts && now > device.replay.acts_clock)
        diverged("it waits where it had sent or received");
}

bool replay_poll(void)
{
    struct replay *r = &device.replay;
    uint64_t now = device.stats.polls;

    check_waiting(now);
    switch (peek()) {
    case REPLAY_TAKEN:
        if (r->taken.clock > now)
            return false;
        if (r->taken.clock < now)
            diverged("it polls where it had taken event %" PRIu64 " at poll %" PRIu64,
                     r->taken.event, r->taken.clock);
        check_readings();
        while (device.event < r->taken.event)
            input_take_frame();
        r->next = REPLAY_UNKNOWN;
        settle();
        return true;
    case REPLAY_ANSWER:
        if (r->answer.clock <= now)
            diverged("it waits where a probe had found a message");
        return false;
    case REPLAY_END:
        settle();
        return false;
    default:
        return false;
    }
}

bool replay_probe(struct cw_probed *answer)
{
    struct replay *r = &device.replay;

    if (peek() != REPLAY_ANSWER || r->answer.clock > device.stats.polls) {
        settle();
        return false;
    }
    if (r->answer.clock < device.stats.polls)
        diverged("a probe comes later than it had");
    check_readings();
    *answer = r->answer;
    r->next = REPLAY_UNKNOWN;
    device.acts++;
    settle();
    return true;
}

bool device_readings_wanted(void)
{
    if (!device.replay.active)
        return false;
    if (peek() == REPLAY_READINGS) {
        input_take_frame();
        return true;
    }
    settle();
    if (device.replay.active)
        diverged("it asks for the time where it had not");
    return false;
}

void replay_finish(void)
{
    if (device.replay.active)
        settle();
    if (device.replay.active)
        diverged("it ends");
}

void replay_on_taken(const struct cw_taken *taken)
{
    device.replay.taken = *taken;
    device.replay.next = REPLAY_TAKEN;
}

void replay_on_answer(const struct cw_probed *answer)
{
    device.replay.answer = *answer;
    device.replay.next = REPLAY_ANSWER;
}

void replay_on_end(void)
{
    device.replay.next = REPLAY_END;
}
