#include "ckptsrv/vault.h"
#include "ckptsrv/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vault {
    struct imgdir files;
    struct registry *registry;
};

const struct imgdir *vault_dir(const struct vault *vault)
{
    return &vault->files;
}

struct registry *vault_registry(const struct vault *vault)
{
    return vault->registry;
}

/* --- dropping ------------------------------------------------------------------------------------
 */

/* An index is gone before its blocks are written over: else it could be there again after the loss
 * of power, with the blocks of another image. */
int vault_remove(struct vault *vault, const uint8_t job[CW_ID_SIZE], uint32_t rank,
                 struct held_image *image, uint32_t number, struct cw_err *err)
{
    if (imgdir_remove_index(&vault->files, job, rank, number, err) < 0)
        registry_put_back(image);
    else
        registry_unpin(image);
    return err->code;
}

static int drop_of_rank(struct vault *vault, const uint8_t *job, uint32_t number, uint32_t last,
                        struct cw_err *err)
{
    struct held_rank *rank = registry_enter(vault->registry, job, number);
    struct held_image *image;
    uint32_t its_number;

    if (!rank)
        return cw_err_set(err, CW_ENOMEM, "no memory to remove images of rank %u", number);
    while (!err->code && (image = registry_take_out(rank, last, &its_number)))
        vault_remove(vault, job, number, image, its_number, err);
    registry_leave(rank);
    return err->code;
}

int vault_drop(struct vault *vault, const uint8_t job[CW_ID_SIZE], const struct cw_image_ref *ref,
               struct cw_err *err)
{
    uint32_t rank = 0;

    if (!registry_has_job(vault->registry, job))
        return CW_OK;
    if (ref->rank != CW_EVERY_RANK) {
        if (registry_next_rank(vault->registry, job, ref->rank, &rank) && rank == ref->rank)
            drop_of_rank(vault, job, ref->rank, ref->number, err);
        return err->code;
    }
    while (!err->code && registry_next_rank(vault->registry, job, rank, &rank))
        drop_of_rank(vault, job, rank++, ref->number, err);
    return err->code;
}

/* --- opening -------------------------------------------------------------------------------------
 */

static bool add_extents(struct extents *extents, const uint8_t *bytes, size_t size)
{
    struct index_reader reader = index_reader(bytes, size);
    struct index_entry entry;

    while (index_next(&reader, &entry))
        if (index_has_place(entry.record.type) &&
            !extents_add(extents, (struct extent){entry.place / UNIT_BYTES,
                                                  (entry.bytes + UNIT_BYTES - 1) / UNIT_BYTES}))
            return false;
    return true;
}

static int enter_found(struct vault *vault, const uint8_t *job, const struct index_summary *summary,
                       const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct extents extents = {0};

    if (add_extents(&extents, bytes, size))
        registry_found(vault->registry, job, &summary->image, &extents, err);
    else
        cw_err_set(err, CW_ENOMEM, "no memory for what is known of images");
    extents_clear(&extents);
    return err->code;
}

static void say_left_out(const struct vault *vault, const uint8_t *job, const char *name,
                         const char *how, const char *why)
{
    char text[IMGDIR_JOB_TEXT];

    imgdir_job_text(text, job);
    fprintf(stderr, "causeway ckptsrv: --dir %s: %s/%s is left out%s: %s\n", vault->files.path,
            text, name, how, why);
}

/* Which blocks it needs cannot be known: all that are there are left alone. Other images, and other
 * jobs, go on. */
static int leave_alone(struct vault *vault, const uint8_t *job, uint32_t rank, uint32_t number,
                       const char *name, const char *why, struct cw_err *err)
{
    uint64_t bytes = imgdir_blocks_size(&vault->files, job, rank);

    say_left_out(vault, job, name, ", and kept with its blocks", why);
    return registry_found_unknown(vault->registry, job, rank, number,
                                  (bytes + UNIT_BYTES - 1) / UNIT_BYTES, err);
}

static int find_index(struct vault *vault, const uint8_t *job, uint32_t rank, uint32_t number,
                      const char *name, struct cw_err *err)
{
    struct index_summary summary;
    struct cw_err unread = {0};
    const char *wrong;
    uint8_t *bytes;
    size_t size;

    if (imgdir_get_index(&vault->files, job, rank, number, &bytes, &size, &unread) < 0)
        return leave_alone(vault, job, rank, number, name, unread.text, err);
    wrong = index_check_of(bytes, size, job, rank, number, &summary);
    if (!wrong)
        wrong = imgdir_check_blocks(&vault->files, job, rank, summary.end);
    if (!wrong)
        enter_found(vault, job, &summary, bytes, size, err);
    else if (index_is_foreign(bytes, size))
        leave_alone(vault, job, rank, number, name,
                    "it is of another version of Causeway; use the program that wrote it, or "
                    "remove it (causeway ckpt rm)",
                    err);
    else
        say_left_out(vault, job, name, "", wrong);
    free(bytes);
    return err->code;
}

static int on_index(void *ctx, const uint8_t *job, enum imgdir_kind kind, uint32_t rank,
                    uint32_t number, const char *name, struct cw_err *err)
{
    struct vault *vault = ctx;

    if (kind == IMGDIR_INDEX)
        return find_index(vault, job, rank, number, name, err);
    if (kind == IMGDIR_LEFT && name)
        imgdir_remove_left(&vault->files, job, name);
    return CW_OK;
}

/* After all indexes: what no image needs. */
static int on_blocks(void *ctx, const uint8_t *job, enum imgdir_kind kind, uint32_t number,
                     uint32_t unused, const char *name, struct cw_err *err)
{
    struct vault *vault = ctx;
    struct held_rank *rank;

    (void)unused;
    if (!name)
        imgdir_remove_job(&vault->files, job);
    if (kind != IMGDIR_BLOCKS)
        return CW_OK;
    rank = registry_enter(vault->registry, job, number);
    if (!rank)
        return cw_err_set(err, CW_ENOMEM, "no memory for what is known of images");
    registry_fit(rank);
    registry_leave(rank);
    return CW_OK;
}

struct vault *vault_open_in(const struct imgdir *files, uint64_t max, struct cw_err *err)
{
    struct vault *vault = calloc(1, sizeof(*vault));
    struct imgdir unused = *files;

    if (!vault) {
        imgdir_close(&unused, false);
        cw_err_set(err, CW_ENOMEM, "no memory for a checkpoint server");
        return NULL;
    }
    vault->files = *files;
    vault->registry = registry_new(&vault->files, max);
    if (!vault->registry)
        cw_err_set(err, CW_ENOMEM, "no memory for a checkpoint server");
    else if (imgdir_each(&vault->files, on_index, vault, err) == CW_OK)
        imgdir_each(&vault->files, on_blocks, vault, err);
    if (!err->code)
        return vault;
    vault_close(vault, false, NULL);
    return NULL;
}

struct vault *vault_open(const char *dir, uint64_t max, struct cw_err *err)
{
    struct imgdir files;

    return imgdir_open(&files, dir, err) < 0 ? NULL : vault_open_in(&files, max, err);
}

/* --- closing -------------------------------------------------------------------------------------
 */

struct removal {
    const struct imgdir *files;
    const uint8_t *job; /* NULL: all jobs */
};

static int remove_one(void *ctx, const uint8_t *job, enum imgdir_kind kind, uint32_t rank,
                      uint32_t number, const char *name, struct cw_err *err)
{
    const struct removal *removal = ctx;

    (void)kind;
    (void)rank;
    (void)number;
    (void)err;
    if (removal->job && memcmp(job, removal->job, CW_ID_SIZE) != 0)
        return CW_OK;
    if (name)
        imgdir_remove_left(removal->files, job, name);
    else
        imgdir_remove_job(removal->files, job);
    return CW_OK;
}

void vault_close(struct vault *vault, bool remove, const uint8_t *job)
{
    struct removal removal = {.job = job};
    struct cw_err err = {0};

    if (!vault)
        return;
    removal.files = &vault->files;
    if (remove)
        imgdir_each(&vault->files, remove_one, &removal, &err);
    registry_free(vault->registry);
    imgdir_close(&vault->files, remove);
    free(vault);
}
