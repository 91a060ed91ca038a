#include "dispatcher/status/status_client.h"
#include "common/clock.h"
#include "common/transport.h"
#include "common/tree.h"
#include "dispatcher/status/status.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_MIN 65536

struct answer {
    char *bytes;
    size_t used;
    size_t size;
};

static int make_room(struct answer *a, struct cw_err *err)
{
    char *bytes;

    if (a->size - a->used >= READ_MIN)
        return CW_OK;
    if (a->used > STATUS_BYTES_MAX)
        return cw_err_set(err, CW_ELIMIT, "the answer has more than %u MiB",
                          STATUS_BYTES_MAX >> 20);
    a->size = 2 * a->size + READ_MIN;
    bytes = realloc(a->bytes, a->size);
    if (!bytes)
        return cw_err_set(err, CW_ENOMEM, "no memory for an answer of %zu bytes", a->used);
    a->bytes = bytes;
    return CW_OK;
}

/* All up to the end of the stream. `wait_ms` -1: however long that takes. */
static int read_answer(int fd, int wait_ms, struct answer *a, struct cw_err *err)
{
    uint64_t until_ns = cw_clock_ns() + (uint64_t)wait_ms * 1000000ull;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now_ns = cw_clock_ns();
        ssize_t n;

        if (wait_ms >= 0 && now_ns >= until_ns)
            return cw_err_set(err, CW_ELIMIT, "no answer for %d s; is it stopped?", wait_ms / 1000);
        poll(&p, 1, wait_ms < 0 ? -1 : (int)((until_ns - now_ns) / 1000000) + 1);
        if (make_room(a, err) < 0)
            return err->code;
        n = read(fd, a->bytes + a->used, a->size - a->used);
        if (n == 0)
            return CW_OK;
        if (n > 0)
            a->used += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            return cw_err_set(err, CW_ECLOSED, "%s", strerror(errno));
    }
}

static bool is_document(const json_t *value)
{
    const json_t *ranks = json_object_get(value, "ranks");
    const json_t *rank;
    size_t i;

    json_array_foreach(ranks, i, rank)
    {
        if (!json_is_object(rank))
            return false;
    }
    return json_is_array(ranks);
}

static json_t *parse(const struct answer *a, struct cw_err *err)
{
    json_error_t error;
    json_t *value;

    if (a->used == 0) {
        cw_err_set(err, CW_ECLOSED, "the job has ended");
        return NULL;
    }
    value = json_loadb(a->bytes, a->used, JSON_REJECT_DUPLICATES, &error);
    if (is_document(value))
        return value;
    cw_err_set(err, CW_EPROTO, "the answer is no status document%s%s", value ? "" : ": ",
               value ? "" : error.text);
    json_decref(value);
    return NULL;
}

static int connect_to(const char *dir, const char *name, struct cw_err *err)
{
    char text[CW_ADDRESS_MAX];
    struct cw_address address;

    snprintf(text, sizeof(text), "unix:%s/%s", dir, name);
    if (access(text + strlen("unix:"), F_OK) < 0)
        return cw_err_set(err, CW_ENOTFOUND, "no job is there, or it has only begun");
    if (cw_address_parse(&address, text, err) < 0)
        return err->code;
    return cw_connect(&address, err);
}

static pid_t pid_of_peer(int fd)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

static json_t *ask(const char *dir, const char *name, int wait_ms, pid_t *pid, struct cw_err *err)
{
    struct answer answer = {0};
    json_t *document = NULL;
    int fd;

    *err = (struct cw_err){0};
    *pid = 0;
    fd = connect_to(dir, name, err);
    if (fd >= 0) {
        *pid = pid_of_peer(fd);
        if (read_answer(fd, wait_ms, &answer, err) == CW_OK)
            document = parse(&answer, err);
        close(fd);
        free(answer.bytes);
        if (!document)
            cw_err_wrap(err, "the job of causeway run with pid %d, in %s", (int)*pid, dir);
    } else if (err->code != CW_ENOTFOUND) {
        cw_err_set(err, CW_ECLOSED,
                   "%s: nobody answers there: its causeway run was killed; the next one removes it",
                   dir);
    }
    return document;
}

json_t *status_ask(const char *dir, pid_t *pid, struct cw_err *err)
{
    return ask(dir, STATUS_NAME, STATUS_WAIT_MS, pid, err);
}

json_t *status_ask_images(const char *dir, struct cw_err *err)
{
    pid_t pid;

    return ask(dir, STATUS_IMAGES_NAME, -1, &pid, err);
}

/* Nobody else can have put it there for us to trust. */
static bool is_ours(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid();
}

static int find_in(const char *place, struct status_found *found, int max)
{
    struct cw_names names;
    const char *name;
    char prefix[RUNDIR_PREFIX_SIZE];
    int count = 0;

    rundir_prefix(prefix);
    names = cw_names(place, prefix);
    while ((name = cw_names_next(&names))) {
        struct status_found *f = &found[count];

        if (count == max ||
            (size_t)snprintf(f->dir, sizeof(f->dir), "%s/%s", place, name) >= sizeof(f->dir) ||
            !is_ours(f->dir))
            continue;
        f->document = status_ask(f->dir, &f->pid, &f->err);
        if (f->err.code != CW_ENOTFOUND)
            count++;
    }
    return count;
}

int status_find(struct status_found found[STATUS_JOBS_MAX])
{
    char places[RUNDIR_PLACES_MAX][RUNDIR_MAX];
    int place_count = rundir_places(places);
    int count = 0;

    for (int i = 0; i < place_count; i++)
        count += find_in(places[i], found + count, STATUS_JOBS_MAX - count);
    return count;
}

void status_forget(struct status_found *found, int count)
{
    for (int i = 0; i < count; i++)
        json_decref(found[i].document);
}

static bool is_pid_of(const struct status_found *f, const char *job)
{
    char pid[24];

    snprintf(pid, sizeof(pid), "%d", (int)f->pid);
    return f->pid && strcmp(pid, job) == 0;
}

static bool is_id_of(const struct status_found *f, const char *job)
{
    const char *id = json_string_value(json_object_get(f->document, "job"));

    return id && strncmp(id, job, strlen(job)) == 0;
}

static bool runs(const struct status_found *f, const char *job)
{
    (void)job;
    return f->document;
}

/* The only one that `is` the job. *matches counts all. */
static int the_one(const struct status_found *found, int count, const char *job,
                   bool (*is)(const struct status_found *f, const char *job), int *matches)
{
    int one = -1;

    *matches = 0;
    for (int i = 0; i < count; i++) {
        if (!is(&found[i], job))
            continue;
        ++*matches;
        one = i;
    }
    return one;
}

int status_choose(const struct status_found *found, int count, const char *job, struct cw_err *err)
{
    int matches;
    int one = the_one(found, count, job, job ? is_pid_of : runs, &matches);

    if (job && matches == 0)
        one = the_one(found, count, job, is_id_of, &matches);
    if (matches > 1)
        return cw_err_set(err, CW_EINVAL, "%d jobs %s%s; see causeway status for which one to name",
                          matches, job ? "have an identifier that begins with " : "run",
                          job ? job : "");
    if (matches == 0)
        return cw_err_set(err, CW_ENOTFOUND,
                          job ? "no job %s runs; see causeway status"
                              : "no job of yours runs on this machine",
                          job);
    if (!found[one].document) {
        *err = found[one].err;
        return err->code;
    }
    return one;
}
