/* Writes and reads what a core's logs ask for, in a file without a name, past the page cache: the
 * log would take the place of what the ranks on this machine have there. */
#ifndef RELAY_DISK_H
#define RELAY_DISK_H

#include "relay/engine/engine.h"

struct disk;

enum disk_kind {
    DISK_RING,    /* by io_uring */
    DISK_THREADS, /* by threads that wait for each request */
    DISK_CACHED,  /* the same, and they drop from the page cache what they wrote and read */
};

/* A new file without a name in the directory `dir`; its space is free again when nobody has it open
 * any more. -1 with errno set. */
int disk_make_file(const char *dir);

/* Uses `file`, of disk_make_file(dir), perhaps with what another disk has written to it; it stays
 * the caller's. With -1, one of its own.
 * Takes the first kind that the kernel and the file system allow; says on stderr why it is not
 * DISK_RING. NULL with *err set, and nothing left behind: CW_ESYS, CW_ENOMEM. */
struct disk *disk_open(const char *dir, int file, struct cw_err *err);
/* As disk_open, which chooses the kind; this is for tests. Also CW_ENOTFOUND: the system does not
 * have this kind. Says nothing on stderr. */
struct disk *disk_open_as(const char *dir, int file, enum disk_kind kind, struct cw_err *err);
/* Writes journals, too, to these files, which stay the caller's. Errors: CW_ESYS. */
int disk_keep_journals(struct disk *disk, const int journals[2], struct cw_err *err);
/* Of a process that was perhaps killed the kernel may still be writing to the file, past the page
 * cache, after its end: waits for such writes. Making a file shorter does (inode_dio_wait in the
 * kernel's file systems); it is made one page longer before. Errors: CW_ESYS. */
int disk_settle_file(int file, struct cw_err *err);
/* Waits until every request that was taken has been carried out; no result is given any more. To be
 * called when the engine is closed and the core is not yet freed, for the requests are about its
 * memory. `disk` may be NULL. */
void disk_close(struct disk *disk);

/* To be given to an engine beside the others: readable when there is a result. Belongs to the
 * disk. */
struct relay_listener disk_listener(const struct disk *disk);
/* To be given to the same engine. Any thread, but one at a time. At most STORE_IO_MAX requests
 * about segments are out, and one about a journal; their offset, size and memory are multiples of
 * STORE_ALIGN. `disk` may be NULL: then all zero.
 *
 * Errors of a result: what pwrite and pread say, like ENOSPC; EIO where a read reaches beyond the
 * last byte that was written. */
struct relay_disk disk_ops(struct disk *disk);

/* Whether the file system of `dir` keeps its files in memory. */
bool disk_in_memory(const char *dir);
/* Bytes that the file takes on the disk. */
uint64_t disk_held(const struct disk *disk);
/* Bytes that this user can still write there; 0 where this is not known. */
uint64_t disk_free(const char *dir);

#endif
