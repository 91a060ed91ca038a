/* Matching: posted receives and waiting messages of one mailbox, which a relay keeps for its rank
 * or, with channel memory, the rank itself; found by (tag, mask) in constant time.
 *
 * A receive matches a message when their tags agree on the bits of the receive's mask. MPI programs
 * use few masks (MPICH has four: exact, any tag, any source, both), so every mask that is seen
 * becomes a class with a hash index of its own. Of further masks match_takes() tells, and nobody
 * should post them: they are matched by scanning, as is what came while there was no memory for a
 * class. The order is MPI's: the earliest posted receive, the earliest message (MPI 4.0, 3.5
 * "non-overtaking"). */
#ifndef CW_MATCH_H
#define CW_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define MATCH_CLASSES 6

struct match_key;

struct match_link {
    TAILQ_ENTRY(match_link) others; /* of its key, or those that are scanned, in order */
    struct match_key *key;          /* NULL: none */
};
TAILQ_HEAD(match_links, match_link);

/* A posted receive. Owned by its mailbox. */
struct match_posted {
    struct match_link link; /* first: found by its address */
    struct match_posted *next_free;
    uint64_t order;
    uint64_t tag;
    uint64_t mask;
    uint64_t capacity;
    uint32_t req;
    uint8_t class; /* MATCH_CLASSES: none, it is in the list that is scanned */
};

/* What the index needs of a waiting message: its first member. */
struct match_waiting {
    struct match_link links[MATCH_CLASSES];
    TAILQ_ENTRY(match_waiting) in_order; /* of arrival */
    uint64_t tag;
};

struct match_table {
    struct match_key **buckets;
    uint32_t size; /* a power of two, or 0 */
    uint32_t used;
};

/* Where the index has its memory from; not cleared. `size` as it was asked for. */
struct match_memory {
    void *(*alloc)(void *owner, size_t size); /* NULL: there is none */
    void (*free)(void *owner, void *at, size_t size);
};

struct match_index {
    const struct match_memory *memory;
    void *owner;
    uint64_t masks[MATCH_CLASSES];
    uint32_t posted_in[MATCH_CLASSES];
    uint32_t classes;
    struct match_table posted_keys;
    struct match_table waiting_keys;
    struct match_key *free_keys;
    struct match_links scanned; /* posted receives without a class */
    TAILQ_HEAD(match_waitings, match_waiting) all;
    uint64_t waiting; /* how many these are */
    uint64_t order;
};

/* `memory` and `owner` outlive it. */
void match_init(struct match_index *ix, const struct match_memory *memory, void *owner);

/* Gives every posted receive to `release`, and frees the tables. No message may wait any more. */
void match_fini(struct match_index *ix, void (*release)(void *ctx, struct match_posted *posted),
                void *ctx);

/* Whether the mask is one of the first MATCH_CLASSES. */
bool match_takes(const struct match_index *ix, uint64_t mask);

/* Returns 0 or CW_ENOMEM. */
int match_post(struct match_index *ix, struct match_posted *posted);
void match_unpost(struct match_index *ix, struct match_posted *posted);

/* The earliest posted receive for a message of this tag, still linked; NULL when there is none. */
struct match_posted *match_find_posted(struct match_index *ix, uint64_t tag);

/* The posted receive of this request number, which was posted with this tag and mask; NULL when
 * there is none. */
struct match_posted *match_find_request(struct match_index *ix, uint32_t req, uint64_t tag,
                                        uint64_t mask);

/* How many are posted. */
uint64_t match_posted_count(const struct match_index *ix);
/* All of them, in the order in which they were. */
void match_posted_all(const struct match_index *ix, struct match_posted **all);

/* Returns 0 or CW_ENOMEM. */
int match_wait(struct match_index *ix, struct match_waiting *message);
void match_unwait(struct match_index *ix, struct match_waiting *message);

/* The earliest waiting message for this receive or probe, still linked; NULL when there is none. */
struct match_waiting *match_find_waiting(struct match_index *ix, uint64_t tag, uint64_t mask);

#endif
