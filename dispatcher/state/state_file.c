#include "dispatcher/state/state_file.h"
#include "common/fd.h"
#include "common/lockfile.h"
#include "common/tree.h"
#include "dispatcher/state/state_copy.h"
#include "relay/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WAIT_STEP_MS 20
#define RESERVE_BYTES (256 << 10) /* of the journal, when a job begins or is resumed */

struct state_file {
    char path[STATE_DIR_MAX];
    enum state_file_kind kind;
    int dir;
    int lock;
    int file;
    bool taken; /* it was there before us */
    bool dirty;
    bool failed;
    uint64_t size;
    struct counts counts;
    uint8_t *content; /* what was taken up; owned */
    struct job_state_bytes in;
    size_t offset;
    uint32_t ranks_read;
    void (*on_failure)(void *ctx, const char *why);
    void *ctx;
    struct state_link *copies[STATE_COPIES_MAX]; /* borrowed; NULL: none */
    void (*on_lost)(void *ctx, struct state_link *link, const struct cw_err *why);
    void *on_lost_ctx;
    uint8_t record[JOB_STATE_RECORD + JOB_STATE_BODY_MAX];
};

static const char *advice(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "; make room there, and try again";
    case EACCES:
    case EPERM:
    case EROFS:
        return "; give a directory that this user can write to";
    default:
        return "";
    }
}

static int failure(const struct state_file *s, const char *doing, struct cw_err *err)
{
    int error = errno;

    return cw_err_set(err, CW_ESYS, "job directory %s: %s: %s%s", s->path, doing, strerror(error),
                      advice(error));
}

/* --- its directory -------------------------------------------------------------------------------
 */

static int check_dir(const struct state_file *s, struct cw_err *err)
{
    struct stat st;

    if (fstat(s->dir, &st) < 0)
        return failure(s, "looking at it", err);
    if (st.st_uid != geteuid())
        return cw_err_set(
            err, CW_EINVAL,
            "job directory %s: it belongs to another user; run this as that user, or give "
            "another directory",
            s->path);
    if (st.st_mode & 077)
        return cw_err_set(err, CW_EINVAL,
                          "job directory %s: other users may look into it, and keys will be "
                          "there; take that away (chmod 700)",
                          s->path);
    if (s->kind == STATE_FILE_ON_DISK && disk_in_memory(s->path))
        return cw_err_set(err, CW_EINVAL,
                          "job directory %s: its files are kept in memory, which does not survive "
                          "the loss of power; choose a directory on a disk",
                          s->path);
    return CW_OK;
}

/* Without O_CLOEXEC: whoever of the job still lives holds the lock. Where its nodes go on without
 * us, nobody else does. */
static int open_lock(struct state_file *s, struct cw_err *err)
{
    int inherits = s->kind == STATE_FILE_ON_DISK ? 0 : O_CLOEXEC;

    s->lock = openat(s->dir, STATE_LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | inherits, 0600);
    return s->lock < 0 ? failure(s, "opening its lock", err) : CW_OK;
}

static long holder(const struct state_file *s)
{
    char text[32] = "";

    if (pread(s->lock, text, sizeof(text) - 1, 0) < 0)
        return 0;
    return strtol(text, NULL, 10);
}

static bool lives(long pid)
{
    return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* The dispatcher may be gone, and processes of its job just about to end. */
static int take_lock(struct state_file *s, struct cw_err *err)
{
    struct timespec pause = {.tv_nsec = WAIT_STEP_MS * 1000000};
    char pid[32];
    int size;

    for (int ms = 0; flock(s->lock, LOCK_EX | LOCK_NB) < 0; ms += WAIT_STEP_MS) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return failure(s, "locking it", err);
        if (lives(holder(s)))
            return cw_err_set(
                err, CW_EBUSY,
                "job directory %s: its job runs (causeway run, pid %ld); it can be resumed "
                "when that has ended",
                s->path, holder(s));
        if (ms >= STATE_WAIT_MS)
            return cw_err_set(err, CW_EBUSY,
                              "job directory %s: causeway run (pid %ld) has ended, but after %d s "
                              "processes of its job still live; end them, and try again",
                              s->path, holder(s), STATE_WAIT_MS / 1000);
        nanosleep(&pause, NULL);
    }
    size = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(s->lock, 0) < 0 || pwrite(s->lock, pid, (size_t)size, 0) != size)
        return failure(s, "writing its lock", err);
    return CW_OK;
}

/* Its name is on disk before anything else is. */
static int make_dir(const struct state_file *s, struct cw_err *err)
{
    if (mkdir(s->path, 0700) < 0)
        return errno == EEXIST ? CW_OK : failure(s, "making it", err);
    if (s->kind == STATE_FILE_HELD)
        return CW_OK;
    errno = cw_sync_name(s->path);
    return errno ? failure(s, "syncing the directory above it", err) : CW_OK;
}

static struct state_file *open_dir(const char *dir, enum state_file_kind kind, bool make,
                                   struct cw_err *err)
{
    struct state_file *s = calloc(1, sizeof(*s));

    if (!s) {
        cw_err_set(err, CW_ENOMEM, "no memory for the state of the job");
        return NULL;
    }
    s->kind = kind;
    s->dir = s->lock = s->file = -1;
    snprintf(s->path, sizeof(s->path), "%s", dir);
    if (make && make_dir(s, err) < 0)
        return s;
    s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0)
        failure(s, "opening it", err);
    else
        check_dir(s, err);
    return s;
}

/* What the job made there, and nothing else. Without the journal there is no job: it goes first. */
static void remove_all(const struct state_file *s)
{
    static const char *const names[] = {STATE_NAME, STATE_RELAY_NAME, STATE_IMAGES_NAME,
                                        COUNTS_NAME, STATE_LOCK_NAME};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", s->path, names[i]);
        cw_tree_remove(path);
    }
    rmdir(s->path);
}

/* A job begins in a directory where nothing else is. */
static int check_empty(const struct state_file *s, struct cw_err *err)
{
    DIR *d = opendir(s->path);
    const struct dirent *entry;
    bool empty = true;

    if (!d)
        return failure(s, "reading it", err);
    while ((entry = readdir(d)))
        empty &= entry->d_name[0] == '.' || strcmp(entry->d_name, STATE_LOCK_NAME) == 0;
    closedir(d);
    return empty ? CW_OK
                 : cw_err_set(err, CW_EINVAL,
                              "job directory %s: it is not empty; give one that is, or a name "
                              "where there is none",
                              s->path);
}

void state_file_close(struct state_file *s, bool remove)
{
    if (!s)
        return;
    counts_close(&s->counts);
    if (remove && s->dir >= 0 && s->file >= 0)
        remove_all(s);
    cw_close(&s->file);
    cw_close(&s->lock);
    cw_close(&s->dir);
    explicit_bzero(s->record, sizeof(s->record));
    free(s->content);
    free(s);
}

static struct state_file *give_up(struct state_file *s)
{
    state_file_close(s, false);
    return NULL;
}

/* A relay that was killed may still be about to write its segments, where it used io_uring: their
 * lock is gone when it no longer is. */
int state_file_open_log(struct state_file *s, int *memory_fd, int *disk_fd, struct cw_err *err)
{
    *memory_fd = openat(s->dir, STATE_RELAY_NAME "/memory",
                        O_RDWR | O_CLOEXEC | O_NOFOLLOW | (s->taken ? 0 : O_CREAT | O_EXCL), 0600);
    *disk_fd = *memory_fd < 0 ? -1
                              : cw_lockfile_take(s->dir, STATE_RELAY_NAME "/segments", !s->taken,
                                                 STATE_WAIT_MS);
    if (*disk_fd >= 0)
        return CW_OK;
    failure(s, "opening the log of its relay", err);
    cw_close(memory_fd);
    cw_close(disk_fd);
    return err->code;
}

/* --- counts --------------------------------------------------------------------------------------
 */

int state_file_count_ranks(struct state_file *s, uint32_t ranks, bool same_boot, struct cw_err *err)
{
    if (!s)
        return CW_OK;
    if (!s->taken)
        return counts_make(&s->counts, s->dir, ranks) < 0 || fsync(s->dir) < 0
                   ? failure(s, "counting what is printed", err)
                   : CW_OK;
    if (counts_find(&s->counts, s->dir, ranks) == 0) {
        if (s->kind == STATE_FILE_HELD)
            counts_adopt(&s->counts);
        if (same_boot && s->counts.rebooted)
            return cw_err_set(err, CW_EINVAL,
                              "job directory %s: this machine was started anew since, which the "
                              "log of --log-safety file does not survive (that of sync does); "
                              "start the job anew in another directory",
                              s->path);
        counts_go_on(&s->counts);
        return CW_OK;
    }
    return cw_err_set(err, CW_EINVAL,
                      "job directory %s: its file " COUNTS_NAME ", which says what was printed, "
                      "cannot be used (%s): the job cannot be resumed; start it anew in another "
                      "directory",
                      s->path, errno == EBADMSG ? "it is damaged" : strerror(errno));
}

struct counts *state_file_counts(struct state_file *s)
{
    return s ? &s->counts : NULL;
}

enum state_file_doubt state_file_doubt(const struct state_file *s, uint32_t *rank)
{
    if (s->counts.rebooted)
        return STATE_FILE_REBOOTED;
    return counts_was_printing(&s->counts, rank) ? STATE_FILE_PRINTING : STATE_FILE_SURE;
}

/* --- making and taking up ------------------------------------------------------------------------
 */

/* Of those that keep their files there: a name that is gone after the loss of power would take all
 * of them with it. */
static int make_parts(const struct state_file *s, struct cw_err *err)
{
    if (mkdirat(s->dir, STATE_RELAY_NAME, 0700) < 0 || mkdirat(s->dir, STATE_IMAGES_NAME, 0700) < 0)
        return failure(s, "making its directories", err);
    return fsync(s->dir) < 0 ? failure(s, "syncing it", err) : CW_OK;
}

/* Where there is no room, a job is not to begin, nor to lose its journal when it is resumed. */
static int reserve(const struct state_file *s, struct cw_err *err)
{
    if (fallocate(s->file, FALLOC_FL_KEEP_SIZE, (off_t)s->size, RESERVE_BYTES) == 0 ||
        (errno != ENOSPC && errno != EDQUOT))
        return CW_OK;
    return failure(s, "taking room for its journal", err);
}

static int make_journal(struct state_file *s, struct cw_err *err)
{
    uint8_t header[JOB_STATE_HEADER];

    if (faccessat(s->dir, STATE_NAME, F_OK, 0) == 0)
        return cw_err_set(err, CW_EBUSY,
                          "job directory %s: a job is there that did not end well; go on with it "
                          "(causeway run --resume %s), give another directory, or remove this one",
                          s->path, s->path);
    if (check_empty(s, err) < 0)
        return err->code;
    s->file = openat(s->dir, STATE_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    job_state_put_header(header);
    if (s->file < 0 || write(s->file, header, sizeof(header)) != sizeof(header))
        return failure(s, "making its journal", err);
    s->size = sizeof(header);
    s->dirty = true;
    return reserve(s, err);
}

struct state_file *state_file_make(const char *dir, enum state_file_kind kind, struct cw_err *err)
{
    struct state_file *s = open_dir(dir, kind, true, err);

    if (s && !err->code && open_lock(s, err) == CW_OK && take_lock(s, err) == CW_OK &&
        make_journal(s, err) == CW_OK && (kind == STATE_FILE_HELD || make_parts(s, err) == CW_OK))
        return s;
    state_file_close(s, true);
    return NULL;
}

static int read_all(struct state_file *s, struct cw_err *err)
{
    struct stat st;
    size_t got = 0;
    ssize_t n = 1;

    if (fstat(s->file, &st) < 0)
        return failure(s, "reading its journal", err);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (uint64_t)st.st_size > JOB_STATE_BYTES_MAX + sizeof(s->record))
        return cw_err_set(err, CW_EINVAL, "job directory %s: its journal is not one of a job",
                          s->path);
    s->content = malloc((size_t)st.st_size + 1);
    if (!s->content)
        return cw_err_set(err, CW_ENOMEM, "job directory %s: no memory to read its journal",
                          s->path);
    while (got < (size_t)st.st_size && n > 0) {
        n = pread(s->file, s->content + got, (size_t)st.st_size - got, (off_t)got);
        got += n > 0 ? (size_t)n : 0;
    }
    if (n < 0)
        return failure(s, "reading its journal", err);
    s->in = (struct job_state_bytes){.bytes = s->content, .size = got};
    return CW_OK;
}

static int check_version(const struct state_file *s, struct cw_err *err)
{
    uint32_t version = job_state_version(s->in.bytes, s->in.size);

    if (version == JOB_STATE_VERSION)
        return CW_OK;
    if (version)
        return cw_err_set(err, CW_EINVAL,
                          "job directory %s: its journal is of version %u, and this program reads "
                          "%u; go on with the program that began the job",
                          s->path, version, JOB_STATE_VERSION);
    return cw_err_set(err, CW_EINVAL, "job directory %s: its journal is damaged at its beginning",
                      s->path);
}

/* All records are looked at once; the torn tail is cut off. */
static int check_records(struct state_file *s, struct cw_err *err)
{
    struct job_state_record record;
    enum job_state_found found = JOB_STATE_GOT;
    size_t offset = JOB_STATE_HEADER;
    uint32_t ranks = 0;
    bool begun = false;

    while (found == JOB_STATE_GOT) {
        found = job_state_get(&s->in, &offset, ranks, &record);
        if (found == JOB_STATE_GOT && record.type == JOB_STATE_JOB)
            ranks = record.rank;
        begun |= found == JOB_STATE_GOT && record.type == JOB_STATE_BEGUN;
    }
    if (found == JOB_STATE_DAMAGED)
        return cw_err_set(err, CW_EINVAL,
                          "job directory %s: its journal is damaged at byte %zu: the job cannot be "
                          "resumed",
                          s->path, offset);
    if (!begun)
        return cw_err_set(err, CW_ENOTFOUND,
                          "job directory %s: its job ended before it had begun; start it anew in "
                          "another directory, or remove this one",
                          s->path);
    s->size = s->in.size = offset;
    if (ftruncate(s->file, (off_t)offset) < 0 || lseek(s->file, 0, SEEK_END) < 0)
        return failure(s, "cutting the torn end of its journal off", err);
    return reserve(s, err);
}

struct state_file *state_file_take(const char *dir, enum state_file_kind kind, struct cw_err *err)
{
    struct state_file *s = open_dir(dir, kind, false, err);

    if (!s || err->code)
        return give_up(s);
    if (faccessat(s->dir, STATE_NAME, F_OK, 0) < 0) {
        cw_err_set(err, CW_ENOTFOUND,
                   "job directory %s: there is no job to go on with (it ended well, was never "
                   "begun, or could not be kept)",
                   s->path);
        return give_up(s);
    }
    if (open_lock(s, err) < 0 || take_lock(s, err) < 0)
        return give_up(s);
    s->file = openat(s->dir, STATE_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (s->file < 0) {
        failure(s, "opening its journal", err);
        return give_up(s);
    }
    if (read_all(s, err) < 0)
        return give_up(s);
    s->in.synced = counts_read_journal(s->dir);
    if (check_version(s, err) < 0 || check_records(s, err) < 0)
        return give_up(s);
    s->dirty = s->taken = true;
    state_file_rewind(s);
    return s;
}

bool state_file_read(struct state_file *s, struct job_state_record *record)
{
    if (!s || !s->content ||
        job_state_get(&s->in, &s->offset, s->ranks_read, record) != JOB_STATE_GOT)
        return false;
    if (record->type == JOB_STATE_JOB)
        s->ranks_read = record->rank;
    return true;
}

void state_file_rewind(struct state_file *s)
{
    s->offset = JOB_STATE_HEADER;
    s->ranks_read = 0;
}

void state_file_forget(struct state_file *s)
{
    if (!s)
        return;
    if (s->content)
        explicit_bzero(s->content, s->in.size);
    free(s->content);
    s->content = NULL;
}

/* --- copies --------------------------------------------------------------------------------------
 */

static void lose_copy(struct state_file *s, size_t i, const struct cw_err *why)
{
    struct state_link *link = s->copies[i];

    s->copies[i] = NULL;
    s->on_lost(s->on_lost_ctx, link, why);
}

static void put_copies(struct state_file *s, uint32_t type, uint64_t at, const void *bytes,
                       uint32_t size)
{
    struct cw_err err;

    for (size_t i = 0; i < STATE_COPIES_MAX; i++)
        if (s->copies[i] && state_link_put(s->copies[i], type, at, bytes, size, &err) < 0)
            lose_copy(s, i, &err);
}

static void sync_copies(struct state_file *s)
{
    struct cw_err err;

    for (size_t i = 0; i < STATE_COPIES_MAX; i++)
        if (s->copies[i] && state_link_sync(s->copies[i], &err) < 0)
            lose_copy(s, i, &err);
}

static void on_count(void *ctx, uint64_t word, uint64_t value)
{
    put_copies(ctx, STATE_COPY_COUNT, word, &value, sizeof(value));
}

static int send_journal(struct state_file *s, struct state_link *link, struct cw_err *err)
{
    uint64_t at = 0;
    ssize_t n = 0;

    while (at < s->size && (n = pread(s->file, s->record, sizeof(s->record), (off_t)at)) > 0) {
        if (state_link_put(link, STATE_COPY_JOURNAL, at, s->record, (uint32_t)n, err) < 0)
            return err->code;
        at += (uint64_t)n;
    }
    return at < s->size ? cw_err_set(err, CW_ESYS, "reading %s/" STATE_NAME, s->path) : CW_OK;
}

int state_file_copy_to(struct state_file *s, struct state_link *link,
                       void (*lost)(void *ctx, struct state_link *link, const struct cw_err *why),
                       void *ctx, struct cw_err *err)
{
    size_t i = 0;

    while (i < STATE_COPIES_MAX && s->copies[i])
        i++;
    if (i == STATE_COPIES_MAX)
        return cw_err_set(err, CW_ELIMIT, "there are %u copies already", STATE_COPIES_MAX);
    if (send_journal(s, link, err) < 0)
        return err->code;
    s->on_lost = lost;
    s->on_lost_ctx = ctx;
    s->counts.changed = on_count;
    s->counts.ctx = s;
    s->copies[i] = link;
    counts_tell(&s->counts);
    s->dirty = true;
    return CW_OK;
}

void state_file_copy_no_more(struct state_file *s, struct state_link *link)
{
    for (size_t i = 0; s && i < STATE_COPIES_MAX; i++)
        if (s->copies[i] == link)
            s->copies[i] = NULL;
}

/* --- appending -----------------------------------------------------------------------------------
 */

void state_file_on_failure(struct state_file *s, void (*failed)(void *ctx, const char *why),
                           void *ctx)
{
    if (!s)
        return;
    s->on_failure = failed;
    s->ctx = ctx;
}

/* The job is not to come back after the loss of power either: its relay forgets it next, or what it
 * did from now on is in no journal. */
static void remove_journal(const struct state_file *s)
{
    if (unlinkat(s->dir, STATE_NAME, 0) == 0)
        fsync(s->dir);
}

void state_file_fail(struct state_file *s, const char *why)
{
    if (!s || s->failed)
        return;
    s->failed = true;
    remove_journal(s);
    if (s->on_failure)
        s->on_failure(s->ctx, why);
}

void state_file_over(struct state_file *s)
{
    if (!s)
        return;
    remove_journal(s);
    put_copies(s, STATE_COPY_OVER, 0, NULL, 0);
    sync_copies(s);
}

bool state_file_is_whole(const struct state_file *s)
{
    return s && !s->failed;
}

static void fail_writing(struct state_file *s)
{
    char why[CW_ERR_TEXT_MAX];

    snprintf(why, sizeof(why), "writing to %.300s/" STATE_NAME ": %s", s->path, strerror(errno));
    state_file_fail(s, why);
}

void state_file_put(struct state_file *s, const struct job_state_record *record)
{
    size_t size;
    ssize_t n;

    if (!state_file_is_whole(s))
        return;
    size = job_state_put(s->record, record);
    if (size == 0 || s->size + size > JOB_STATE_BYTES_MAX) {
        state_file_fail(s, size ? "its journal has become larger than 256 MiB"
                                : "something is too large for its journal");
        return;
    }
    n = write(s->file, s->record, size);
    if (n != (ssize_t)size) {
        errno = n >= 0 ? ENOSPC : errno;
        fail_writing(s);
        return;
    }
    put_copies(s, STATE_COPY_JOURNAL, s->size, s->record, (uint32_t)size);
    s->size += size;
    s->dirty = true;
}

void state_file_sync_printed(struct state_file *s)
{
    if (state_file_is_whole(s) && s->kind == STATE_FILE_ON_DISK && counts_sync(&s->counts) < 0)
        fail_writing(s);
}

void state_file_sync(struct state_file *s)
{
    if (!state_file_is_whole(s) || !s->dirty)
        return;
    if (s->kind == STATE_FILE_ON_DISK && fdatasync(s->file) < 0) {
        fail_writing(s);
        return;
    }
    sync_copies(s);
    s->dirty = false;
    counts_set_journal(&s->counts, s->size);
}

const char *state_file_dir(const struct state_file *s)
{
    return s->path;
}

int state_file_lock_fd(const struct state_file *s)
{
    return s && s->kind == STATE_FILE_ON_DISK ? s->lock : -1;
}
