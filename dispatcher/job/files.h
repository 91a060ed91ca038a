/* Which ranks have opened which files, and whose restart is no longer safe because of it. Files are
 * no part of what a rank repeats: a re-execution finds them as they are, and writes again what it
 * wrote. So
 *   - a rank that writes to a file which another rank has opened cannot be restarted: it would
 *     write again what the other has seen, or changed;
 *   - a rank that opened a file before another opens it to write cannot be restarted either: it
 *     would read what is there now.
 *   - but a rank that made a file which another one knows by another name has renamed it since: a
 *     re-execution makes another file, and renames that one too.
 * Who opens a file last, only to read it, can: it was complete, or the program has a race of its
 * own.
 *
 * Pure: no I/O, no clock, no thread. */
#ifndef DISPATCHER_FILES_H
#define DISPATCHER_FILES_H

#include "common/setup.h"

#define FILES_MAX 65536             /* that are kept ... */
#define FILES_BYTES_MAX (64u << 20) /* ... and the memory they take */
#define FILES_NO_RANK UINT32_MAX

struct files;

struct files_unsafe {
    uint32_t rank;  /* can no longer be restarted, ... */
    uint32_t other; /* because of this one; FILES_NO_RANK: too many files are known */
    bool writes;    /* it is `rank` that writes, else it is `other` */
};
typedef void files_unsafe_fn(void *ctx, const struct files_unsafe *unsafe);

/* NULL: no memory. */
struct files *files_new(uint32_t ranks);
void files_free(struct files *files);

/* A rank opens a file. `tell` is called for each rank whose restart is not safe because of this,
 * also when that was known; for the one that opens first. */
void files_open(struct files *files, uint32_t rank, const struct cw_opening *opening,
                files_unsafe_fn *tell, void *ctx);

#endif
