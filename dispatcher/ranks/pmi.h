/* PMI, the server's side, by what is meant: ranks ask to learn of their job, to exchange addresses
 * and to meet in fences. How that is written (pmi_line.h: PMI-1) is no matter here.
 *
 * Pure: requests come in by pmi_ask, answers go out by pmi_ops; no I/O, no clock, no globals. One
 * pmi serves the ranks of one job. Not thread-safe: one thread at a time. */
#ifndef DISPATCHER_PMI_H
#define DISPATCHER_PMI_H

#include "common/setup.h"
#include "dispatcher/ranks/places.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMI_KVSNAME_MAX 256            /* bytes, terminator counted */
#define PMI_ENTRIES_MAX 4096           /* keys and names that one rank may hold */
#define PMI_ENTRY_BYTES_MAX (1u << 20) /* bytes of them */
#define PMI_ANSWERS_MAX 4096           /* about published names, kept of a rank for its restart */

struct pmi;

enum pmi_what {
    PMI_LIMITS, /* of what can be written, which this does not know */
    PMI_APPNUM,
    PMI_SPACE, /* the name of the job's space of keys */
    PMI_SIZE,
    PMI_GET,
    PMI_SPAWN, /* which is declined */
    PMI_ABORT, /* has no answer */
    PMI_KEPT,  /* from here on: what a server that takes over has to know of ... */
    PMI_INIT = PMI_KEPT,
    PMI_PUT,
    PMI_COMMITS, /* ... and from here on: before it is answered */
    PMI_FENCE = PMI_COMMITS,
    PMI_FINALIZE,
    PMI_PUBLISH,
    PMI_LOOKUP,
    PMI_UNPUBLISH,
    PMI_WHATS
};

struct pmi_request {
    enum pmi_what what;
    const char *space; /* PUT, GET; NULL: the job's */
    const char *key;   /* these two, and of names: the service */
    const char *value; /* PUT; PUBLISH: the port */
    int code;          /* ABORT: of the job; INIT: 0, else it speaks what we do not */
};

struct pmi_answer {
    enum pmi_what what;
    const char *problem; /* a word; NULL: it was done */
    const char *value;   /* what was asked for; NULL: nothing */
};

struct pmi_config {
    uint32_t ranks;          /* of the job; at least 1 */
    const char *kvsname;     /* the job's name; copied; 1 to PMI_KVSNAME_MAX - 1 bytes, no blanks */
    const uint32_t *appnums; /* MPI_APPNUM of each rank; borrowed until pmi_free; NULL: all 0 */
    struct places *places;   /* of each rank; likewise */
};

/* Called from inside pmi_ask, with the `ctx` of pmi_new; they may ask (pmi_state_of, ...) but must
 * not call pmi_ask or pmi_free. */
struct pmi_ops {
    /* The process asks this, which is allowed; nothing has come of it yet. An INIT that speaks what
     * we do not is not told of, nor what is for another space. May be NULL. */
    void (*asked)(void *ctx, struct cw_process process, const struct pmi_request *request);
    void (*answer)(void *ctx, struct cw_process process, const struct pmi_answer *answer);
    /* PMI_ANSWERS_MAX is reached: another process of the rank could not be told the same again.
     * Called once; may be NULL. */
    void (*forgotten)(void *ctx, uint32_t rank);
};

/* Returns NULL when there is no memory. `ops` and `ctx` are borrowed until pmi_free. */
struct pmi *pmi_new(const struct pmi_config *config, const struct pmi_ops *ops, void *ctx);

/* NULL is allowed. */
void pmi_free(struct pmi *pmi);

/* Returns why that is not allowed now; NULL: it is, and is answered, at once or when the others
 * have come to the fence. */
const char *pmi_ask(struct pmi *pmi, struct cw_process process, const struct pmi_request *request);

/* The process takes an image, between two requests: what it has been told so far is the
 * image's place. While it waits in a fence, where MPICH takes none, there is no place. */
void pmi_mark(struct pmi *pmi, struct cw_process process, uint32_t number);

/* Another incarnation of this process begins, from the place of this image, or from the beginning
 * (0, and when there is no such place): it is told what the one before was told, and passes the
 * fences that were passed. What it publishes is there already. */
void pmi_restarted(struct pmi *pmi, struct cw_process process, uint32_t number);

#endif
