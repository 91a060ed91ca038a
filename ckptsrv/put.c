#include "ckptsrv/put.h"
#include "ckptsrv/intake.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PIECES_MAX 512  /* of one write; two for a block */
#define RUN_UNITS 1024u /* taken at a time: 4 MiB */

struct put {
    struct vault *vault;
    struct put_request request;
    struct held_rank *rank;
    struct held_image *base; /* NULL: none */
    uint8_t *base_index;
    struct intake *intake;
    int fd;
    struct extents own;    /* new units */
    struct extents shared; /* units of the base */
    struct extent run;     /* taken, and not written to yet */
    uint64_t run_first;    /* its first unit, before it was written to */
    struct iovec pieces[PIECES_MAX];
    int count;
    uint64_t offset; /* where they go */
};

static const uint8_t zeros[UNIT_BYTES];

/* --- blocks --------------------------------------------------------------------------------------
 */

static int flush(struct put *put, struct cw_err *err)
{
    int count = put->count;

    put->count = 0;
    if (count == 0)
        return CW_OK;
    return imgdir_write(put->fd, put->pieces, count, put->offset, err);
}

static void release_run(struct put *put)
{
    struct extents rest = {.at = &put->run, .count = 1};

    if (put->run.count > 0)
        registry_release(put->rank, &rest);
    put->run.count = 0;
}

/* The disk begins with the run before it, so that little is left to do at the end. */
static int take_run(struct put *put, uint64_t units, struct cw_err *err)
{
    if (flush(put, err) < 0)
        return err->code;
    sync_file_range(put->fd, (off_t)(put->run_first * UNIT_BYTES),
                    (off_t)((put->run.first - put->run_first) * UNIT_BYTES), SYNC_FILE_RANGE_WRITE);
    release_run(put);
    if (registry_take(put->rank, units, RUN_UNITS, &put->run, err) == CW_OK)
        put->run_first = put->run.first;
    return err->code;
}

static int write_block(void *ctx, const uint8_t *bytes, size_t size, uint64_t *place,
                       struct cw_err *err)
{
    struct put *put = ctx;
    uint64_t units = (size + UNIT_BYTES - 1) / UNIT_BYTES;
    size_t pad = units * UNIT_BYTES - size;

    if (put->run.count < units && take_run(put, units, err) < 0)
        return err->code;
    if (put->count + 2 > PIECES_MAX && flush(put, err) < 0)
        return err->code;
    *place = put->run.first * UNIT_BYTES;
    if (!extents_add(&put->own, (struct extent){put->run.first, units}))
        return cw_err_set(err, CW_ENOMEM, "no memory for what is known of images");
    if (put->count == 0)
        put->offset = *place;
    put->pieces[put->count++] = (struct iovec){(void *)bytes, size};
    if (pad > 0)
        put->pieces[put->count++] = (struct iovec){(void *)zeros, pad};
    put->run.first += units;
    put->run.count -= units;
    return CW_OK;
}

static int share_block(void *ctx, uint64_t place, uint64_t bytes, struct cw_err *err)
{
    struct put *put = ctx;
    struct extent extent = {place / UNIT_BYTES, (bytes + UNIT_BYTES - 1) / UNIT_BYTES};

    if (extents_add(&put->shared, extent))
        return CW_OK;
    return cw_err_set(err, CW_ENOMEM, "no memory for what is known of images");
}

/* --- beginning -----------------------------------------------------------------------------------
 */

/* A base that is not there, or cannot be read, is none: the image is whole then. */
static size_t pin_base(struct put *put)
{
    const struct put_request *request = &put->request;
    struct index_summary summary;
    struct cw_err ignored = {0};
    size_t size = 0;

    put->base = request->put.base ? registry_pin(put->rank, request->put.base) : NULL;
    if (!put->base)
        return 0;
    if (imgdir_get_index(vault_dir(put->vault), request->job, request->rank, request->put.base,
                         &put->base_index, &size, &ignored) == CW_OK &&
        !index_check_of(put->base_index, size, request->job, request->rank, request->put.base,
                        &summary))
        return size;
    free(put->base_index);
    put->base_index = NULL;
    registry_unpin(put->base);
    put->base = NULL;
    return 0;
}

/* An image that does not fit is refused before it has come; one that refers to another may be much
 * smaller than it says. */
static int check_room(const struct put *put, struct cw_err *err)
{
    uint64_t room = registry_room(put->rank);
    uint64_t bytes = put->request.put.bytes;
    uint64_t used;
    uint64_t max;

    if (put->base || bytes <= room)
        return CW_OK;
    registry_use(vault_registry(put->vault), &used, &max);
    return cw_err_set(err, CW_ELIMIT,
                      "no room for an image of %llu bytes: of the checkpoint server's %llu bytes, "
                      "%llu are in use; give it more (--max; of a job: --ckpt-max)",
                      (unsigned long long)bytes, (unsigned long long)max, (unsigned long long)used);
}

static int check_number(const struct put *put, struct cw_err *err)
{
    uint32_t newest = registry_newest(put->rank);

    if (put->request.put.number > newest)
        return CW_OK;
    return cw_err_set(err, CW_EPROTO,
                      "image %u of rank %u: the checkpoint server has image %u; the number of a "
                      "new one has to be above it",
                      put->request.put.number, put->request.rank, newest);
}

static int begin(struct put *put, uint32_t *base, struct cw_err *err)
{
    const struct put_request *request = &put->request;
    const struct imgdir *files = vault_dir(put->vault);
    struct intake_config config = {.rank = request->rank,
                                   .incarnation = request->incarnation,
                                   .put = request->put,
                                   .write = write_block,
                                   .share = share_block,
                                   .ctx = put};

    memcpy(config.job, request->job, CW_ID_SIZE);
    if (check_number(put, err) < 0)
        return err->code;
    config.base_size = pin_base(put);
    config.base = put->base_index;
    if (check_room(put, err) < 0 || imgdir_make_job(files, request->job, err) < 0)
        return err->code;
    put->fd = imgdir_open_blocks(files, request->job, request->rank, true, err);
    if (put->fd < 0)
        return err->code;
    put->intake = intake_new(&config);
    *base = put->base ? request->put.base : 0;
    return put->intake ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory for an image");
}

struct put *put_new(struct vault *vault, const struct put_request *request, uint32_t *base,
                    struct cw_err *err)
{
    struct put *put = calloc(1, sizeof(*put));

    if (put)
        put->rank = registry_enter(vault_registry(vault), request->job, request->rank);
    if (!put || !put->rank) {
        free(put);
        cw_err_set(err, CW_ENOMEM, "no memory for an image");
        return NULL;
    }
    put->vault = vault;
    put->request = *request;
    put->fd = -1;
    if (begin(put, base, err) == CW_OK)
        return put;
    put_free(put);
    return NULL;
}

/* --- going on and ending -------------------------------------------------------------------------
 */

int put_take(struct put *put, const uint8_t *bytes, size_t size, size_t *taken, struct cw_err *err)
{
    if (intake_take(put->intake, bytes, size, taken, err) == CW_OK)
        flush(put, err);
    put->count = 0;
    return err->code;
}

bool put_ended(const struct put *put)
{
    return intake_ended(put->intake);
}

/* The caller has entered the rank. */
static void remove_surplus(struct put *put)
{
    const struct put_request *request = &put->request;
    struct cw_err ignored = {0};
    uint32_t number;
    struct held_image *image;

    while (!ignored.code && (image = registry_take_surplus(put->rank, &number)))
        vault_remove(put->vault, request->job, request->rank, image, number, &ignored);
}

/* Where the index is there perhaps, it has to go first. If that fails, too, the image is one that
 * nobody was told of: it keeps its units until it is removed as others are. */
static void give_up(struct put *put, struct held_image *image, bool doubtful)
{
    const struct put_request *request = &put->request;
    struct cw_err ignored = {0};

    if (doubtful)
        vault_remove(put->vault, request->job, request->rank, image, request->put.number, &ignored);
    else
        registry_unpin(image);
}

int put_commit(struct put *put, struct cw_stored *stored, struct cw_err *err)
{
    const struct put_request *request = &put->request;
    uint64_t new_bytes = extents_units(&put->own) * UNIT_BYTES;
    const struct index_maker *index;
    struct held_image *image;
    bool doubtful;

    release_run(put);
    *stored = (struct cw_stored){.rank = request->rank,
                                 .incarnation = request->incarnation,
                                 .number = request->put.number,
                                 .stored = new_bytes,
                                 .point = request->put.point};
    index = intake_index(put->intake, new_bytes, &stored->bytes);
    if (imgdir_sync(put->fd, err) < 0)
        return err->code;
    image = registry_prepare(put->rank, stored, &put->own, &put->shared);
    if (!image)
        return cw_err_set(err, CW_ENOMEM, "no memory for what is known of images");
    if (imgdir_put_index(vault_dir(put->vault), request->job, request->rank, request->put.number,
                         index->bytes, index->used, &doubtful, err) < 0) {
        give_up(put, image, doubtful);
        return err->code;
    }
    registry_commit(image);
    remove_surplus(put);
    return CW_OK;
}

void put_tell(struct put *put)
{
    registry_tell(put->rank, put->request.put.number);
}

void put_free(struct put *put)
{
    if (!put)
        return;
    release_run(put);
    registry_release(put->rank, &put->own);
    extents_clear(&put->own);
    extents_clear(&put->shared);
    intake_free(put->intake);
    free(put->base_index);
    if (put->base)
        registry_unpin(put->base);
    if (put->fd >= 0)
        close(put->fd);
    registry_leave(put->rank);
    free(put);
}
