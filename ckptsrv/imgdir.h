/* The directory of a checkpoint server, and its files: DIR/lock, and for each job DIR/JOB/ with
 * RANK.blocks and RANK.NUMBER.index. docs/checkpoint-store.md. All functions from any thread. */
#ifndef CKPTSRV_IMGDIR_H
#define CKPTSRV_IMGDIR_H

#include "common/err.h"
#include "common/frame.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#define IMGDIR_JOB_TEXT (2 * CW_ID_SIZE + 1) /* hexadecimal digits, terminated */

struct imgdir {
    const char *path;
    int dir; /* -1: it is not open */
    int lock;
    bool made;
};

#define IMGDIR_CLOSED ((struct imgdir){.dir = -1, .lock = -1})

/* Before each operation that changes a file; a test's. Its errno is that of the operation then,
 * which is not done. */
extern int (*imgdir_fault)(const char *what);

/* Makes the directory where there is none, and locks it: one server at a time. `path` stays.
 * Errors: CW_ESYS, CW_EBUSY: it is in use, and by which process. */
int imgdir_open(struct imgdir *files, const char *path, struct cw_err *err);
/* Without a lock, and without making anything: to read. */
int imgdir_open_to_read(struct imgdir *files, const char *path, struct cw_err *err);
/* `remove`: the lock goes too, and the directory where imgdir_open made it and it is empty. */
void imgdir_close(struct imgdir *files, bool remove);

void imgdir_job_text(char text[IMGDIR_JOB_TEXT], const uint8_t job[CW_ID_SIZE]);
bool imgdir_job_parse(const char *text, uint8_t job[CW_ID_SIZE]);

/* Returns a descriptor, or a negative code. */
int imgdir_open_blocks(const struct imgdir *files, const uint8_t *job, uint32_t rank, bool write,
                       struct cw_err *err);
/* The file `fd` is a file of blocks. Errors of all: CW_ESYS; CW_ELIMIT: the disk is full. */
int imgdir_write(int fd, struct iovec *at, int count, uint64_t offset, struct cw_err *err);
int imgdir_read(int fd, struct iovec *at, int count, uint64_t offset, struct cw_err *err);
int imgdir_sync(int fd, struct cw_err *err);

/* Bytes of a file of blocks; 0 where there is none. */
uint64_t imgdir_blocks_size(const struct imgdir *files, const uint8_t *job, uint32_t rank);
/* NULL, or what is wrong with a file of blocks that is to have `size` bytes at least. */
const char *imgdir_check_blocks(const struct imgdir *files, const uint8_t *job, uint32_t rank,
                                uint64_t size);

/* Makes the directory of a job. */
int imgdir_make_job(const struct imgdir *files, const uint8_t *job, struct cw_err *err);
/* Writes an index, so that all of it is on disk, or nothing. After an error, *doubtful: perhaps it
 * is there. */
int imgdir_put_index(const struct imgdir *files, const uint8_t *job, uint32_t rank, uint32_t number,
                     const uint8_t *bytes, size_t size, bool *doubtful, struct cw_err *err);
/* The caller frees *bytes. Errors: also CW_ENOTFOUND, CW_ENOMEM. */
int imgdir_get_index(const struct imgdir *files, const uint8_t *job, uint32_t rank, uint32_t number,
                     uint8_t **bytes, size_t *size, struct cw_err *err);
/* On disk, too. */
int imgdir_remove_index(const struct imgdir *files, const uint8_t *job, uint32_t rank,
                        uint32_t number, struct cw_err *err);
void imgdir_shorten(const struct imgdir *files, const uint8_t *job, uint32_t rank, uint64_t size);
void imgdir_remove_blocks(const struct imgdir *files, const uint8_t *job, uint32_t rank);
/* Fails without a word where it is not empty. */
void imgdir_remove_job(const struct imgdir *files, const uint8_t *job);

enum imgdir_kind { IMGDIR_INDEX, IMGDIR_BLOCKS, IMGDIR_LEFT /* of a write that did not end */ };

/* Calls for each file of each job, and after them once for the job itself, with a NULL name; an
 * error of the call ends it. Files with other names are left out. */
typedef int imgdir_visit(void *ctx, const uint8_t *job, enum imgdir_kind kind, uint32_t rank,
                         uint32_t number, const char *name, struct cw_err *err);
int imgdir_each(const struct imgdir *files, imgdir_visit *visit, void *ctx, struct cw_err *err);
void imgdir_remove_left(const struct imgdir *files, const uint8_t *job, const char *name);

#endif
