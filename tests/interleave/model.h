/* Memory as C11 lets several threads see it: the stores to each place in one order, of which a load
 * may see any that its thread does not know to be overwritten. What a thread knows is a view: for
 * each place the store that it saw last, and for each thread how far it is known. Release stores
 * carry views, acquire loads take them up, and sequentially consistent fences share one (Kang and
 * others, A Promising Semantics for Relaxed-Memory Concurrency, POPL 2017, without promises: no
 * load sees a store that comes after it). x86-TSO and the release and acquire of ARM are within
 * it.
 *
 * Accesses that are not atomic must be ordered by views: else it is a race, and wrong. One memory
 * at a time. No scheduling here. */
#ifndef INTERLEAVE_MODEL_H
#define INTERLEAVE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_THREADS 3u

enum model_kind {
    MODEL_LOAD,
    MODEL_STORE,
    MODEL_EXCHANGE,
    MODEL_COMPARE, /* and exchange */
    MODEL_FENCE,
    MODEL_SLEEP, /* FUTEX_WAIT: whether the latest value is as expected */
    MODEL_WAKE,  /* FUTEX_WAKE */
    MODEL_WRITE, /* a write that is not atomic, about to be done */
};

struct model_op {
    enum model_kind kind;
    void *at;
    unsigned size;    /* bytes: 4 or 8 */
    int order;        /* as of gcc's __ATOMIC_ */
    int order_failed; /* of COMPARE */
    uint64_t value;
    uint64_t expected;
};

struct model_result {
    uint64_t value; /* that was there */
    bool done;      /* COMPARE, SLEEP: it was as expected */
};

/* Another memory, all of whose bytes are accessed by the caller until model_begin. */
void model_use(void *memory, size_t size);
bool model_covers(const void *at);
/* What is there now is known to all threads. */
void model_begin(void);

/* How many stores the operation may see now, at least 1; and does it with one, 0 is the latest. */
unsigned model_choices(unsigned thread, const struct model_op *op);
struct model_result model_do(unsigned thread, const struct model_op *op, unsigned choice);
/* An access that is not atomic, which the caller does then. */
void model_access(unsigned thread, const void *at, size_t size, bool writes);
/* The thread learns what another knows. */
void model_follow(unsigned thread, unsigned other);
/* It has ended, and a successor begins, which knows all that it did. */
void model_succeed(unsigned thread);

/* Equal where all goes on in the same ways if the memory is the same, and what has not `ended` of
 * the threads acts by what it saw: each remembers all that, until it forgets it, and then where it
 * was. */
uint64_t model_hash(const bool *ended);
void model_note(unsigned thread, uint64_t event);
void model_forget(unsigned thread, uint64_t where);
const char *model_wrong(void); /* NULL: nothing is */

#endif
