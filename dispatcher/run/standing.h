/* How the job stands: the counters of its relays, and the answers to whoever asks at the status
 * socket. */
#ifndef DISPATCHER_STANDING_H
#define DISPATCHER_STANDING_H

#include "common/frame.h"
#include "dispatcher/job/images.h"
#include "dispatcher/job/job.h"
#include "dispatcher/loop/loop.h"
#include "dispatcher/options/options.h"

#include <stdio.h>
#include <sys/types.h>

struct standing;

/* Everything borrowed. */
struct standing_config {
    struct loop *loop;
    const struct run_options *options;
    const struct job *job;
    const uint8_t *job_id; /* CW_ID_SIZE bytes */
    const char *dir;       /* for the socket */
    /* Fresh counters are wanted: returns for how many ranks standing_take follows. */
    uint32_t (*ask)(void *ctx);
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM, CW_ESYS, CW_EINVAL. */
struct standing *standing_new(const struct standing_config *config, struct cw_err *err);
void standing_free(struct standing *standing); /* NULL is allowed */

/* For the answers: where the relays are, how often one was started again, and a rank's process (0:
 * it has none). */
void standing_set_relays(struct standing *standing, const char *addresses);
void standing_set_relay_restarts(struct standing *standing, uint32_t relay, uint32_t restarts);
void standing_set_pid(struct standing *standing, uint32_t rank, pid_t pid);

/* What is known of images of ranks, which stays; NULL: none are taken. */
void standing_set_images(struct standing *standing, const struct images *images);

/* Counters of a rank have come. */
void standing_take(struct standing *standing, const struct cw_stats *stats);

/* Asks, unless answers are on their way. */
void standing_refresh(struct standing *standing);

/* For --stats: asks; how many ranks' have not come since; prints the table. */
void standing_ask(struct standing *standing);
uint32_t standing_missing(const struct standing *standing);
void standing_print(FILE *to, const struct standing *standing);

#endif
