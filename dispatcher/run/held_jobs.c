#include "dispatcher/run/held_jobs.h"
#include "common/tree.h"
#include "dispatcher/node/attach.h"
#include "dispatcher/state/state_copy.h"
#include "dispatcher/state/state_file.h"
#include "dispatcher/status/rundir.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ID_TEXT (2 * CW_ID_SIZE + 1)
#define HEAD_BYTES 256 /* of a journal, with its first record */

struct found {
    uint32_t count;
    char id[ID_TEXT];      /* of the last one, */
    char node[RUNDIR_MAX]; /* ... and the directory of the node that has it */
};

bool held_jobs_names(const char *job)
{
    return !strchr(job, '/') && access(job, F_OK) < 0;
}

/* False: there is no job. */
static bool read_id(const char *node, char id[ID_TEXT])
{
    char path[RUNDIR_MAX + sizeof(STATE_COPY_DIR) + sizeof(STATE_NAME)];
    uint8_t bytes[HEAD_BYTES];
    struct job_state_bytes in = {.bytes = bytes};
    struct job_state_record record;
    size_t offset = JOB_STATE_HEADER;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%s/" STATE_COPY_DIR "/" STATE_NAME, node);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    n = read(fd, bytes, sizeof(bytes));
    close(fd);
    in.size = n > 0 ? (size_t)n : 0;
    if (job_state_version(bytes, in.size) != JOB_STATE_VERSION ||
        job_state_get(&in, &offset, 0, &record) != JOB_STATE_GOT || record.type != JOB_STATE_JOB)
        return false;
    sodium_bin2hex(id, ID_TEXT, record.id, CW_ID_SIZE);
    sodium_memzero(&record, sizeof(record));
    sodium_memzero(bytes, sizeof(bytes));
    return true;
}

static void find_in(const char *place, const char *job, struct found *found)
{
    char prefix[RUNDIR_PREFIX_SIZE], id[ID_TEXT], node[RUNDIR_MAX];
    struct cw_names names;
    const char *name;

    rundir_prefix(prefix);
    names = cw_names(place, prefix);
    while ((name = cw_names_next(&names))) {
        if ((size_t)snprintf(node, sizeof(node), "%s/%s", place, name) >= sizeof(node) ||
            !read_id(node, id) || (strcmp(job, "-") != 0 && strncmp(id, job, strlen(job)) != 0))
            continue;
        found->count += strcmp(found->id, id) != 0; /* nodes of one job have the same of it */
        strcpy(found->id, id);
        strcpy(found->node, node);
    }
}

int held_jobs_find(const char *job, char dir[PATH_MAX], struct cw_err *err)
{
    char places[RUNDIR_PLACES_MAX][RUNDIR_MAX];
    int place_count = rundir_places(places);
    struct found found = {0};

    for (int i = 0; i < place_count; i++)
        find_in(places[i], job, &found);
    if (found.count == 0)
        return cw_err_set(
            err, CW_ENOTFOUND,
            "--resume %s: on this host there is no state of such a job that could be "
            "gone on with; it is on one of the job's other hosts, or the job has ended",
            job);
    if (found.count > 1)
        return cw_err_set(err, CW_EINVAL,
                          "--resume %s: there are %u such jobs on this host; give the beginning of "
                          "the identifier of one",
                          job, found.count);
    if (attach_look(found.node, err) < 0)
        return cw_err_wrap(err, "--resume %s", job);
    snprintf(dir, PATH_MAX, "%s/" STATE_COPY_DIR, found.node);
    return CW_OK;
}
