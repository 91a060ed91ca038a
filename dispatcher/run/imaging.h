/* Images of the ranks of a running job: asks for them, hears of them, and has them fetched for
 * ranks that are restarted. What is decided is in dispatcher/job/images.h. NULL in place of a
 * struct imaging: none are taken, and nothing is done. */
#ifndef DISPATCHER_IMAGING_H
#define DISPATCHER_IMAGING_H

#include "common/setup.h"
#include "dispatcher/job/images.h"
#include "dispatcher/job/job.h"
#include "dispatcher/options/options.h"
#include "dispatcher/ranks/rank_io.h"
#include "dispatcher/relays/relays.h"
#include "dispatcher/run/image_sources.h"
#include "dispatcher/run/standing.h"
#include "dispatcher/run/telling.h"
#include "dispatcher/streams/rank_input.h"

#define IMAGING_STATS_NS 1000000000ull     /* between two looks at logs, of up to 1000 ranks */
#define IMAGING_STATS_A_RANK_NS 1000000ull /* of more ranks */
#define IMAGING_PLACE_NS                                                                           \
    100000000ull                /* between two looks for the place of an image in the output */
#define IMAGING_UNPLACED_MAX 8u /* images of a rank whose place is looked for */
#define IMAGING_PAUSE_NS 200000000ull /* that rank 0 gets no input, so that it takes an image */
#define IMAGING_SLOWED 2u /* times the time between two images that the user said: that is told */

struct far_server;
struct imaging;

/* Everything borrowed. */
struct imaging_config {
    struct loop *loop;
    const struct run_options *options;
    const uint8_t *job_id; /* CW_ID_SIZE bytes */
    const char *dir;       /* of the job, for sockets */
    const char *host; /* other hosts reach this machine there; borrowed for imaging_new; NULL */
    struct agents *agents; /* of the host of our own server; NULL: it is here */
    const char *listen;    /* ... and where it listens there; as of struct far_server */
    const struct job *job;
    struct telling *telling;
    struct relays *relays;
    struct rank_io *rank_io;
    struct rank_input *input;
    struct standing *standing;
    struct state_file *state; /* images and their places outlive us there; NULL: they do not */
    const char *image_dir;    /* where, then */
    const struct image_sources_events *events;
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM, CW_ESYS, CW_EINVAL, CW_ENOTFOUND. Not for a job without images. */
struct imaging *imaging_new(const struct imaging_config *config, struct cw_err *err);
void imaging_free(struct imaging *imaging);

/* What was true of images in a dispatcher before us: a record START, MARK, PLACE or TRIMMED; others
 * are of no interest. Output, input and rank_io have taken it. */
void imaging_replay(struct imaging *imaging, const struct job_state_record *record);
/* After all of that: asks the server what it has. Whether it has said so; `*failed`: it will not.
 */
void imaging_look_up(struct imaging *imaging);
bool imaging_knows(const struct imaging *imaging, bool *failed);

/* The job ends: no more are taken or fetched. */
void imaging_end(struct imaging *imaging);

/* What the setup of a process on that host has of images; `is_near`: our own server stands there.
 */
void imaging_set_up(const struct imaging *imaging, uint32_t host, bool is_near,
                    struct cw_setup *setup);

/* Our own server where it stands on a host; NULL: it does not. No rank is to be started before it
 * is settled. */
const struct far_server *imaging_far_server(const struct imaging *imaging);

/* The core, for questions. */
const struct images *imaging_images(const struct imaging *imaging);

/* --- of processes --- */
bool imaging_is_child(const struct imaging *imaging, pid_t pid);
void imaging_child_ended(struct imaging *imaging, int status); /* the caller has waited for it */

/* --- of ranks --- */
/* Something about it has changed, as the job core says: it began to live, or stopped to. */
void imaging_look(struct imaging *imaging, uint32_t rank);
void imaging_crashed(struct imaging *imaging, uint32_t rank);
/* A report IMAGE_TAKEN or IMAGE_ENDED. */
void imaging_report(struct imaging *imaging, uint32_t rank, const struct cw_report *report);
void imaging_trimmed(struct imaging *imaging, const struct cw_trim *trimmed);
void imaging_log(struct imaging *imaging, uint32_t rank, uint64_t bytes);

/* --- of restarts --- */
/* As image_sources_ask. */
bool imaging_source(struct imaging *imaging, uint32_t rank);
/* A process of it has started, from this image. */
void imaging_started(struct imaging *imaging, uint32_t rank, uint32_t number);
/* The last event that the process of this image had taken; 0: of its beginning. */
uint64_t imaging_event(const struct imaging *imaging, uint32_t rank, uint32_t number);
/* What the present process was started from. */
uint32_t imaging_from(const struct imaging *imaging, uint32_t rank);
/* It cannot go on from that one: that is of no use, or (`broke_off`) did not come whole. */
void imaging_not_restored(struct imaging *imaging, uint32_t rank, const char *why, bool broke_off);

/* --- on demand --- */
void imaging_demand(struct imaging *imaging);
/* Why the last image of the rank failed. */
const char *imaging_why(const struct imaging *imaging, uint32_t rank);

#endif
