#include "rdevice/journal.h"
#include "rdevice/clock.h"
#include "rdevice/fatal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void diverged(const struct journal *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

static void diverged(const struct journal *j, const char *fmt, ...)
{
    char text[CW_TEXT_MAX / 2];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fatal_exit(CW_REPORT_FATAL,
               "incarnation %u does not repeat what it did before: at poll %" PRIu64
               ", act %" PRIu64 " of %" PRIu64 ", %s",
               j->incarnation, j->polls, j->acts, j->acts_made, text);
}

void journal_mismatch(const struct journal *j, const char *what)
{
    diverged(j, "the log holds %s", what);
}

void journal_mismatch_reading(const struct journal *j)
{
    diverged(j, "it asks for the time where it had not");
}

void journal_mismatch_end(const struct journal *j)
{
    diverged(j, "it ends");
}

void journal_begin(struct journal *j, uint32_t incarnation, const struct cw_welcome *welcome)
{
    *j = (struct journal){.active = welcome->flags & CW_WELCOME_REPLAY,
                          .logged = welcome->flags & CW_WELCOME_LOG,
                          .incarnation = incarnation,
                          .acts_made = welcome->acts,
                          .acts_clock = welcome->clock,
                          .missing = welcome->missing};
}

void journal_go_on(struct journal *j, uint32_t incarnation, const struct cw_welcome *welcome)
{
    uint64_t polls = j->polls;
    uint64_t acts = j->acts;

    journal_begin(j, incarnation, welcome);
    j->polls = polls;
    j->acts = acts;
}

/* Only of the last one may bytes be missing. */
uint64_t journal_bytes_sent(const struct journal *j, uint64_t total)
{
    if (j->acts < j->acts_made)
        return total;
    return total - (j->missing < total ? j->missing : total);
}

/* The last determinant may be readings: then it ends when they are used up. */
bool journal_may_end(const struct journal *j)
{
    return j->acts >= j->acts_made && clock_unrepeated() == 0;
}

void journal_go_live(struct journal *j)
{
    j->active = false;
}

void journal_check_readings(const struct journal *j)
{
    if (clock_unrepeated() > 0)
        diverged(j, "it had asked for the time before");
}

void journal_check_new_act(const struct journal *j)
{
    if (j->active)
        diverged(j, "it sends or receives where it had waited");
}

void journal_check_waiting(const struct journal *j)
{
    if (j->acts < j->acts_made && j->polls > j->acts_clock)
        diverged(j, "it waits where it had sent or received");
}

void journal_check_asked(const struct journal *j)
{
    if (j->polls > j->readings_clock)
        diverged(j, "it waits where it had asked for the time");
}

bool journal_takes(struct journal *j, uint64_t *event)
{
    if (j->next == JOURNAL_ANSWER && j->answer.clock <= j->polls)
        diverged(j, "it waits where a probe had found a message");
    if (j->next != JOURNAL_TAKEN || j->taken.clock > j->polls)
        return false;
    if (j->taken.clock < j->polls)
        diverged(j, "it polls where it had taken event %" PRIu64 " at poll %" PRIu64,
                 j->taken.event, j->taken.clock);
    journal_check_readings(j);
    *event = j->taken.event;
    j->next = JOURNAL_UNKNOWN;
    return true;
}

bool journal_answers(struct journal *j, struct cw_probed *answer)
{
    if (j->next != JOURNAL_ANSWER || j->answer.clock > j->polls)
        return false;
    if (j->answer.clock < j->polls)
        diverged(j, "a probe comes later than it had");
    journal_check_readings(j);
    *answer = j->answer;
    j->next = JOURNAL_UNKNOWN;
    j->acts++;
    return true;
}

void journal_on_readings(struct journal *j, uint64_t clock)
{
    j->readings_clock = clock;
}

void journal_on_taken(struct journal *j, const struct cw_taken *taken)
{
    j->taken = *taken;
    j->next = JOURNAL_TAKEN;
}

void journal_on_answer(struct journal *j, const struct cw_probed *answer)
{
    j->answer = *answer;
    j->next = JOURNAL_ANSWER;
}

void journal_on_end(struct journal *j)
{
    j->next = JOURNAL_END;
}
