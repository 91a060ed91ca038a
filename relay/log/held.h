/* The memory that a relay leaves which is killed (ledger.h), made of the parts of its journal, one
 * after the other: at each instant it is that of the last whole commit, also when whoever makes it
 * is killed. For backups, and, at once, of a journal on disk: restore.h. docs/log-format.md,
 * "Copies".
 *
 * Bytes of segments are put behind those that count; states are one step of the ledger in it; what
 * is gone is let go of after that. Thread rule: that of the memory. */
#ifndef RELAY_HELD_H
#define RELAY_HELD_H

#include "relay/log/journal.h"
#include "relay/log/ledger.h"

struct cw_err;
struct held_segment;

struct held {
    struct ledger ledger;
    struct supply supply;
    void *segments;            /* a tree of tsearch */
    struct held_segment *gone; /* with the end of this commit */
    uint64_t journal;          /* that is being taken; 0: none */
    uint64_t part;             /* of it, the next one */
    uint32_t generation;       /* of the ledger, as the last part said */
    uint32_t round;            /* grows with each journal ... */
    uint32_t *named;           /* ... in which this cell was named last */
    bool first;   /* it is the first commit of its journal: what it does not name is gone */
    bool at_once; /* a journal on disk: see below */
};

/* Takes over what is there, with the region behind it, of this incarnation of the relay; what is
 * there of another one goes. Returns 0 or CW_ENOMEM. */
int held_open(struct held *held, struct ledger_memory *memory, const struct relay_region *region,
              uint32_t incarnation);
/* All that is there goes. Segments may be on disk, and nothing counts before held_finish. */
int held_open_anew(struct held *held, struct ledger_memory *memory,
                   const struct relay_region *region);
void held_finish(struct held *held);
/* Leaves it as it is. All zero: nothing happens. */
void held_close(struct held *held);

/* The next part is the first one of a journal. */
void held_begin(struct held *held);
/* The part that the reader is at. Errors, after which no further one may come, and the last whole
 * commit counts: CW_EPROTO: it makes no sense, or is not the next one; CW_EINVAL: the region is too
 * small; CW_ENOMEM. */
int held_take(struct held *held, struct journal_reader *reader, struct cw_err *err);

/* There is a whole commit. */
bool held_is_whole(const struct held *held);
/* The same of memory that may not be open, and of this incarnation of the relay. */
bool held_is_left(const struct ledger_memory *memory, uint32_t incarnation);

#endif
