/* PMI-1 ("simple PMI"), the server's side: the lines that MPICH writes to the descriptor named by
 * PMI_FD to learn of its job, to exchange addresses and to meet in barriers.
 *
 * Pure: bytes come in by pmi_input, replies and happenings go out by pmi_ops; no I/O, no clock, no
 * globals. One pmi serves the ranks of one job. Not thread-safe: one thread at a time. */
#ifndef DISPATCHER_PMI_H
#define DISPATCHER_PMI_H

#include "common/err.h"
#include "dispatcher/pmi/pmi_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMI_LINE_MAX 1024   /* bytes of a line, its newline counted; the client's PMIU_MAXLINE */
#define PMI_KVSNAME_MAX 256 /* bytes, terminator counted, as for the two below */
#define PMI_KEYLEN_MAX 256
/* What is left of a line for the value of "cmd=put kvsname=... key=... value=...". The client would
 * compute the same from a larger number; a value of that size would not fit its lines. */
#define PMI_VALLEN_MAX (PMI_LINE_MAX - PMI_KVSNAME_MAX - PMI_KEYLEN_MAX - 30)
#define PMI_ANSWERS_MAX 4096            /* about published names, kept of a rank for its restart */
#define PMI_SPAWN_LINES_MAX (64u << 10) /* lines of one mcmd=spawn */

struct pmi;

struct pmi_config {
    uint32_t ranks;          /* of the job; at least 1 */
    const char *kvsname;     /* the job's name; copied; 1 to PMI_KVSNAME_MAX - 1 bytes, no blanks */
    const uint32_t *appnums; /* MPI_APPNUM of each rank; borrowed until pmi_free; NULL: all 0 */
};

/* Called from inside pmi_input, with the `ctx` of pmi_new; they may ask (pmi_state_of, ...) but
 * must not call pmi_input or pmi_free. */
struct pmi_ops {
    /* Send `line` (ends in a newline, is not terminated, gone after the call) to the rank. */
    void (*reply)(void *ctx, uint32_t rank, const char *line, size_t size);
    void (*initialized)(void *ctx, uint32_t rank); /* after the reply to init */
    void (*finalized)(void *ctx, uint32_t rank);   /* after the reply to finalize */
    /* The rank asks for the end of the job and waits for it; there is no reply. */
    void (*aborted)(void *ctx, uint32_t rank, int exit_code);
    /* PMI_ANSWERS_MAX is reached: another process of the rank could not be told the same again.
     * Called once; may be NULL. */
    void (*forgotten)(void *ctx, uint32_t rank);
    /* The rank enters a barrier; the others are not let go yet. May be NULL. */
    void (*entering)(void *ctx, uint32_t rank);
};

enum pmi_state { PMI_NONE, PMI_RUNNING, PMI_FINALIZED };

/* Returns NULL when there is no memory. `ops` and `ctx` are borrowed until pmi_free. */
struct pmi *pmi_new(const struct pmi_config *config, const struct pmi_ops *ops, void *ctx);

/* NULL is allowed. */
void pmi_free(struct pmi *pmi);

/* Takes bytes as they came from the rank's descriptor, split anywhere. Errors: CW_EPROTO (a line
 * that is none, or not allowed now) and CW_ENOMEM; the text names the rank and quotes the line.
 * What followed the bad line is dropped: end the rank. */
int pmi_input(struct pmi *pmi, uint32_t rank, const char *bytes, size_t size, struct cw_err *err);

/* The rank takes an image of its process, between two requests: what it has been told so far is
 * remembered as the image's place, of which there are PLACES_MAX a rank. In the middle of a
 * request, where MPICH takes none, there is no place. */
void pmi_rank_mark(struct pmi *pmi, uint32_t rank, uint32_t number);

/* Whether there is that place; of number 0, the beginning, always. */
bool pmi_rank_has_place(const struct pmi *pmi, uint32_t rank, uint32_t number);

/* Images of the rank before this one are of no use any more; the place of this one is kept until
 * the next call. Without it the oldest goes when there are too many. */
void pmi_rank_forget_before(struct pmi *pmi, uint32_t rank, uint32_t number);

/* Another process plays the rank, from the place of this image, or from the beginning (0, and when
 * there is no such place): it is told what the one before was told, and passes the barriers that
 * were passed. What it publishes is there already. */
void pmi_rank_restarted(struct pmi *pmi, uint32_t rank, uint32_t number);

/* A barrier takes every rank of the job, so a rank that ended, finalized or not, stalls the ones
 * that wait: the caller sees it from these and from its own knowledge of processes. */
bool pmi_rank_in_barrier(const struct pmi *pmi, uint32_t rank);
uint32_t pmi_waiting(const struct pmi *pmi); /* ranks that wait in the barrier */
enum pmi_state pmi_state_of(const struct pmi *pmi, uint32_t rank);

#endif
