/* What was printed of a kept job, in words of 8 bytes in a file that is mapped: they outlive the
 * process at once. After the loss of power some may be of an earlier moment, but none is of a later
 * one than it may be. docs/job-state.md. */
#ifndef DISPATCHER_COUNTS_H
#define DISPATCHER_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTS_NAME "counts"
#define COUNTS_STREAMS 2 /* of a rank: stdout and stderr */

struct counts {
    uint64_t *words; /* mapped; NULL: there are none */
    size_t bytes;
    uint32_t ranks;
    bool rebooted; /* another kernel than now wrote them */
    void (*changed)(void *ctx, uint64_t word, uint64_t value); /* NULL: nobody is told */
    void *ctx;
};

/* Makes them in the directory `dir`, or finds those that are there, of a job of so many ranks.
 * Errors: -1 with errno set; EBADMSG: what is there is of another job. */
int counts_make(struct counts *counts, int dir, uint32_t ranks);
int counts_find(struct counts *counts, int dir, uint32_t ranks);
/* They were written on another host, all that this process has to know. */
void counts_adopt(struct counts *counts);
/* Tells all of them to changed(). */
void counts_tell(struct counts *counts);
/* Those that were found go on: of what another kernel wrote, what was synced counts. */
void counts_go_on(struct counts *counts);
void counts_close(struct counts *counts);

/* Bytes of the journal that are known to be on disk; 0 where that cannot be read. */
uint64_t counts_read_journal(int dir);
void counts_set_journal(struct counts *counts, uint64_t bytes);

/* How much of a rank's stream was printed, as of job_state_printed. Here and in the next ones NULL
 * is allowed: nothing is counted. */
void counts_set_printed(struct counts *counts, uint32_t rank, int stream, uint64_t printed);
uint64_t counts_printed(const struct counts *counts, uint32_t rank, int stream);

/* What was printed of it is on disk: it counts also after the loss of power. */
void counts_settle(struct counts *counts, uint32_t rank, int stream);

/* Something of a rank is being printed, and not counted yet; or no longer is. */
void counts_begin_printing(struct counts *counts, uint32_t rank);
void counts_end_printing(struct counts *counts);
/* Whether a process before us ended while it was printing, and of which rank. */
bool counts_was_printing(const struct counts *counts, uint32_t *rank);

/* What was set is on disk. Errors: -1 with errno set. */
int counts_sync(const struct counts *counts);

#endif
