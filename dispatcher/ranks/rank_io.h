/* What the processes of ranks say to the dispatcher: PMI requests, and reports of the R-device over
 * the control descriptor. What a rank says to both is heard in the order in which it said it: its
 * report of an image before the PMI requests that follow it, which makes the image's place among
 * them exact. */
#ifndef DISPATCHER_RANK_IO_H
#define DISPATCHER_RANK_IO_H

#include "common/setup.h"
#include "dispatcher/ranks/pmi.h"
#include "dispatcher/state/state_file.h"
#include "dispatcher/wire/channel.h"

#define RANK_IO_READS_A_TURN 16u  /* of one descriptor, in a turn of the loop */
#define RANK_IO_READS_HEARD 1024u /* of what it has said until now: more than a channel holds */

struct rank_io;

/* All in the job's loop, or from inside the functions below. */
struct rank_io_events {
    void (*asked)(void *ctx, uint32_t rank, const struct pmi_request *request);
    /* It enters its first barrier, and its R-device has not read its setup: there is none. */
    void (*without_device)(void *ctx, uint32_t rank);
    /* Another process of it could not be told the same about published names. */
    void (*forgotten)(void *ctx, uint32_t rank);
    /* One does not speak PMI, or does not read the answers; the text names the rank. */
    void (*broken)(void *ctx, const struct cw_err *err);
    void (*report)(void *ctx, uint32_t rank, const struct cw_report *report);
    void (*no_report)(void *ctx, uint32_t rank); /* something else came */
};

struct rank_io_config {
    uint32_t ranks;           /* what follows is borrowed */
    const uint8_t *job_id;    /* CW_ID_SIZE bytes */
    const uint32_t *appnums;  /* MPI_APPNUM of each rank */
    struct places *places;    /* of images, of each rank */
    struct state_file *state; /* what ranks say outlives us there; NULL: it does not */
    const struct rank_io_events *events;
    void *ctx;
};

/* NULL: no memory. */
struct rank_io *rank_io_new(const struct rank_io_config *config);
void rank_io_free(struct rank_io *io); /* NULL is allowed */

/* The process has started; takes over both channels. One that is not the first of its rank is told
 * by PMI what that one was told. `number`: of the image that it goes on from, which has its place;
 * 0: from its beginning. */
void rank_io_open(struct rank_io *io, struct cw_process process, uint32_t number,
                  struct channel *pmi, struct channel *control);

/* What was said to a dispatcher before us, in its order: a record STARTED, REPORT, PMI or MARK;
 * others are of no interest. Of what follows only report() and forgotten() are told. */
void rank_io_replay(struct rank_io *io, const struct job_state_record *record);

/* Takes what this one, or all of them, have said until now. */
void rank_io_hear(struct rank_io *io, struct cw_process process);
void rank_io_hear_all(struct rank_io *io);

/* What it says is of no interest any more. */
void rank_io_close(struct rank_io *io, struct cw_process process);

#endif
