/* Group commit, for logs that are to survive the loss of power, or of their host: notes what of
 * ledger, chains and places on disk has changed since the journal was last written, and makes the
 * next part of it. What comes meanwhile is of the next one. What was told to the world must have
 * been committed before: core.c holds output back until then.
 *
 * On disk one part is on its way at a time. When the journal has become long, another one begins,
 * in the other one of two files, with all that is. Until its first commit is on disk, the one
 * before counts.
 *
 * Parts that go to copies (relay/core/copy_out.h) carry bytes alone, no places, and some commits
 * may be on their way; their journal begins when the copies do, and may begin anew at any time.
 *
 * Pure. Thread rule: that of the core. */
#ifndef RELAY_COMMIT_H
#define RELAY_COMMIT_H

#include "relay/log/journal.h"
#include "relay/log/store_io.h"

#ifndef COMMIT_JOURNAL_MIN
#define COMMIT_JOURNAL_MIN (64ull << 20) /* bytes of a journal, before another one begins ... */
#endif
#define COMMIT_JOURNAL_SHARE 3 /* ... and so many times as many as it began with */
#define COMMIT_BEHIND_MAX                                                                          \
    (2ull * JOURNAL_PART_MAX) /* bytes that wait to be committed; then input waits */
#define COMMITS_OUT_MAX 8u    /* commits on their way to copies */

struct ledger;
struct log_segment;

/* A segment in one of the lists below. All zero: in none. */
struct segment_notes {
    struct log_segment *prev;
    struct log_segment *next;
    struct segment_list *list;
    uint32_t bytes; /* of it that are in the journal */
    bool told;      /* the journal knows of it, or of its place on disk: */
    bool placed;
};

struct segment_list {
    struct log_segment *first;
    struct log_segment *last;
};

struct commit {
    struct ledger *ledger;
    uint8_t *buffer;  /* of a part; NULL: there is no journal */
    uint64_t relay;   /* that writes it */
    uint64_t journal; /* its number */
    unsigned file;    /* that it is in: 0 or 1 */
    uint64_t part;    /* the number of the next one ... */
    uint64_t at;      /* ... and its offset ... */
    uint32_t size;    /* ... and bytes, while it is out */
    uint64_t began;   /* bytes of the first commit; 0: it is not on disk */
    bool wanted;      /* something waits for it to be told to the world */
    bool out;         /* a part is being written ... */
    bool ends;        /* ... or the last one was, with which its commit ends */
    bool held;        /* some commit of any journal is on disk */
    int error;        /* an errno: nothing is committed any more */

    bool copies;                 /* parts go to copies, once there are any ... */
    bool copying;                /* ... and there are */
    bool holds;                  /* what is outside waits for its commit to be there */
    uint64_t number;             /* of the commit at hand, or the last one that was made */
    uint64_t acked;              /* the last one that all copies have */
    struct log_segment *awaited; /* whose bytes are wanted from disk for the next part; or NULL */

    struct segment_list due;   /* to be noted */
    struct segment_list done;  /* all of it is noted */
    struct segment_list gone;  /* dropped; that is to be noted ... */
    struct segment_list going; /* ... or was, and counts with the end of the commit ... */
    struct segment_list free;  /* ... which is on disk */
    uint64_t due_bytes;        /* of segments that are due */
    uint32_t *cells;           /* that have changed */
    uint32_t cell_count;
    uint8_t *cell_due; /* 1: it is among them */
};

/* Where the journal goes. All zero: there is none. */
struct relay_journal {
    bool copies;     /* to copies; the next three are of one on disk */
    uint64_t relay;  /* cw_cred_mark of its key */
    uint64_t number; /* larger than that of any journal before */
    unsigned file;   /* 0 or 1: one that holds no journal that counts */
};

/* Returns 0 or CW_ENOMEM. */
int commit_init(struct commit *commit, struct ledger *ledger, const struct relay_journal *journal);
void commit_fini(struct commit *commit);
/* There is a journal. */
static inline bool commit_is_on(const struct commit *commit)
{
    return (commit->buffer || commit->copying) && !commit->error;
}
/* ... on disk. */
static inline bool commit_is_on_disk(const struct commit *commit)
{
    return commit->buffer && !commit->error;
}
/* What is told to the world waits until what led to it is safe. With copies this goes on when they
 * fail: nothing is told any more. */
static inline bool commit_holds(const struct commit *commit)
{
    return commit->copies ? commit->holds : commit_is_on(commit);
}

/* Something is to be told to the world once all that led to it is safe. What nothing waits for is
 * not written for its own sake, but with what is. */
static inline void commit_want(struct commit *commit)
{
    commit->wanted = true;
}

/* --- what changes */
static inline void commit_cell(struct commit *commit, uint32_t cell)
{
    if (!commit_is_on(commit) || commit->cell_due[cell])
        return;
    commit->cell_due[cell] = 1;
    commit->cells[commit->cell_count++] = cell;
}
/* A segment that has a name: it has `size` bytes more, perhaps none, or a place on disk. */
void commit_segment(struct commit *commit, struct log_segment *segment, uint32_t size);
/* It is dropped. False: nobody need know. Else it is the commit's from now on, but for the memory
 * of its bytes, until commit_next_gone returns it. */
bool commit_gone(struct commit *commit, struct log_segment *segment);
/* A segment whose end has been committed: its place on disk is free. NULL: there is none. */
struct log_segment *commit_next_gone(struct commit *commit);

/* Places on disk become free with the next commit. */
static inline bool commit_frees(const struct commit *commit)
{
    return commit_is_on_disk(commit) && (commit->gone.first || commit->going.first);
}

/* Whether a part may be made now: of a commit that has begun, or of the next one. */
bool commit_is_next(const struct commit *commit);

/* --- writing */
/* What was there before is to be noted as well. */
void commit_begin(struct commit *commit);
/* Nothing is committed any more. */
void commit_stop(struct commit *commit, int error);
/* What is to be written next, between two steps; false: nothing, or not now. */
bool commit_next(struct commit *commit, struct relay_log_io *io);
/* It was. True: a commit has ended with it, and all that had been done when commit_next gave its
 * last part is safe; or nothing is committed any more. */
bool commit_done(struct commit *commit, int error);

/* --- to copies */
/* The journal begins, for copies that have nothing of it, with all that is. `holds`: what is told
 * to the world waits already; else from the end of its first commit on. */
void commit_copy(struct commit *commit, bool holds);
/* What is told to the world waits from now on, also before there are copies. */
static inline void commit_hold(struct commit *commit)
{
    commit->holds = true;
}
/* There are no copies any more. */
void commit_copy_end(struct commit *commit);
/* Makes the next part of `commit->number` at `at`, with room for `room` bytes; returns how many it
 * has. 0: there is nothing to be said, or not now. commit->ends says whether it is the last one. */
uint32_t commit_copy_part(struct commit *commit, uint8_t *at, uint32_t room);
/* The commits up to this one are in all copies. */
void commit_copied(struct commit *commit, uint64_t number);

/* Input is to wait for the disk, or the copies. */
static inline bool commit_waits(const struct commit *commit)
{
    return commit_is_on(commit) ? commit->due_bytes > COMMIT_BEHIND_MAX
                                : commit->copies && commit->holds;
}

#endif
