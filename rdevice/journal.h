/* What a restarted rank has to repeat, and how far it is. The relay streams the determinants and
 * events of its predecessors in the order of their happening, and knows how many acts they made.
 * Until all is repeated, events are taken at the poll clocks of the first time, every other poll
 * finds nothing, clocks say what they said, and acts are not made again ([MPICH-V] definition 2,
 * silent re-execution). Past that the rank is live.
 *
 * Compares and counts; no I/O but that a re-execution which does something else ends the process.
 * For the thread that calls MPI. */
#ifndef RDEVICE_JOURNAL_H
#define RDEVICE_JOURNAL_H

#include "common/frame.h"

#include <stdbool.h>
#include <stdint.h>

/* What the log holds next. */
enum journal_item { JOURNAL_UNKNOWN, JOURNAL_TAKEN, JOURNAL_ANSWER, JOURNAL_READINGS, JOURNAL_END };

/* Others read it by the functions below alone. */
struct journal {
    uint64_t polls; /* the poll clock: calls for progress, and probes */
    uint64_t acts;  /* sends, receives, probes that found, and cancels; of all incarnations */
    bool active;    /* repeats; else live */
    bool logged;    /* the relay wants determinants */
    uint32_t incarnation;
    enum journal_item next;
    struct cw_taken taken;   /* when that is next */
    struct cw_probed answer; /* when that is next */
    uint64_t readings_clock; /* poll clock of the readings that came last, or are next */
    uint64_t acts_made;      /* to be repeated */
    uint64_t acts_clock;     /* poll clock of the last of them */
    uint64_t missing;        /* bytes of the last one, a message, that the relay lacks */
};

/* After WELCOME. */
void journal_begin(struct journal *j, uint32_t incarnation, const struct cw_welcome *welcome);

/* The process goes on from an image: the poll clock and the acts go on from there. After WELCOME.
 */
void journal_go_on(struct journal *j, uint32_t incarnation, const struct cw_welcome *welcome);

/* The rank repeats what its predecessors did. */
static inline bool journal_is_active(const struct journal *j)
{
    return __builtin_expect(j->active, 0);
}

/* The relay wants determinants: the rank can be restarted. Or no more. */
static inline bool journal_is_logged(const struct journal *j)
{
    return j->logged;
}

static inline void journal_stop_logging(struct journal *j)
{
    j->logged = false;
}

/* The poll clock, and one step of it. */
static inline uint64_t journal_polls(const struct journal *j)
{
    return j->polls;
}

static inline uint64_t journal_poll(struct journal *j)
{
    return ++j->polls;
}

static inline uint64_t journal_acts(const struct journal *j)
{
    return j->acts;
}

/* The program makes one more act. Returns true when an earlier incarnation has made it. */
static inline bool journal_act(struct journal *j)
{
    j->acts++;
    return j->active && j->acts <= j->acts_made;
}

/* Of that act, a message of `total` bytes that was sent before: how many of them the relay has. */
uint64_t journal_bytes_sent(const struct journal *j, uint64_t total);

/* --- while it is active --- */

/* What the log holds next; JOURNAL_UNKNOWN: the relay's next frame says it. */
static inline enum journal_item journal_next(const struct journal *j)
{
    return j->next;
}

/* All acts, and all readings that have come, are repeated: where the log ends as well, the rank is
 * live. */
bool journal_may_end(const struct journal *j);
void journal_go_live(struct journal *j);

/* The program acts, or takes something, at this point: it must have asked clocks as it did. */
void journal_check_readings(const struct journal *j);

/* The act at hand was not made before, and the log has more: it had waited here. */
void journal_check_new_act(const struct journal *j);

/* The program waits at this poll: it must not have acted here. */
void journal_check_waiting(const struct journal *j);

/* The program waits at this poll, and there are readings: it must ask for them no later than then.
 */
void journal_check_asked(const struct journal *j);

/* At this poll, with the next item known: true when events were taken then, up to *event. */
bool journal_takes(struct journal *j, uint64_t *event);

/* ... and of a probe: true when it found *answer, which is an act. */
bool journal_answers(struct journal *j, struct cw_probed *answer);

/* The program asks for a reading or ends its use of MPI where the log has something else. */
void journal_mismatch_reading(const struct journal *j) __attribute__((noreturn));
void journal_mismatch_end(const struct journal *j) __attribute__((noreturn));

/* The log holds something that does not fit what the program did. */
void journal_mismatch(const struct journal *j, const char *what) __attribute__((noreturn));

/* Frames of the log have come: READINGS (or comes next), TAKEN, PROBED, REPLAYED. */
void journal_on_readings(struct journal *j, uint64_t clock);
void journal_on_taken(struct journal *j, const struct cw_taken *taken);
void journal_on_answer(struct journal *j, const struct cw_probed *answer);
void journal_on_end(struct journal *j);

#endif
