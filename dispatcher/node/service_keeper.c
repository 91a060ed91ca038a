#include "dispatcher/node/service_keeper.h"
#include "common/fd.h"
#include "common/signals.h"
#include "common/unit.h"
#include "dispatcher/node/service_dir.h"
#include "dispatcher/node/service_log.h"
#include "dispatcher/wire/ssh_says.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull
#define HOST_BYTES 256

struct keeper {
    const json_t *request;
    const char *path;
    struct service_log log;
    int lock_fd, told_fd;
    struct loop *loop;
    struct signals signals;
    struct unit unit;        /* the program */
    struct loop_watch out;   /* what it prints; its descriptor is owned */
    int out_fd;              /* the other end, for it */
    struct loop_timer timer; /* for it to end */
    bool ready;              /* this one */
    bool ending;             /* it was asked to */
    bool over;
    struct service_answer info; /* as others see it */
};

void service_digest(const json_t *request, const char *version, char digest[SERVICE_DIGEST_BYTES])
{
    char *text = json_dumps(request, JSON_COMPACT | JSON_SORT_KEYS);
    unsigned char hash[SERVICE_DIGEST_BYTES / 2];
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    crypto_generichash_update(&state, (const unsigned char *)version, strlen(version) + 1);
    if (text) {
        crypto_generichash_update(&state, (const unsigned char *)text, strlen(text));
        sodium_memzero(text, strlen(text));
    }
    crypto_generichash_final(&state, hash, sizeof(hash));
    sodium_bin2hex(digest, SERVICE_DIGEST_BYTES, hash, sizeof(hash));
    free(text);
}

/* --- what others can see of it --- */

static void tell(struct keeper *k, char first, const char *text)
{
    if (k->told_fd < 0)
        return;
    dprintf(k->told_fd, "%c%s", first, text);
    close(k->told_fd);
    k->told_fd = -1;
}

static void set_state(struct keeper *k, enum service_state state, const char *why)
{
    char host[HOST_BYTES] = "", digest[SERVICE_DIGEST_BYTES];
    struct cw_err err = {0};
    json_t *info;
    char *text;

    k->info.state = state;
    service_text_copy(k->info.why, why);
    gethostname(host, sizeof(host) - 1);
    service_digest(k->request, CAUSEWAY_VERSION, digest);
    info = service_answer_put(&k->info);
    json_object_update_new(info, json_pack("{s:s, s:s}", "host", host, "digest", digest));
    text = json_dumps(info, JSON_COMPACT);
    if (!text || service_dir_write(k->path, "info", text, &err) < 0)
        service_log_say(&k->log, "causeway: %s", text ? err.text : "no memory");
    free(text);
    json_decref(info);
}

/* --- the program --- */

static int write_files(const struct keeper *k, struct cw_err *err)
{
    json_t *files = json_object_get(k->request, "files");
    const char *name;
    json_t *text;

    json_object_foreach(files, name, text)
    {
        if (service_dir_write(k->path, name, json_string_value(text), err) < 0)
            return err->code;
    }
    return CW_OK;
}

static void set_environment(const json_t *request)
{
    json_t *env = json_object_get(request, "env");
    const char *name;
    json_t *value;

    json_object_foreach(env, name, value)
    {
        setenv(name, json_string_value(value), 1);
    }
}

/* It gets what it needs, and no more: its lock is the keeper's. */
static int make_command(void *ctx, struct command *command, struct cw_err *err)
{
    struct keeper *k = ctx;
    const json_t *argv = json_object_get(k->request, "argv");

    (void)err;
    command->out_fd = k->out_fd;
    command->death = SIGKILL;
    command->count = 1; /* the words are the request's */
    command->words[0] = k->unit.name;
    if (strcmp(k->unit.name, "causeway") != 0)
        command->program = k->unit.name;
    for (size_t i = 0; i < json_array_size(argv); i++)
        command_word(command, json_string_value(json_array_get(argv, i)));
    return CW_OK;
}

static void on_started(void *ctx, pid_t pid)
{
    struct keeper *k = ctx;

    (void)pid;
    k->ready = false;
}

static void on_listens(void *ctx)
{
    struct keeper *k = ctx;

    k->ready = true;
    set_state(k, SERVICE_RUNS, "");
    tell(k, SERVICE_SAYS_READY, "");
}

/* --- what it prints --- */

/* Only what ssh -v says tells that it has forwarded a port. */
static bool wanted(void *ctx, const char *line)
{
    struct keeper *k = ctx;
    enum ssh_said said = SSH_SAID_OTHER;

    if (k->unit.silent)
        said = ssh_says(line);
    if (said == SSH_SAID_FORWARD && !k->ready && !k->ending)
        unit_listens(&k->unit);
    return said == SSH_SAID_OTHER || said == SSH_SAID_LOGIN;
}

static void read_output(void *ctx)
{
    struct keeper *k = ctx;
    char bytes[4096];
    ssize_t n;

    while ((n = read(k->out.fd, bytes, sizeof(bytes))) > 0)
        service_log_take(&k->log, bytes, (size_t)n, wanted, k);
}

/* --- its end --- */

static void describe_end(struct keeper *k, int status, const char *said,
                         char why[SERVICE_TEXT_MAX + 1])
{
    char how[64], all[SERVICE_LOG_LINE_MAX + 80];

    if (!said[0])
        said = k->log.last;
    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "it was killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof(how), "it ended with code %d", WEXITSTATUS(status));
    snprintf(all, sizeof(all), "%s%s%.1900s", how, said[0] ? ": " : "", said);
    service_text_copy(why, all);
    k->log.last[0] = '\0';
}

static void on_ended(void *ctx, int status, const char *said)
{
    char why[SERVICE_TEXT_MAX + 1];
    struct keeper *k = ctx;

    describe_end(k, status, said, why);
    service_log_say(&k->log, "causeway: %s; it is started again", why);
    set_state(k, SERVICE_WAITS, why);
    tell(k, SERVICE_SAYS_NOT, why);
}

static void on_failed(void *ctx, int status, const struct cw_err *err)
{
    char why[SERVICE_TEXT_MAX + 1];
    struct keeper *k = ctx;

    (void)status;
    if (k->unit.status == UNIT_NO_STATUS)
        service_text_copy(why, err->text);
    else
        describe_end(k, k->unit.status, k->unit.why, why);
    service_log_say(&k->log, "causeway: %s", why);
    set_state(k, SERVICE_FAILED, why);
    k->over = true;
}

static const struct unit_ops unit_ops = {make_command, on_started, on_listens,
                                         on_ended,     on_failed,  NULL};

/* --- what happens --- */

static void on_time(void *ctx)
{
    struct keeper *k = ctx;

    service_log_say(&k->log, "causeway: it did not end in time, and is killed");
    unit_kill(&k->unit);
}

static void end_program(struct keeper *k)
{
    k->ending = true;
    unit_end(&k->unit, SIGTERM);
    k->over = k->unit.pid == 0;
    loop_timer_set(&k->timer, loop_now_ns(k->loop) + SERVICE_TERM_MS * NS_IN_MS);
}

static void on_signal(void *ctx, int number)
{
    struct keeper *k = ctx;
    int status;

    if (number != SIGCHLD && !k->ending)
        end_program(k);
    if (k->over || k->unit.pid == 0 || waitpid(k->unit.pid, &status, WNOHANG) != k->unit.pid)
        return;
    read_output(k);
    k->over = k->ending;
    if (k->ending)
        k->unit.pid = 0;
    else
        unit_ended(&k->unit, status);
}

/* --- its life --- */

/* What the program prints, each time that it is started, comes through one pipe. */
static int open_loop(struct keeper *k, struct cw_err *err)
{
    int out[2];

    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    k->loop = loop_new(err);
    if (!k->loop || signals_open(&k->signals, k->loop, on_signal, k, err) < 0)
        return err->code;
    loop_timer_add(k->loop, &k->timer, on_time, k);
    if (pipe2(out, O_CLOEXEC) < 0)
        return cw_err_set(err, CW_ESYS, "pipe: %s", strerror(errno));
    k->out_fd = out[1];
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    if (loop_watch(k->loop, &k->out, out[0], EPOLLIN, read_output, k) == 0)
        return CW_OK;
    close(out[0]);
    return cw_err_set(err, CW_ESYS, "watching a pipe: %s", strerror(errno));
}

/* Not of the session and the terminal that it was started from; where it is now, its directory. */
static int detach(const struct keeper *k, struct cw_err *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0 || chdir(k->path) < 0)
        return cw_err_set(err, CW_ESYS, "%s: %s", k->path, strerror(errno));
    close(null);
    return CW_OK;
}

static int begin(struct keeper *k, struct cw_err *err)
{
    k->lock_fd = service_dir_lock(k->path, err);
    if (k->lock_fd < 0 || service_log_open(&k->log, k->path, err) < 0 || detach(k, err) < 0 ||
        open_loop(k, err) < 0 || write_files(k, err) < 0)
        return err->code;
    set_environment(k->request);
    set_state(k, SERVICE_WAITS, "it is not ready yet");
    k->unit = (struct unit){.loop = k->loop,
                            .ops = &unit_ops,
                            .ctx = k,
                            .name = service_text(k->request, "program"),
                            .always = json_is_true(json_object_get(k->request, "again")),
                            .silent = strcmp(service_text(k->request, "ready"), "forward") == 0,
                            .ready_ns = SERVICE_READY_MS * NS_IN_MS};
    unit_start(&k->unit);
    return CW_OK;
}

static void end(struct keeper *k)
{
    unit_end(&k->unit, SIGKILL);
    if (k->loop) {
        loop_close(k->loop, &k->out);
        loop_timer_remove(&k->timer);
        signals_close(&k->signals);
    }
    loop_free(k->loop);
    cw_close(&k->out_fd);
    service_log_close(&k->log);
    if (k->ending)
        service_dir_remove(k->path);
    cw_close(&k->lock_fd); /* before anybody hears of the end, and looks */
    tell(k, SERVICE_SAYS_NOT, k->info.why);
}

static int keep(const json_t *request, const char *path)
{
    struct keeper k = {.request = request,
                       .path = path,
                       .told_fd = SERVICE_KEEPER_TOLD_FD,
                       .log.fd = -1,
                       .lock_fd = -1,
                       .out.fd = -1,
                       .out_fd = -1,
                       .info = {.since = (uint64_t)time(NULL), .version = CAUSEWAY_VERSION}};
    struct cw_err err = {0};

    snprintf(k.info.address, sizeof(k.info.address), "%s", service_text(request, "address"));

    prctl(PR_SET_NAME, "causeway-kept");
    if (begin(&k, &err) < 0)
        service_text_copy(k.info.why, err.text);
    else
        while (!k.over)
            loop_turn(k.loop, LOOP_NEVER);
    end(&k);
    return k.ending ? 0 : 1;
}

int service_keeper_run(const char *path)
{
    json_t *request = json_loadfd(SERVICE_KEEPER_REQUEST_FD, JSON_REJECT_DUPLICATES, NULL);
    int code;

    close(SERVICE_KEEPER_REQUEST_FD);
    if (!request || fcntl(SERVICE_KEEPER_TOLD_FD, F_SETFD, FD_CLOEXEC) < 0)
        return 2;
    code = keep(request, path);
    json_decref(request);
    return code;
}
