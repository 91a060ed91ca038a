/* What a checkpoint server holds: jobs, their ranks, and the images of each; which units of a
 * rank's file of blocks are whose; how much room there is. In memory alone, but for files of a rank
 * or job of which nothing is held any more. All functions from any thread; none waits for the
 * disk. */
#ifndef CKPTSRV_REGISTRY_H
#define CKPTSRV_REGISTRY_H

#include "ckptsrv/imgdir.h"
#include "ckptsrv/units.h"

#include <stdbool.h>

#define REGISTRY_IMAGES_MAX 3u /* of a rank */

struct registry;
struct held_rank;
struct held_image;

/* `files` is borrowed. `max`: bytes of all files of blocks; 0: no bound. NULL without memory. */
struct registry *registry_new(const struct imgdir *files, uint64_t max);
void registry_free(struct registry *registry);

/* --- a rank in use -------------------------------------------------------------------------------
 */

/* Finds it, or begins with it; `rank` is below CW_RANKS_MAX. It stays until registry_leave. NULL
 * without memory. */
struct held_rank *registry_enter(struct registry *registry, const uint8_t job[CW_ID_SIZE],
                                 uint32_t rank);
/* When the last has left, and there is no image, its files go. */
void registry_leave(struct held_rank *rank);

/* The highest number of its images, known or not; 0: there is none. */
uint32_t registry_newest(struct held_rank *rank);

/* Its file becomes as long as what is in use there. */
void registry_fit(struct held_rank *rank);

/* How many bytes may still come to the rank's file of blocks, as far as --max goes. */
uint64_t registry_room(struct held_rank *rank);
void registry_use(struct registry *registry, uint64_t *used, uint64_t *max);

/* Takes `least` to `most` units of its file. Errors: CW_ELIMIT: the text says how much there is;
 * CW_ENOMEM. */
int registry_take(struct held_rank *rank, uint64_t least, uint64_t most, struct extent *taken,
                  struct cw_err *err);
/* The file becomes shorter where its end is free. */
void registry_release(struct held_rank *rank, const struct extents *extents);

/* --- images --------------------------------------------------------------------------------------
 */

/* One that was found on disk. `extents` become the registry's. Errors: CW_ENOMEM. */
int registry_found(struct registry *registry, const uint8_t job[CW_ID_SIZE],
                   const struct cw_stored *image, struct extents *extents, struct cw_err *err);

/* An image was found whose index tells nothing: it, and its blocks, are not to be touched. So the
 * first `units` of the rank's file stay in use, and new images have higher numbers. Errors:
 * CW_ENOMEM. */
int registry_found_unknown(struct registry *registry, const uint8_t job[CW_ID_SIZE], uint32_t rank,
                           uint32_t number, uint64_t units, struct cw_err *err);

/* An image whose index is about to be written: `own` are units that were taken, `shared` are those
 * of its base, which is pinned. Both become the registry's. It is not there until registry_commit;
 * in place of that it is unpinned, once its index is gone. NULL without memory. */
struct held_image *registry_prepare(struct held_rank *rank, const struct cw_stored *stored,
                                    struct extents *own, const struct extents *shared);
void registry_commit(struct held_image *image);

/* That others may know of it; true once. */
bool registry_tell(struct held_rank *rank, uint32_t number);

/* NULL: there is no such image. Its units stay until registry_unpin. */
struct held_image *registry_pin(struct held_rank *rank, uint32_t number);
void registry_unpin(struct held_image *image);

/* Takes out the oldest image of the rank if its number is at most `number`: it is the caller's, who
 * unpins it once its index is gone, and there for nobody else. NULL: there is none. */
struct held_image *registry_take_out(struct held_rank *rank, uint32_t number, uint32_t *its_number);
/* Likewise, where the rank has too many: the oldest but one. The oldest may be the only one of use,
 * which who takes the images would have dropped otherwise; to the newest the next one refers. */
struct held_image *registry_take_surplus(struct held_rank *rank, uint32_t *its_number);
/* Its index could not be removed: it is there again, or, of one that was to be committed, for the
 * first time. */
void registry_put_back(struct held_image *image);

/* Calls for each image that others may know of. */
typedef void registry_visit(void *ctx, const struct cw_stored *image);
void registry_each(struct registry *registry, const uint8_t job[CW_ID_SIZE], registry_visit *visit,
                   void *ctx);
/* Whether anything of the job is held, or in use. */
bool registry_has_job(struct registry *registry, const uint8_t job[CW_ID_SIZE]);
/* The lowest rank of the job from `from` on; false: there is none. */
bool registry_next_rank(struct registry *registry, const uint8_t job[CW_ID_SIZE], uint32_t from,
                        uint32_t *rank);

#endif
