#include "ckptsrv/fetch.h"
#include "ckptsrv/index.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECES_MAX 512 /* of one read; two for a block */

struct fetch {
    struct held_rank *rank;
    struct held_image *image;
    uint8_t *index;
    struct index_reader reader;
    struct index_entry entry; /* the next record */
    bool ended;
    int fd;
    struct iovec pieces[PIECES_MAX]; /* to be read from one place */
    int count;
    uint64_t offset;
    uint64_t end; /* where the next piece may begin */
    uint8_t padding[UNIT_BYTES];
};

static void next(struct fetch *fetch)
{
    fetch->ended = !index_next(&fetch->reader, &fetch->entry);
}

static int no_such_image(const struct cw_image_ref *ref, struct cw_err *err)
{
    return cw_err_set(err, CW_ENOTFOUND, "the checkpoint server does not hold image %u of rank %u",
                      ref->number, ref->rank);
}

static int open_image(struct fetch *fetch, const struct imgdir *files, const uint8_t *job,
                      const struct cw_image_ref *ref, uint64_t *bytes, struct cw_err *err)
{
    struct index_summary summary;
    const char *wrong;
    size_t size;

    fetch->image = registry_pin(fetch->rank, ref->number);
    if (!fetch->image)
        return no_such_image(ref, err);
    if (imgdir_get_index(files, job, ref->rank, ref->number, &fetch->index, &size, err) < 0)
        return err->code;
    wrong = index_check_of(fetch->index, size, job, ref->rank, ref->number, &summary);
    if (!wrong)
        wrong = imgdir_check_blocks(files, job, ref->rank, summary.end);
    if (wrong)
        return cw_err_set(err, CW_ESYS, "image %u of rank %u is damaged on the server's disk: %s",
                          ref->number, ref->rank, wrong);
    if (summary.end > 0)
        fetch->fd = imgdir_open_blocks(files, job, ref->rank, false, err);
    if (err->code)
        return err->code;
    *bytes = summary.stream;
    fetch->reader = index_reader(fetch->index, size);
    next(fetch);
    return CW_OK;
}

struct fetch *fetch_new(struct vault *vault, const uint8_t job[CW_ID_SIZE],
                        const struct cw_image_ref *ref, uint64_t *bytes, struct cw_err *err)
{
    struct fetch *fetch;

    if (ref->rank >= CW_RANKS_MAX) {
        no_such_image(ref, err);
        return NULL;
    }
    fetch = calloc(1, sizeof(*fetch));
    if (fetch) {
        fetch->fd = -1;
        fetch->rank = registry_enter(vault_registry(vault), job, ref->rank);
    }
    if (!fetch || !fetch->rank)
        cw_err_set(err, CW_ENOMEM, "no memory to read an image");
    else if (open_image(fetch, vault_dir(vault), job, ref, bytes, err) == CW_OK)
        return fetch;
    fetch_free(fetch);
    return NULL;
}

static int read_pieces(struct fetch *fetch, struct cw_err *err)
{
    int count = fetch->count;

    fetch->count = 0;
    return count ? imgdir_read(fetch->fd, fetch->pieces, count, fetch->offset, err) : CW_OK;
}

/* Neighbours on disk are read at once. */
static int read_block(struct fetch *fetch, uint8_t *to, struct cw_err *err)
{
    const struct index_entry *entry = &fetch->entry;
    size_t pad = (UNIT_BYTES - entry->bytes % UNIT_BYTES) % UNIT_BYTES;

    if ((fetch->count > 0 && entry->place != fetch->end) || fetch->count + 2 > PIECES_MAX)
        if (read_pieces(fetch, err) < 0)
            return err->code;
    if (fetch->count == 0)
        fetch->offset = entry->place;
    fetch->pieces[fetch->count++] = (struct iovec){to, entry->bytes};
    if (pad > 0)
        fetch->pieces[fetch->count++] = (struct iovec){fetch->padding, pad};
    fetch->end = entry->place + entry->bytes + pad;
    return CW_OK;
}

int fetch_read(struct fetch *fetch, uint8_t *to, size_t size, size_t *got, struct cw_err *err)
{
    const struct index_entry *entry = &fetch->entry;

    *got = 0;
    while (!fetch->ended && size - *got >= sizeof(entry->record) + entry->record.length) {
        size_t body = entry->record.length - entry->bytes;
        uint8_t *at = to + *got;

        memcpy(at, &entry->record, sizeof(entry->record));
        memcpy(at + sizeof(entry->record), entry->body, body);
        if (entry->bytes > 0 && read_block(fetch, at + sizeof(entry->record) + body, err) < 0)
            return err->code;
        *got += sizeof(entry->record) + entry->record.length;
        next(fetch);
    }
    return read_pieces(fetch, err);
}

void fetch_free(struct fetch *fetch)
{
    if (!fetch)
        return;
    if (fetch->fd >= 0)
        close(fetch->fd);
    if (fetch->image)
        registry_unpin(fetch->image);
    if (fetch->rank)
        registry_leave(fetch->rank);
    free(fetch->index);
    free(fetch);
}
