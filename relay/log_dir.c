#include "relay/log_dir.h"
#include "common/err.h"
#include "common/fd.h"
#include "common/lockfile.h"
#include "relay/disk.h"
#include "relay/log/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MAX_HERE 16
#define LOCK_WAIT_MS 2000
#define PREWRITTEN (16u << 20) /* bytes of each journal */
#define PIECE (1u << 20)

static void name_of(char name[NAME_MAX_HERE], unsigned journal)
{
    snprintf(name, NAME_MAX_HERE, LOG_DIR_JOURNAL, journal);
}

static int failure(const struct log_dir *dir, const char *doing, const char *name,
                   struct cw_err *err)
{
    return cw_err_set(err, CW_ESYS,
                      "--log-dir %s: %s %s: %s; give a directory that this user alone writes to",
                      dir->path, doing, name, strerror(errno));
}

/* --- files ---------------------------------------------------------------------------------------
 */

/* Returns the descriptor, or -1 and has closed it. */
static int check_file(const struct log_dir *dir, int fd, const char *name, struct cw_err *err)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        failure(dir, "opening", name, err);
        return fd < 0 ? fd : (close(fd), -1);
    }
    if (S_ISREG(st.st_mode) && st.st_uid == geteuid())
        return fd;
    cw_err_set(err, CW_EINVAL,
               "--log-dir %s: %s is not a file of this user's; give another directory", dir->path,
               name);
    close(fd);
    return -1;
}

static int open_file(const struct log_dir *dir, const char *name, struct cw_err *err)
{
    return check_file(dir, openat(dir->dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600),
                      name, err);
}

/* The files of a relay that was killed may stay open for a moment, where it used io_uring. */
static int take_lock(struct log_dir *dir, struct cw_err *err)
{
    int fd = cw_lockfile_take(dir->dir, LOG_DIR_LOCK, true, LOCK_WAIT_MS);

    if (fd >= 0 || errno != EWOULDBLOCK) {
        dir->lock = check_file(dir, fd, LOG_DIR_LOCK, err);
        return err->code;
    }
    return cw_err_set(err, CW_EBUSY,
                      "--log-dir %s: another relay uses it; give each relay a directory of its own",
                      dir->path);
}

/* What is written in place of other bytes is on disk sooner than what makes a file longer: 8000
 * against 5000 pages a second on ext4 (Linux 6.18, virtual machine). An error costs time later,
 * nothing else. */
static void prewrite(int file)
{
    static const uint8_t zeros[PIECE];
    struct stat st;
    off_t at = fstat(file, &st) == 0 ? st.st_size : PREWRITTEN;

    while (at < PREWRITTEN && pwrite(file, zeros, PIECE - (size_t)at % PIECE, at) > 0)
        at += PIECE - at % PIECE;
    fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
}

/* A directory that was there stays when its files go: perhaps this user could not make it again.
 * That we made it is told by the lock, which is not empty then. */
static int note_made(const struct log_dir *dir, struct cw_err *err)
{
    static const char made[] = "made by causeway relay\n";

    if (pwrite(dir->lock, made, sizeof(made) - 1, 0) != (ssize_t)sizeof(made) - 1)
        return failure(dir, "writing", LOG_DIR_LOCK, err);
    return CW_OK;
}

static bool was_made(const struct log_dir *dir)
{
    struct stat st;

    return fstat(dir->lock, &st) == 0 && st.st_size > 0;
}

static int open_files(struct log_dir *dir, bool made, struct cw_err *err)
{
    char name[NAME_MAX_HERE];

    if (take_lock(dir, err) < 0 || (made && note_made(dir, err) < 0))
        return err->code;
    dir->segments = open_file(dir, LOG_DIR_SEGMENTS, err);
    for (unsigned i = 0; i < 2 && !err->code; i++) {
        name_of(name, i);
        dir->journals[i] = open_file(dir, name, err);
        if (dir->journals[i] >= 0 && disk_settle_file(dir->journals[i], err) == CW_OK)
            prewrite(dir->journals[i]);
    }
    return err->code;
}

/* Before anything is made there. */
static int check_dir(const struct log_dir *dir, struct cw_err *err)
{
    struct stat st;

    if (fstat(dir->dir, &st) < 0)
        return failure(dir, "looking at", "it", err);
    if (disk_in_memory(dir->path))
        return cw_err_set(err, CW_EINVAL,
                          "--log-dir %s: its files are kept in memory, which does not survive the "
                          "loss of power; choose a directory on a disk",
                          dir->path);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return cw_err_set(err, CW_EINVAL,
                          "--log-dir %s: other users may write there; give a directory of this "
                          "relay alone, or take that away (chmod go-w)",
                          dir->path);
    return CW_OK;
}

/* All names are on disk, also those that a relay which was killed has made. */
static int sync_names(const struct log_dir *dir, struct cw_err *err)
{
    if (fsync(dir->dir) < 0)
        return failure(dir, "syncing", "it", err);
    errno = cw_sync_name(dir->path);
    return errno ? failure(dir, "syncing", "the directory above it", err) : CW_OK;
}

int log_dir_open(struct log_dir *dir, const char *path, struct cw_err *err)
{
    bool made = mkdir(path, 0700) == 0;

    *dir = LOG_DIR_CLOSED;
    dir->path = path;
    if (!made && errno != EEXIST)
        return failure(dir, "making", "it", err);
    dir->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->dir < 0)
        return failure(dir, "opening", "it", err);
    if (check_dir(dir, err) < 0) {
        log_dir_close(dir, true);
        if (made)
            rmdir(path);
        return err->code;
    }
    if (open_files(dir, made, err) < 0)
        log_dir_close(dir, true);
    else
        sync_names(dir, err);
    return err->code;
}

/* The lock goes last. */
static void remove_files(const struct log_dir *dir)
{
    char name[NAME_MAX_HERE];

    for (unsigned i = 0; i < 2; i++) {
        name_of(name, i);
        unlinkat(dir->dir, name, 0);
    }
    unlinkat(dir->dir, LOG_DIR_SEGMENTS, 0);
    unlinkat(dir->dir, LOG_DIR_LOCK, 0);
    if (was_made(dir))
        rmdir(dir->path);
}

void log_dir_close(struct log_dir *dir, bool keep)
{
    if (dir->dir >= 0 && !keep)
        remove_files(dir);
    cw_close(&dir->journals[0]);
    cw_close(&dir->journals[1]);
    cw_close(&dir->segments);
    cw_close(&dir->lock);
    cw_close(&dir->dir);
}

/* --- what was left -------------------------------------------------------------------------------
 */

/* What is in a file. */
struct content {
    uint8_t *bytes;
    size_t size;
};

int log_dir_read_at(int file, uint8_t *to, uint64_t size, uint64_t offset)
{
    while (size > 0) {
        ssize_t n = pread(file, to, size, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENODATA;
        to += n;
        size -= (uint64_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int read_journal(const struct log_dir *dir, unsigned journal, struct content *content,
                        struct cw_err *err)
{
    int file = dir->journals[journal];
    struct stat st;

    if (fstat(file, &st) < 0)
        return failure(dir, "reading", "the journal", err);
    *content =
        (struct content){.bytes = malloc((size_t)st.st_size + 1), .size = (size_t)st.st_size};
    if (!content->bytes)
        return cw_err_set(err, CW_ENOMEM, "--log-dir %s: no memory to read the journal", dir->path);
    errno = log_dir_read_at(file, content->bytes, content->size, 0);
    return errno ? failure(dir, "reading", "the journal", err) : CW_OK;
}

/* What one of the two files holds, where that can be used. */
static int look(const struct log_dir *dir, uint64_t relay, const struct content *content,
                struct journal_summary *found, struct cw_err *err)
{
    journal_look(content->bytes, content->size, found);
    if (found->version != 0 && found->version != JOURNAL_VERSION)
        return cw_err_set(err, CW_EINVAL,
                          "--log-dir %s: its journal is of version %u, and this program reads %u; "
                          "use the program that wrote it, or give another directory",
                          dir->path, found->version, JOURNAL_VERSION);
    if (found->commits > 0 && found->relay != relay)
        return cw_err_set(err, CW_EINVAL,
                          "--log-dir %s: it is the log of a relay with another key; give the key "
                          "that it had (--key-file), or another directory",
                          dir->path);
    return CW_OK;
}

static int restore_from(const struct log_dir *dir, const struct content contents[2], uint64_t relay,
                        struct ledger_memory *memory, const struct relay_region *region,
                        struct relay_journal *journal, struct cw_err *err)
{
    struct journal_summary found[2];
    struct cw_err why = {0};
    unsigned newest;

    for (unsigned i = 0; i < 2; i++)
        if (look(dir, relay, &contents[i], &found[i], err) < 0)
            return err->code;
    newest = journal_newest(found);
    *journal = (struct relay_journal){
        .relay = relay, .number = journal_next_number(found), .file = !newest};
    if (found[newest].commits == 0 || memory->header.magic == LEDGER_MAGIC)
        return CW_OK;
    if (restore(memory, region, contents[newest].bytes, &found[newest], &why) < 0)
        return cw_err_set(err, why.code,
                          "--log-dir %s: journal.%u: %s; 'causeway log verify' says more; to begin "
                          "without it, give another directory",
                          dir->path, newest, why.text);
    fprintf(stderr, "causeway relay: --log-dir %s: taking up what a relay has left there\n",
            dir->path);
    return CW_OK;
}

int log_dir_restore(const struct log_dir *dir, uint64_t relay, struct ledger_memory *memory,
                    const struct relay_region *region, struct relay_journal *journal,
                    struct cw_err *err)
{
    struct content contents[2] = {0};

    for (unsigned i = 0; i < 2 && !err->code; i++)
        read_journal(dir, i, &contents[i], err);
    if (!err->code)
        restore_from(dir, contents, relay, memory, region, journal, err);
    free(contents[0].bytes);
    free(contents[1].bytes);
    return err->code;
}
