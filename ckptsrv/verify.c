#include "ckptsrv/verify.h"
#include "ckptsrv/intake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int verify_index(const struct imgdir *dir, const uint8_t job[CW_ID_SIZE], uint32_t rank,
                 uint32_t number, struct index_summary *summary, uint8_t **bytes, size_t *size,
                 struct cw_err *err)
{
    const char *wrong;

    if (imgdir_get_index(dir, job, rank, number, bytes, size, err) < 0)
        return err->code;
    wrong = index_check_of(*bytes, *size, job, rank, number, summary);
    if (!wrong)
        wrong = imgdir_check_blocks(dir, job, rank, summary->end);
    if (!wrong)
        return CW_OK;
    free(*bytes);
    *bytes = NULL;
    return cw_err_set(err, CW_EPROTO, "its index is of no use: %s", wrong);
}

static int verify_block(int fd, const struct index_entry *entry, struct cw_err *err)
{
    uint8_t stored[CW_IMAGE_BLOCK];
    uint8_t plain[CW_IMAGE_BLOCK];
    struct iovec to = {stored, entry->bytes};
    enum intake_verdict verdict;

    if (imgdir_read(fd, &to, 1, entry->place, err) < 0)
        return err->code;
    verdict = intake_verify(entry->record.type, &entry->block, stored, entry->bytes, plain);
    if (verdict == INTAKE_WHOLE)
        return CW_OK;
    return cw_err_set(err, CW_EPROTO,
                      verdict == INTAKE_DIFFERS
                          ? "the checksum of the block of address %#llx differs"
                          : "the block of address %#llx cannot be decompressed",
                      (unsigned long long)entry->block.address);
}

int verify_image(const struct imgdir *dir, const uint8_t job[CW_ID_SIZE], uint32_t rank,
                 uint32_t number, struct cw_err *err)
{
    struct index_summary summary;
    struct index_reader reader;
    struct index_entry entry;
    uint8_t *bytes;
    size_t size;
    int fd = -1;

    if (verify_index(dir, job, rank, number, &summary, &bytes, &size, err) < 0)
        return err->code;
    if (summary.end > 0)
        fd = imgdir_open_blocks(dir, job, rank, false, err);
    reader = index_reader(bytes, size);
    while (!err->code && index_next(&reader, &entry))
        if (index_has_place(entry.record.type))
            verify_block(fd, &entry, err);
    if (fd >= 0)
        close(fd);
    free(bytes);
    return err->code;
}
