#include "dispatcher/node/state_keeper.h"
#include "common/fd.h"
#include "dispatcher/state/counts.h"
#include "dispatcher/state/state_copy.h"
#include "dispatcher/state/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_STEP_MS 20            /* between two tries to take the lock */
#define NEW_NAME(name) name ".new" /* until all of it has come */

struct keeper {
    int dir;
    int lock;
    int journal;
    bool fresh; /* not all of it has come, and another one may be there */
    int counts;
    uint64_t size;   /* of the journal */
    char holder[32]; /* what is in the lock as long as nobody else has taken the copy */
    size_t used;     /* of what has come */
    uint8_t *bytes;  /* STATE_COPY_HEADER + STATE_COPY_BODY_MAX; owned */
};

static int taken_over(struct cw_err *err)
{
    return cw_err_set(err, CW_EAUTH, "another causeway run goes on with the job");
}

static int failure(const char *doing, struct cw_err *err)
{
    return cw_err_set(err, CW_ESYS, "keeping the state of the job: %s: %s", doing, strerror(errno));
}

/* --- its directory --- */

static int open_file(const struct keeper *k, const char *name)
{
    return openat(k->dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static bool holds(const struct keeper *k)
{
    char text[sizeof(k->holder)] = "";

    return pread(k->lock, text, sizeof(text) - 1, 0) >= 0 && strcmp(text, k->holder) == 0;
}

/* The lock is held while something is kept, and no longer. Who takes the copy holds it for good. */
static int hold(const struct keeper *k, struct cw_err *err)
{
    const struct timespec pause = {.tv_nsec = LOCK_STEP_MS * 1000000};

    while (flock(k->lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EINTR && errno != EWOULDBLOCK)
            return failure("locking it", err);
        if (k->holder[0] && !holds(k))
            return taken_over(err);
        nanosleep(&pause, NULL);
    }
    return CW_OK;
}

static int become_holder(struct keeper *k, struct cw_err *err)
{
    int size;

    if (hold(k, err) < 0)
        return err->code;
    size = snprintf(k->holder, sizeof(k->holder), STATE_KEEPER_HOLDS " %ld\n", (long)getpid());
    if (ftruncate(k->lock, 0) < 0 || pwrite(k->lock, k->holder, (size_t)size, 0) != size)
        failure("writing its lock", err);
    flock(k->lock, LOCK_UN);
    return err->code;
}

static int open_all(struct keeper *k, const char *path, struct cw_err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return failure(path, err);
    k->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (k->dir < 0)
        return failure(path, err);
    k->lock = open_file(k, STATE_LOCK_NAME);
    k->bytes = malloc(STATE_COPY_HEADER + STATE_COPY_BODY_MAX);
    if (k->lock < 0)
        return failure(path, err);
    if (!k->bytes)
        return cw_err_set(err, CW_ENOMEM, "no memory to keep the state of the job");
    return become_holder(k, err);
}

static void close_all(struct keeper *k)
{
    cw_close(&k->journal);
    cw_close(&k->counts);
    cw_close(&k->lock);
    cw_close(&k->dir);
    free(k->bytes);
}

/* --- what comes --- */

static bool write_at(int fd, const uint8_t *bytes, size_t size, uint64_t at)
{
    errno = ENOSPC; /* of a write that is short */
    return pwrite(fd, bytes, size, (off_t)at) == (ssize_t)size;
}

/* A whole one takes the place of one that is there. */
static int take_journal(struct keeper *k, const struct state_copy_message *m, struct cw_err *err)
{
    if (m->at == 0) {
        cw_close(&k->journal);
        cw_close(&k->counts);
        k->fresh = true;
        k->journal = open_file(k, NEW_NAME(STATE_NAME));
        k->counts = open_file(k, NEW_NAME(COUNTS_NAME));
        if (k->journal < 0 || k->counts < 0 || ftruncate(k->journal, 0) < 0 ||
            ftruncate(k->counts, 0) < 0)
            return failure("making its journal", err);
    } else if (k->journal < 0 || m->at != k->size) {
        return cw_err_set(err, CW_EPROTO, "a part of a journal that does not follow");
    }
    if (!write_at(k->journal, m->bytes, m->size, m->at))
        return failure("writing its journal", err);
    k->size = m->at + m->size;
    return CW_OK;
}

/* In between there is none. */
static int put_in_place(struct keeper *k, struct cw_err *err)
{
    if (!k->fresh)
        return CW_OK;
    k->fresh = false;
    if ((unlinkat(k->dir, STATE_NAME, 0) < 0 && errno != ENOENT) ||
        renameat(k->dir, NEW_NAME(COUNTS_NAME), k->dir, COUNTS_NAME) < 0 ||
        renameat(k->dir, NEW_NAME(STATE_NAME), k->dir, STATE_NAME) < 0)
        return failure("putting its journal in its place", err);
    return CW_OK;
}

static int take(struct keeper *k, const struct state_copy_message *m, struct cw_err *err)
{
    switch ((enum state_copy_type)m->type) {
    case STATE_COPY_JOURNAL:
        return take_journal(k, m, err);
    case STATE_COPY_COUNT:
        return k->journal >= 0 &&
                       write_at(k->counts, m->bytes, m->size, m->at * STATE_COPY_COUNT_SIZE)
                   ? CW_OK
                   : failure("counting what is printed", err);
    case STATE_COPY_SYNC:
        if (put_in_place(k, err) < 0)
            return err->code;
        return write(STDOUT_FILENO, &m->at, sizeof(m->at)) == sizeof(m->at)
                   ? CW_OK
                   : failure("answering", err);
    default:
        unlinkat(k->dir, STATE_NAME, 0);
        return CW_OK;
    }
}

static int take_whole(struct keeper *k, struct cw_err *err)
{
    struct state_copy_message message;
    size_t at = 0;
    long n;

    while ((n = state_copy_get(k->bytes + at, k->used - at, &message, err)) > 0) {
        if (take(k, &message, err) < 0)
            return err->code;
        at += (size_t)n;
    }
    if (n < 0)
        return err->code;
    memmove(k->bytes, k->bytes + at, k->used - at);
    k->used -= at;
    return CW_OK;
}

/* False: there is nothing more, or *err says why. */
static bool step(struct keeper *k, struct cw_err *err)
{
    ssize_t n =
        read(STDIN_FILENO, k->bytes + k->used, STATE_COPY_HEADER + STATE_COPY_BODY_MAX - k->used);

    if (n < 0 && errno == EINTR)
        return true;
    if (n <= 0)
        return n < 0 && failure("reading", err) == CW_OK;
    k->used += (size_t)n;
    if (hold(k, err) < 0)
        return false;
    if (holds(k))
        take_whole(k, err);
    else
        taken_over(err);
    flock(k->lock, LOCK_UN);
    return err->code == CW_OK;
}

int state_keeper_run(const char *dir, struct cw_err *err)
{
    struct keeper k = {.dir = -1, .lock = -1, .journal = -1, .counts = -1};

    err->code = CW_OK;
    signal(SIGPIPE, SIG_IGN);
    if (open_all(&k, dir, err) == CW_OK &&
        write(STDOUT_FILENO, STATE_COPY_MAGIC, strlen(STATE_COPY_MAGIC)) > 0)
        while (step(&k, err))
            ;
    close_all(&k);
    return err->code;
}
