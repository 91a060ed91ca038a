/* How the job stands: the counters of its relays, and the answers to whoever asks at the status
 * socket. */
#ifndef DISPATCHER_STATUS_SOURCE_H
#define DISPATCHER_STATUS_SOURCE_H

#include "common/frame.h"
#include "common/loop.h"
#include "dispatcher/job/images.h"
#include "dispatcher/job/job.h"
#include "dispatcher/launch/remote.h"
#include "dispatcher/run/layout.h"

#include <stdio.h>

#define STATUS_SOURCE_LOOK_NS 20000000ull /* between two looks at images that are waited for */

struct status_source;

/* Everything borrowed. */
struct status_source_config {
    struct loop *loop;
    const struct run_options *options;
    const struct layout *layout;
    const struct job *job;
    struct remote *const *remote; /* the processes of ranks; to NULL: none is left */
    const uint8_t *job_id;        /* CW_ID_SIZE bytes */
    const char *dir;              /* for the socket */
    /* Fresh counters are wanted: returns for how many ranks status_source_take follows. */
    uint32_t (*ask)(void *ctx);
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM, CW_ESYS, CW_EINVAL. */
struct status_source *status_source_new(const struct status_source_config *config,
                                        struct cw_err *err);
void status_source_free(struct status_source *status); /* NULL is allowed */

/* For the answers: where the relays are, and how often one was started again. */
void status_source_set_relays(struct status_source *status, const char *addresses);
void status_source_set_relay_restarts(struct status_source *status, uint32_t relay,
                                      uint32_t restarts);

/* What is known of images of ranks, which stays. From now on whoever connects to another socket of
 * the job has one taken of each rank (`demanded`), and gets a document that says what became of
 * them. Errors: CW_ESYS, CW_EINVAL. */
int status_source_set_images(struct status_source *status, const struct images *images,
                             void (*demanded)(void *ctx), void *ctx, struct cw_err *err);

/* Counters of a rank have come. */
void status_source_take(struct status_source *status, const struct cw_stats *stats);

/* Asks, unless answers are on their way. */
void status_source_refresh(struct status_source *status);

/* For --stats: asks; how many ranks' have not come since; prints the table. */
void status_source_ask(struct status_source *status);
uint32_t status_source_missing(const struct status_source *status);
void status_source_print(FILE *to, const struct status_source *status);

#endif
