/* How the job stands: the counters of its relays, and the answers to whoever asks at the status
 * socket. */
#ifndef DISPATCHER_STATUS_SOURCE_H
#define DISPATCHER_STATUS_SOURCE_H

#include "common/frame.h"
#include "dispatcher/job/images.h"
#include "dispatcher/job/job.h"

#include <stdio.h>

#define STATUS_SOURCE_LOOK_NS 20000000ull /* between two looks at images that are waited for */

struct parts;
struct status_source;

/* Both borrowed; `parts` has relays. NULL with *err set: CW_ENOMEM, CW_ESYS, CW_EINVAL. */
struct status_source *status_source_new(const struct parts *parts, const struct job *job,
                                        struct cw_err *err);
void status_source_free(struct status_source *status); /* NULL is allowed */

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
