/* A site whose logs survive the loss of power, on a simulated disk: what a core does with its
 * journal, without the core. */
#ifndef UNIT_JOURNAL_SITE_H
#define UNIT_JOURNAL_SITE_H

#include "tests/lib/fake_disk.h"
#include "tests/unit/left_site.h"

struct journal_site {
    struct site site;
    struct fake_disk disk; /* outlives the site */
    struct relay_journal journal;
    uint64_t step;  /* that was done last */
    uint64_t given; /* the last step of the last commit whose end was given out ... */
    uint64_t acked; /* ... and of the last one that has ended */
};

/* Begins on an empty disk, with journal 1. */
void journal_site_start(struct journal_site *j, uint64_t log_memory, uint64_t seed);
/* The same, where its parts go to copies. */
void journal_site_start_copies(struct journal_site *j, uint64_t log_memory, uint64_t seed);
/* Goes on with what was left; the disk stays. */
void journal_site_open(struct journal_site *j, struct ledger_memory *left, uint64_t log_memory);
void journal_site_step(struct journal_site *j);
/* Asks for one request, which the disk has then; false: there is none. */
bool journal_site_ask(struct journal_site *j);
/* One request is carried out; false: none is out. */
bool journal_site_done(struct journal_site *j);
/* All that is to be written and read is. */
void journal_site_settle(struct journal_site *j);
/* What the journals on the disk make of memory; NULL: no journal counts. */
struct ledger_memory *journal_site_restore(struct journal_site *j);

/* --- somebody with a state and a chain, each byte of which can be checked */
struct journal_owner {
    struct ledger_entry entry; /* its ledger is NULL: there is nobody */
    struct chain chain;
    uint64_t value;
    uint64_t content; /* of the chain: what its bytes are follows from this, and from where */
};

/* As it is saved. */
struct journal_saved {
    uint64_t value;
    uint64_t content;
    struct chain_end end;
};

void journal_owner_enter(struct journal_site *j, struct journal_owner *owner, uint64_t content);
void journal_owner_set(struct journal_owner *owner, uint64_t value);
/* At most RELAY_BLOCK_BYTES. */
void journal_owner_append(struct journal_owner *owner, uint32_t size);
void journal_owner_leave(struct journal_owner *owner);
/* The state that was left in a cell; false: none. */
bool journal_owner_left(const struct site *s, uint32_t cell, struct journal_saved *saved);
/* Takes it up, with its chain. Returns what chain_return does. */
int journal_owner_return(struct journal_site *j, struct journal_owner *owner, uint32_t cell);
/* All bytes of its chain are what they should be, wherever they are. */
bool journal_owner_is_right(struct journal_site *j, const struct journal_owner *owner);
/* Its state as one who takes over finds it on the disk now, where its chain must be whole; false:
 * there is none. The disk is only read. */
bool journal_owner_on_disk(const struct journal_site *j, const struct journal_owner *owner,
                           struct journal_saved *saved);

#endif
