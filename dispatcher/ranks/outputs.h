/* What all ranks of a job print, in its loop: reads their pipes and passes the lines on. */
#ifndef DISPATCHER_OUTPUTS_H
#define DISPATCHER_OUTPUTS_H

#include "common/err.h"
#include "common/loop.h"
#include "common/setup.h"
#include "dispatcher/state/state_file.h"
#include "dispatcher/wire/channel.h"

#include <stdbool.h>

#define OUTPUT_SYNC_NS                                                                             \
    1000000000ull /* of a kept job: what was printed is on disk after this time */

#define OUTPUT_SYNC_SHARE 10 /* ... and so many times what the last sync took */

struct outputs;

struct outputs_config {
    struct loop *loop; /* borrowed */
    uint32_t ranks;
    const char *dir;          /* for a file of each rank and stream; NULL: our own two. Borrowed */
    bool tag;                 /* each line begins with its rank */
    struct state_file *state; /* what was printed outlives us there; NULL: it does not */
    struct places *places;    /* of images, of each rank: known once outputs_set_mark was called */
    bool append;              /* files in `dir` are gone on with */
    /* An output cannot be written: what it held is dropped. CW_ECLOSED: nobody reads it. */
    void (*failed)(void *ctx, const struct cw_err *err);
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM; CW_ESYS, naming the directory. */
struct outputs *outputs_new(const struct outputs_config *config, struct cw_err *err);
void outputs_free(struct outputs *outputs); /* NULL is allowed */

/* A process of the rank has started, which goes on from this image, or from its beginning (0):
 * takes over what it prints. Errors: CW_ENOMEM, CW_ESYS. */
int outputs_open(struct outputs *outputs, uint32_t rank, uint32_t number,
                 struct channel *const from[2], struct cw_err *err);

/* Bytes for output marks (docs/protocol.md, "Images"): secret, and the first one, for which all
 * that ranks print is searched, is in no text. */
void outputs_draw_mark(uint8_t mark[CW_MARK_SIZE]);

/* Of a rank without a process until now: what a dispatcher before us printed of both streams, as of
 * job_state_printed; it goes on there. Errors: CW_ENOMEM, CW_ESYS. */
int outputs_return(struct outputs *outputs, uint32_t rank,
                   const uint64_t printed[JOB_STATE_STREAMS], struct cw_err *err);
/* Whether all that the rank printed before this image, which has a place, is out. */
bool outputs_are_out(const struct outputs *outputs, uint32_t rank, uint32_t number);
/* Whether nothing more will come of the rank, and all that came is out. */
bool outputs_are_through(const struct outputs *outputs, uint32_t rank);

/* Of a kept job: all that the rank has printed, or all ranks have, is on disk, or the job is not
 * kept any more. */
void outputs_sync(struct outputs *outputs, uint32_t rank);
void outputs_sync_all(struct outputs *outputs);

/* From now on marks with these bytes, which are copied, are taken out of what ranks print, and tell
 * the places of images. Once, before a rank is started. */
void outputs_set_mark(struct outputs *outputs, const uint8_t mark[CW_MARK_SIZE]);

/* The rank has said that it took this image: its marks are looked for. One that is not there will
 * not come on that stream, which is the rank's no more: the image's place is at its end. While
 * nobody takes what the rank has printed it has none: its mark is behind that. */
void outputs_settle(struct outputs *outputs, uint32_t rank, uint32_t number);

/* The rank has crashed, and another process will go on; `at_once`: it may still live. */
void outputs_interrupt(struct outputs *outputs, uint32_t rank, bool at_once);

/* No rank is started again: incomplete lines may go out. */
void outputs_give_up(struct outputs *outputs);

/* True while anything of any rank may still come. */
bool outputs_are_open(const struct outputs *outputs);

/* Of streams that have ended: closes their files in `dir`, and says which could not be written, by
 * failed(). After the last sync. */
void outputs_close_files(struct outputs *outputs);

/* Whether something of a rank waits for a reader of our outputs, which may take its time. */
bool outputs_wait_for_sinks(const struct outputs *outputs);

/* A line of the dispatcher's own on stderr, in one write: ranks print to the same terminal or file.
 * On a line of its own, also when a rank has not ended its own. It waits here when stderr takes no
 * more now; when there is no room either, it is counted, and the count is printed later. */
void outputs_say(struct outputs *outputs, const char *text);

/* Likewise whole lines as they are, of at most OUTPUT_LINE_MAX bytes. False: there is no room now.
 */
bool outputs_print(struct outputs *outputs, const char *text, size_t size);

/* Whether anything of these waits. */
bool outputs_own_holds(const struct outputs *outputs);

#endif
