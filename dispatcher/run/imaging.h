/* Images of the ranks of a running job: asks for them, hears of them, and has them fetched for
 * ranks that are restarted. What is decided is in dispatcher/job/images.h. NULL in place of a
 * struct imaging: none are taken, and nothing is done. */
#ifndef DISPATCHER_IMAGING_H
#define DISPATCHER_IMAGING_H

#include "common/setup.h"
#include "dispatcher/job/images.h"
#include "dispatcher/job/job.h"
#include "dispatcher/run/image_servers.h"
#include "dispatcher/state/job_state.h"

#define IMAGING_STATS_NS 1000000000ull     /* between two looks at logs, of up to 1000 ranks */
#define IMAGING_STATS_A_RANK_NS 1000000ull /* of more ranks */
#define IMAGING_PLACE_NS                                                                           \
    100000000ull /* between two looks for the place of an image in the output */
#define IMAGING_PAUSE_NS 200000000ull /* that rank 0 gets no input, so that it takes an image */

struct imaging;
struct parts;

struct imaging_events {
    /* As imaging_restart said: the rank can be started from this image (0: from its beginning),
     * which is read at `fd`, the callee's. */
    void (*source)(void *ctx, uint32_t rank, uint32_t number, int fd);
    /* There is nothing that it could be started from. */
    void (*no_source)(void *ctx, uint32_t rank, const char *why);
    /* As of struct servers_config. */
    void (*start_server)(void *ctx, uint32_t server, const char *listen,
                         const uint8_t key[CW_KEY_SIZE]);
};

/* All borrowed; `parts` has what ranks need, but no images. NULL with *err set: CW_ENOMEM, CW_ESYS,
 * CW_EINVAL, CW_ENOTFOUND. Not for a job without images. */
struct imaging *imaging_new(struct parts *parts, const struct job *job,
                            const struct imaging_events *events, void *ctx, struct cw_err *err);
void imaging_free(struct imaging *imaging);

/* What was true of images in a dispatcher before us: a record START, MARK, PLACE or TRIMMED; others
 * are of no interest. Output, input and rank_io have taken it. */
void imaging_replay(struct imaging *imaging, const struct job_state_record *record);
/* After all of that: asks the server what it has. Whether it has said so; `*failed`: it will not.
 */
void imaging_look_up(struct imaging *imaging);
bool imaging_knows(const struct imaging *imaging, bool *failed);

/* The job ends: no more are taken or fetched; what was not told of failures is. */
void imaging_end(struct imaging *imaging);

/* A process is started on this host: what its setup has of images. */
void imaging_set_up(struct imaging *imaging, uint32_t host, struct cw_setup *setup);

/* Its checkpoint servers, of which it is to hear. NULL: there are none. */
struct image_servers *imaging_servers(struct imaging *imaging);

/* --- of ranks --- */
/* Something about it has changed, as the job core says: it began to live, or stopped to. */
void imaging_look(struct imaging *imaging, uint32_t rank);
void imaging_crashed(struct imaging *imaging, uint32_t rank);
/* A report IMAGE_TAKEN or IMAGE_ENDED. */
void imaging_report(struct imaging *imaging, uint32_t rank, const struct cw_report *report);
void imaging_trimmed(struct imaging *imaging, const struct cw_trim *trimmed);
void imaging_log(struct imaging *imaging, uint32_t rank, uint64_t bytes);

/* --- of restarts --- */
/* The rank is to be restarted: source() or no_source() follows, from the loop. False: that is from
 * its beginning. */
bool imaging_restart(struct imaging *imaging, uint32_t rank);
/* A process of it has started, from this image. */
void imaging_started(struct imaging *imaging, uint32_t rank, uint32_t number);
/* The last event that the process of this image had taken; 0: of its beginning. */
uint64_t imaging_event(const struct imaging *imaging, uint32_t rank, uint32_t number);
/* It cannot go on from that one: that is of no use, or (`broke_off`) did not come whole. */
void imaging_not_restored(struct imaging *imaging, uint32_t rank, const char *why, bool broke_off);

#endif
