#include "dispatcher/run/resume.h"
#include "dispatcher/program/device_path.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_DIR "own" /* below that of this process: no copy that is to be found */
#define NS_IN_S 1000000000ull
#define IMAGES_KNOWN_NS 60000000000ull /* for the checkpoint server of a job that is taken up */

extern char **environ;

/* --- what a job is started with ------------------------------------------------------------------
 */

static void put_text(struct state_file *state, uint32_t type, const char *text)
{
    const struct job_state_record record = {
        .type = type, .bytes = (const uint8_t *)text, .size = (uint32_t)strlen(text) + 1};

    state_file_put(state, &record);
}

static uint64_t mtime_ns_of(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * NS_IN_S + (uint64_t)st->st_mtim.tv_nsec;
}

static void put_file(struct state_file *state, const char *path)
{
    struct job_state_record record = {.type = JOB_STATE_FILE, .file.path = path};
    struct stat st;

    if (stat(path, &st) < 0)
        return; /* the restorer need not be there */
    record.file.size = (uint64_t)st.st_size;
    record.file.mtime_ns = mtime_ns_of(&st);
    state_file_put(state, &record);
}

static int check_file(const struct job_state_file *file, const char *dir, struct cw_err *err)
{
    struct stat st;

    if (stat(file->path, &st) < 0)
        return cw_err_set(err, CW_EINVAL, "job directory %s: the job needs %s: %s", dir, file->path,
                          strerror(errno));
    if ((uint64_t)st.st_size != file->size || mtime_ns_of(&st) != file->mtime_ns)
        return cw_err_set(err, CW_EINVAL,
                          "job directory %s: %s has changed since the job began: what its ranks "
                          "did before cannot be repeated; put the old file back, with its time of "
                          "change",
                          dir, file->path);
    return CW_OK;
}

static void put_stdin(struct state_file *state)
{
    struct job_state_record record = {.type = JOB_STATE_STDIN};
    char path[PATH_MAX] = "";
    struct stat st;

    if (fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode) ||
        readlink("/proc/self/fd/0", path, sizeof(path) - 1) < 0)
        return;
    record.stdin_file[0] = st.st_dev;
    record.stdin_file[1] = st.st_ino;
    record.stdin_file[2] = (uint64_t)lseek(STDIN_FILENO, 0, SEEK_CUR);
    record.bytes = (const uint8_t *)path;
    record.size = (uint32_t)strlen(path) + 1;
    state_file_put(state, &record);
}

static void put_document(struct parts *p)
{
    struct job_state_record job = {.type = JOB_STATE_JOB, .rank = p->options->ranks};
    char wdir[PATH_MAX] = "/";

    memcpy(job.id, p->job_id, sizeof(job.id));
    memcpy(job.key, p->relay_key, sizeof(job.key));
    state_file_put(p->state, &job);
    sodium_memzero(job.key, sizeof(job.key));
    for (int i = 0; i < p->options->word_count; i++)
        put_text(p->state, JOB_STATE_ARGUMENT, p->options->words[i]);
    for (char **v = environ; *v; v++)
        put_text(p->state, JOB_STATE_VARIABLE, *v);
    if (getcwd(wdir, sizeof(wdir)))
        put_text(p->state, JOB_STATE_DIRECTORY, wdir);
    for (uint32_t i = 0; i < p->options->segment_count; i++)
        put_file(p->state, p->programs.paths[i]);
    put_file(p->state, p->programs.device_path);
    put_file(p->state, p->programs.restore_path);
    put_stdin(p->state);
}

/* --- opening -------------------------------------------------------------------------------------
 */

static void on_failure(void *ctx, const char *why)
{
    struct parts *p = ctx;

    log_warning(&p->log, loop_now_ns(p->loop), JOB_NO_RANK, "the job cannot be resumed any more",
                why);
    log_notice(&p->log,
               "%s; the job goes on, but it cannot be resumed any more should causeway run or "
               "the machine crash",
               why);
}

/* Until hosts have copies of it, it is in our own directory alone. */
static int make_held(struct parts *p, struct cw_err *err)
{
    char dir[RUNDIR_MAX + sizeof(OWN_DIR)];

    if (parts_make_dir(p, err) < 0)
        return err->code;
    snprintf(dir, sizeof(dir), "%s/" OWN_DIR, p->dir.path);
    p->state = state_file_make(dir, STATE_FILE_HELD, err);
    return p->state ? CW_OK : err->code;
}

static int make_in_dir(struct parts *p, struct cw_err *err)
{
    char dir[PATH_MAX];
    const char *wanted = p->options->job_dir;
    char here[PATH_MAX];

    if (!device_path_is_plain(p->programs.device_path))
        return cw_err_set(err, CW_EINVAL,
                          "--job-dir %s: the path of %s has blanks or colons, so it is another one "
                          "in each start; install Causeway elsewhere",
                          wanted, p->programs.device_path);
    if (wanted[0] == '/')
        snprintf(dir, sizeof(dir), "%s", wanted);
    else if (!getcwd(here, sizeof(here)) ||
             (size_t)snprintf(dir, sizeof(dir), "%s/%s", here, wanted) >= sizeof(dir))
        return cw_err_set(err, CW_EINVAL, "--job-dir %s: give a shorter path from /", wanted);
    if (strlen(dir) >= STATE_DIR_MAX)
        return cw_err_set(err, CW_EINVAL, "--job-dir %s: longer than %d bytes", wanted,
                          STATE_DIR_MAX - 1);
    p->state = state_file_make(dir, STATE_FILE_ON_DISK, err);
    return p->state ? CW_OK : err->code;
}

static int make(struct parts *p, struct cw_err *err)
{
    if ((p->options->job_dir ? make_in_dir(p, err) : make_held(p, err)) < 0)
        return err->code;
    randombytes_buf(p->relay_key, sizeof(p->relay_key));
    put_document(p);
    return CW_OK;
}

/* The last one of each host. */
static int read_nodes(struct parts *p, struct cw_err *err)
{
    struct job_state_record record;

    err->code = CW_OK;
    while (state_file_read(p->state, &record)) {
        if (record.type != JOB_STATE_NODE || record.number >= HOSTS_MAX)
            continue;
        free(p->taken[record.number]);
        p->taken[record.number] = strdup((const char *)record.bytes);
        if (!p->taken[record.number])
            return cw_err_set(err, CW_ENOMEM, "no memory to resume a job");
    }
    return CW_OK;
}

static int read_document(struct parts *p, struct cw_err *err)
{
    struct job_state_record record;

    state_file_rewind(p->state);
    if (!state_file_read(p->state, &record) || record.type != JOB_STATE_JOB ||
        record.rank != p->options->ranks)
        return cw_err_set(err, CW_EINVAL,
                          "job directory %s: its journal does not begin with a job "
                          "of %u ranks",
                          state_file_dir(p->state), p->options->ranks);
    memcpy(p->job_id, record.id, sizeof(p->job_id));
    memcpy(p->relay_key, record.key, sizeof(p->relay_key));
    sodium_memzero(record.key, sizeof(record.key));
    p->begun = true;
    return read_nodes(p, err);
}

int resume_open(struct parts *p, struct cw_err *err)
{
    bool synced;

    if (!p->resumed)
        randombytes_buf(p->job_id, sizeof(p->job_id));
    if (!p->state && !p->options->job_dir && !p->options->orphan_ns)
        return CW_OK;
    if ((p->resumed ? read_document(p, err) : make(p, err)) < 0)
        return err->code;
    state_file_on_failure(p->state, on_failure, p);
    snprintf(p->relay_dir, sizeof(p->relay_dir), "%s/" STATE_RELAY_NAME, state_file_dir(p->state));
    snprintf(p->image_dir, sizeof(p->image_dir), "%s/" STATE_IMAGES_NAME, state_file_dir(p->state));
    synced = p->options->relay_settings.log_safety == RELAY_LOG_SYNCED || !p->options->job_dir;
    if (state_file_count_ranks(p->state, p->options->ranks, !synced, err) < 0 || synced)
        return err->code;
    return state_file_open_log(p->state, &p->relay_kept.state_fd, &p->relay_kept.disk_fd, err);
}

void resume_name_nodes(struct parts *p)
{
    for (uint32_t host = 0; host < nodes_here(p->nodes); host++) {
        const char *dir = nodes_facts(p->nodes, host)->dir;

        state_file_put(p->state, &(struct job_state_record){.type = JOB_STATE_NODE,
                                                            .number = host,
                                                            .bytes = (const uint8_t *)dir,
                                                            .size = (uint32_t)strlen(dir) + 1});
    }
}

void resume_begin(struct parts *p)
{
    if (!p->state)
        return;
    state_file_put(p->state, &(struct job_state_record){.type = JOB_STATE_BEGUN});
    state_file_sync(p->state);
    p->begun = true;
}

/* --- a dispatcher before us ----------------------------------------------------------------------
 */

/* What the first look finds. */
struct past {
    uint32_t *incarnation;
    bool *ended;
    uint64_t (*printed)[JOB_STATE_STREAMS];
};

static void look_at(struct job *job, struct past *past, const struct job_state_record *r)
{
    if (r->type == JOB_STATE_START && r->number > past->incarnation[r->rank])
        past->incarnation[r->rank] = r->number;
    else if (r->type == JOB_STATE_ENDED && !past->ended[r->rank]) {
        past->ended[r->rank] = true;
        job_rank_ended_before(job, r->rank, r->number);
    } else if (r->type == JOB_STATE_PLACE)
        for (int i = 0; i < JOB_STATE_STREAMS; i++)
            if (r->place.printed[i] > past->printed[r->rank][i])
                past->printed[r->rank][i] = r->place.printed[i];
}

/* All of its incarnations have ended; its output goes on where it is. */
static int return_rank(struct parts *p, struct job *job, const struct past *past, uint32_t rank,
                       struct cw_err *err)
{
    uint64_t printed[JOB_STATE_STREAMS];

    job_rank_ran_before(job, rank, past->incarnation[rank]);
    relays_rank_end(p->relays, rank, past->incarnation[rank]);
    if (past->ended[rank])
        return CW_OK;
    for (int i = 0; i < JOB_STATE_STREAMS; i++) {
        printed[i] = counts_printed(state_file_counts(p->state), rank, i);
        if (past->printed[rank][i] > printed[i])
            printed[i] = past->printed[rank][i];
    }
    return outputs_return(p->outputs, rank, printed, err);
}

/* A terminal, or a file that others write to as well, cannot be looked at for what was printed. */
static void tell_doubt(struct parts *p)
{
    uint32_t rank = 0;

    if (p->options->output_dir)
        return;
    switch (state_file_doubt(p->state, &rank)) {
    case STATE_FILE_SURE:
        break;
    case STATE_FILE_PRINTING:
        log_notice(&p->log,
                   "causeway run was killed while it printed something of rank %u, which may be "
                   "printed again now",
                   rank);
        break;
    case STATE_FILE_REBOOTED:
        log_notice(&p->log,
                   "this machine was started anew since: what ranks printed in the last seconds "
                   "before it went down may be printed again now");
        break;
    }
}

static int replay(struct parts *p, struct job *job, struct past *past, struct cw_err *err)
{
    struct job_state_record record;
    uint32_t ended = 0;

    for (uint32_t rank = 0; rank < p->options->ranks; rank++)
        past->incarnation[rank] = 1;
    state_file_rewind(p->state);
    while (state_file_read(p->state, &record))
        look_at(job, past, &record);
    for (uint32_t rank = 0; rank < p->options->ranks; rank++) {
        if (return_rank(p, job, past, rank, err) < 0)
            return err->code;
        ended += past->ended[rank];
    }
    state_file_rewind(p->state);
    while (state_file_read(p->state, &record)) {
        rank_io_replay(p->rank_io, &record);
        rank_input_replay(p->input, &record);
        imaging_replay(p->imaging, &record);
    }
    state_file_forget(p->state);
    imaging_look_up(p->imaging);
    log_notice(&p->log, "the job in %s goes on: %u ranks are started again, %u had ended",
               state_file_dir(p->state), p->options->ranks - ended, ended);
    tell_doubt(p);
    return CW_OK;
}

int resume_replay(struct parts *p, struct job *job, struct cw_err *err)
{
    uint32_t ranks = p->options->ranks;
    struct past past = {.incarnation = calloc(ranks, sizeof(*past.incarnation)),
                        .ended = calloc(ranks, sizeof(*past.ended)),
                        .printed = calloc(ranks, sizeof(*past.printed))};

    if (!past.incarnation || !past.ended || !past.printed)
        cw_err_set(err, CW_ENOMEM, "no memory to resume a job of %u ranks", ranks);
    else
        replay(p, job, &past, err);
    free(past.incarnation);
    free(past.ended);
    free(past.printed);
    return err->code;
}

int resume_await_images(struct parts *p, const struct job *job, struct cw_err *err)
{
    uint64_t until = loop_now_ns(p->loop) + IMAGES_KNOWN_NS;
    bool failed = false;

    while (!imaging_knows(p->imaging, &failed) && !failed && !job->ending &&
           loop_now_ns(p->loop) < until)
        loop_turn(p->loop, until);
    if (job->ending)
        return cw_err_set(err, CW_ESYS, "%s", job->reason);
    if (imaging_knows(p->imaging, &failed))
        return CW_OK;
    return cw_err_set(err, CW_ESYS,
                      "the job's checkpoint server does not say what images there are in %s",
                      p->image_dir);
}

/* --- the end -------------------------------------------------------------------------------------
 */

void resume_rank_ended(struct parts *p, uint32_t rank, bool used_mpi)
{
    outputs_sync(p->outputs, rank);
    state_file_put(p->state, &(struct job_state_record){
                                 .type = JOB_STATE_ENDED, .rank = rank, .number = used_mpi});
}

void resume_end(struct parts *p, bool well)
{
    if (!p->state)
        return;
    p->over = well || !state_file_is_whole(p->state) || !p->options->job_dir;
    if (p->over)
        return;
    log_notice(&p->log, "the job can be gone on with: causeway run --resume %s",
               state_file_dir(p->state));
}

/* --- taking a job up -----------------------------------------------------------------------------
 */

/* A list of texts grows; it always ends with NULL. */
static int add_text(char ***list, int *count, const uint8_t *text, struct cw_err *err)
{
    char **more = realloc(*list, ((size_t)*count + 2) * sizeof(**list));

    if (more)
        *list = more;
    if (more)
        more[*count] = strdup((const char *)text);
    if (!more || !more[*count])
        return cw_err_set(err, CW_ENOMEM, "no memory to resume a job");
    more[++*count] = NULL;
    return CW_OK;
}

static int take_text(struct kept_job *kept, int *env_count, const struct job_state_record *r,
                     struct cw_err *err)
{
    switch ((enum job_state_type)r->type) {
    case JOB_STATE_ARGUMENT:
        return add_text(&kept->argv, &kept->argc, r->bytes, err);
    case JOB_STATE_VARIABLE:
        return add_text(&kept->env, env_count, r->bytes, err);
    case JOB_STATE_DIRECTORY:
        free(kept->wdir);
        kept->wdir = strdup((const char *)r->bytes);
        return CW_OK;
    case JOB_STATE_FILE:
        return check_file(&r->file, state_file_dir(kept->state), err);
    case JOB_STATE_STDIN:
        memcpy(kept->stdin_file, r->stdin_file, sizeof(kept->stdin_file));
        free(kept->stdin_path);
        kept->stdin_path = strdup((const char *)r->bytes);
        return CW_OK;
    case JOB_STATE_INPUT:
        kept->input += r->size;
        kept->input_ended |= r->size == 0;
        return CW_OK;
    default:
        return CW_OK;
    }
}

int kept_job_take(struct kept_job *kept, const char *dir, enum state_file_kind kind,
                  struct cw_err *err)
{
    struct job_state_record record;
    char path[PATH_MAX];
    int env_count = 0;

    *kept = (struct kept_job){0};
    if (!realpath(dir, path))
        return cw_err_set(err, CW_ENOTFOUND, "--resume %s: %s; %s", dir, strerror(errno),
                          errno == ENOENT ? "a job that ends well removes its directory"
                                          : "give the directory of a job of this user's");
    if (strlen(path) >= STATE_DIR_MAX)
        return cw_err_set(err, CW_EINVAL, "--resume %s: longer than %d bytes", dir,
                          STATE_DIR_MAX - 1);
    kept->state = state_file_take(path, kind, err);
    if (!kept->state)
        return err->code;
    while (state_file_read(kept->state, &record))
        if (take_text(kept, &env_count, &record, err) < 0)
            return err->code;
    if (!kept->argv || !kept->env || !kept->wdir)
        return cw_err_set(err, CW_EINVAL,
                          "job directory %s: its journal does not say how the job was started",
                          path);
    return CW_OK;
}

/* Whether it is the file that the job reads. */
static bool is_input(const struct kept_job *kept, int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == kept->stdin_file[0] &&
           st.st_ino == kept->stdin_file[1];
}

/* A file is read from where the job had come to: it would take the end of another one for the end
 * of its input. */
static int enter_input(const struct kept_job *kept, struct cw_err *err)
{
    int fd;

    if (!kept->stdin_path || kept->input_ended)
        return CW_OK;
    if (!is_input(kept, STDIN_FILENO)) {
        fd = open(kept->stdin_path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || !is_input(kept, fd) || dup2(fd, STDIN_FILENO) < 0)
            cw_err_set(
                err, CW_ENOTFOUND,
                "job directory %s: the job reads its standard input from a file, and has not "
                "come to its end; at %s there is none, or another one: give it the file (< "
                "FILE)",
                state_file_dir(kept->state), kept->stdin_path);
        if (fd > STDIN_FILENO)
            close(fd);
    }
    if (!err->code)
        lseek(STDIN_FILENO, (off_t)(kept->stdin_file[2] + kept->input), SEEK_SET);
    return err->code;
}

int kept_job_enter(const struct kept_job *kept, struct cw_err *err)
{
    if (enter_input(kept, err) < 0)
        return err->code;
    environ = kept->env;
    if (chdir(kept->wdir) < 0)
        return cw_err_set(err, CW_ENOTFOUND, "going to %s, where the job was started: %s",
                          kept->wdir, strerror(errno));
    return CW_OK;
}

static void free_list(char **list)
{
    for (char **text = list; text && *text; text++)
        free(*text);
    free(list);
}

/* The environment stays: it is this process's now. */
void kept_job_free(struct kept_job *kept)
{
    if (environ != kept->env)
        free_list(kept->env);
    free_list(kept->argv);
    free(kept->wdir);
    free(kept->stdin_path);
}
