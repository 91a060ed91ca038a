/* What a relay leaves to the process that takes its place when it is killed: memory that outlives
 * it. Small states stand in cells here; the segments of logs stand in blocks of the region, and on
 * disk, and say themselves of which chain they are. docs/log-format.md.
 *
 * A step of the core changes several states: all of them, or none. So a cell has two copies, each
 * with the number of the step that wrote it, and a step is done when its number is in the header.
 * A copy of a step that was not done is void. A killed process has made its stores in the order of
 * the program (x86-64); nothing is said about power.
 *
 * Thread rule: that of the core. */
#ifndef RELAY_LEDGER_H
#define RELAY_LEDGER_H

#include "relay/memory/block.h"

#define LEDGER_MAGIC 0x5245474445574143ull /* "CAWEDGER" */
#define LEDGER_VERSION 9u
#define LEDGER_BODY 240u /* bytes of a state */
#ifndef LEDGER_CELLS
#define LEDGER_CELLS (1u << 17) /* states: 2 for each rank, some for each job */
#endif
#ifndef LEDGER_EXTENTS
#define LEDGER_EXTENTS (1u << 20) /* segments on disk */
#endif

#define LEDGER_FULL                                                                                \
    "the relay cannot keep the states of more sessions and ranks (--log-safety file)"

enum ledger_kind { LEDGER_FREE, LEDGER_JOB, LEDGER_RANK, LEDGER_CONN, LEDGER_KINDS };

struct ledger_copy {
    uint64_t step; /* 0: never written */
    uint32_t kind;
    uint32_t generation; /* of who uses the cell */
    uint8_t body[LEDGER_BODY];
};

struct ledger_cell {
    struct ledger_copy copy[2];
};

/* A segment on disk. */
struct ledger_extent {
    uint64_t chain; /* 0: free */
    uint32_t number;
    uint32_t used;
    uint64_t sum;
};

struct ledger_header {
    uint64_t magic;
    uint32_t version;
    uint32_t block_bytes;
    uint64_t region_size;
    uint64_t carved; /* of the region, as supply.h */
    uint64_t done;   /* the last step that was */
    uint32_t cells_used;
    uint32_t extents_used;
    uint32_t generation;  /* the last one given */
    uint32_t incarnation; /* of the relay, where this is a copy: held.h */
};

/* As it lies in memory, the region behind it. */
struct ledger_memory {
    _Alignas(4096) struct ledger_header header;
    _Alignas(4096) struct ledger_cell cells[LEDGER_CELLS];
    struct ledger_extent extents[LEDGER_EXTENTS];
};

/* Somebody's state. All zero: nothing is kept of it. */
struct ledger_entry {
    struct ledger *ledger;
    struct ledger_entry *next; /* of those that have changed */
    const void *owner;
    void (*save)(const void *owner, void *body); /* fills LEDGER_BODY bytes, which are zero */
    uint32_t cell;
    uint32_t generation;
    uint32_t kind;
    bool changed;
};

/* A segment that was left, in memory or on disk or both. */
struct ledger_piece {
    uint64_t chain;
    uint32_t number;
    uint32_t used;
    struct relay_block *block; /* NULL: none */
    uint32_t extent;           /* LEDGER_EXTENTS: none */
    bool taken;
    uint64_t sum;
};

struct ledger {
    struct ledger_memory *memory;
    struct commit *commit; /* that notes which cells change; set by the owner, or NULL */
    uint64_t step;         /* that is being made */
    struct ledger_entry *changed;
    uint32_t free_hint;        /* no cell before it is free ... */
    uint32_t dropped;          /* ... nor before this one, once the step is done */
    struct ledger_piece *left; /* by chain and number, until ledger_forget_left */
    uint32_t left_count;
};

/* Takes over what is there; `fresh`, or what is there makes no sense: begins anew. Returns whether
 * something was left. */
bool ledger_open(struct ledger *ledger, struct ledger_memory *memory, uint64_t region_size);

/* --- states */
/* A cell for `owner`, from now on; false: all are used. Without a ledger nothing is kept. */
bool ledger_enter(struct ledger *ledger, struct ledger_entry *entry, enum ledger_kind kind,
                  const void *owner, void (*save)(const void *owner, void *body));
/* The same for one whose state was left in `cell`. */
void ledger_return(struct ledger *ledger, struct ledger_entry *entry, uint32_t cell,
                   const void *owner, void (*save)(const void *owner, void *body));
/* The state of `from`, which has none any more, is that of `owner` from now on. */
void ledger_move(struct ledger_entry *entry, struct ledger_entry *from, const void *owner);
/* Its state is given up. */
void ledger_leave(struct ledger_entry *entry);
static inline void ledger_change(struct ledger_entry *entry)
{
    if (!entry->ledger || entry->changed)
        return;
    entry->changed = true;
    entry->next = entry->ledger->changed;
    entry->ledger->changed = entry;
}
/* What a cell is to be, from another ledger; NULL: zeros. */
void ledger_put(struct ledger *ledger, uint32_t cell, uint32_t kind, uint32_t generation,
                const void *body);
/* The step is done: what it changed counts. */
void ledger_step(struct ledger *ledger);

/* What counts of a cell, between two steps; NULL: nothing. */
const struct ledger_copy *ledger_copy_of(const struct ledger *ledger, uint32_t cell);
/* The state that was left in a cell, of this kind; NULL: none. */
const void *ledger_find(const struct ledger *ledger, uint32_t cell, enum ledger_kind kind);
/* Nobody takes it. */
void ledger_drop(struct ledger *ledger, uint32_t cell);

/* --- chains */
/* The name of a chain of somebody's, one of four; never 0. */
static inline uint64_t ledger_chain(const struct ledger_entry *entry, uint32_t which)
{
    return (uint64_t)entry->generation << 32 | entry->cell << 2 | which;
}
/* Finds what was left in the region of the supply, which gets the blocks that are free, and on
 * disk. Returns 0 or CW_ENOMEM. */
int ledger_find_left(struct ledger *ledger, struct supply *supply);
/* A piece, or NULL. Who takes it says so in it. */
struct ledger_piece *ledger_left(struct ledger *ledger, uint64_t chain, uint32_t number);
/* What nobody took is free. */
void ledger_forget_left(struct ledger *ledger, struct supply *supply);

#endif
