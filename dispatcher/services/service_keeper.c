#include "dispatcher/services/service_keeper.h"
#include "common/clock.h"
#include "dispatcher/services/service_dir.h"
#include "dispatcher/services/service_log.h"
#include "dispatcher/services/ssh_says.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CAUSEWAY_VERSION
#define CAUSEWAY_VERSION "unknown"
#endif

#define NEVER UINT64_MAX
#define NS_IN_MS 1000000ull
#define CHILD_READY 3 /* its descriptor */
#define HOST_BYTES 256

struct keeper {
    const json_t *request;
    const char *path;
    struct service_log log;
    int lock_fd, told_fd;
    int signals; /* a signalfd */
    sigset_t before;
    time_t since;
    /* the program */
    pid_t pid;         /* 0: it does not run */
    int out_fd;        /* what it prints */
    int ready_fd;      /* -1, or becomes readable when it is ready, or has ended */
    bool ready;        /* this one */
    uint64_t began_ns; /* when it was ready */
    uint32_t pause_ms;
    uint64_t due_ns; /* of its next start, or by which it has to be ready or ended; NEVER */
    bool ending;     /* it was asked to */
    bool over;
    enum service_state state;
    char why[SERVICE_TEXT_MAX + 1];
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

    k->state = state;
    service_text_copy(k->why, why);
    gethostname(host, sizeof(host) - 1);
    service_digest(k->request, CAUSEWAY_VERSION, digest);
    info =
        json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s}", "state", service_state_words[state],
                  "since", (json_int_t)k->since, "why", k->why, "version", CAUSEWAY_VERSION, "host",
                  host, "address", service_text(k->request, "address"), "digest", digest);
    text = json_dumps(info, JSON_COMPACT);
    if (!text || service_dir_write(k->path, "info", text, &err) < 0)
        service_log_say(&k->log, "causeway service: %s", text ? err.text : "no memory");
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

/* The program gets what it needs, and no more: its lock is the keeper's. */
static _Noreturn void become_program(const struct keeper *k, int out_fd, int ready_fd, pid_t parent)
{
    const json_t *argv = json_object_get(k->request, "argv");
    const char *program = service_text(k->request, "program");
    char *words[SERVICE_WORDS_MAX + 4] = {(char *)program};
    size_t count = 1;

    for (size_t i = 0; i < json_array_size(argv); i++)
        words[count++] = (char *)json_string_value(json_array_get(argv, i));
    if (ready_fd >= 0) {
        words[count++] = "--ready-fd";
        words[count++] = "3";
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &k->before, NULL);
    set_environment(k->request);
    if (getppid() == parent && dup2(out_fd, STDOUT_FILENO) >= 0 &&
        dup2(out_fd, STDERR_FILENO) >= 0 && (ready_fd < 0 || dup2(ready_fd, CHILD_READY) >= 0)) {
        if (ready_fd == CHILD_READY)
            fcntl(CHILD_READY, F_SETFD, 0);
        if (strcmp(program, "causeway") == 0)
            execv("/proc/self/exe", words);
        else
            execvp(program, words);
        dprintf(STDERR_FILENO, "causeway service: %s cannot be executed: %s\n", program,
                strerror(errno));
    }
    _exit(127);
}

static void close_both(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int start(struct keeper *k, struct cw_err *err)
{
    bool descriptor = strcmp(service_text(k->request, "ready"), "descriptor") == 0;
    int out[2] = {-1, -1}, ready[2] = {-1, -1};
    pid_t parent = getpid();
    pid_t pid = -1;

    if (pipe2(out, O_CLOEXEC) == 0 && (!descriptor || pipe2(ready, O_CLOEXEC) == 0))
        pid = fork();
    if (pid == 0)
        become_program(k, out[1], ready[1], parent);
    if (pid < 0) {
        cw_err_set(err, CW_ESYS, "starting it: %s", strerror(errno));
        close_both(out);
        close_both(ready);
        return err->code;
    }
    close(out[1]);
    if (ready[1] >= 0)
        close(ready[1]);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    k->pid = pid;
    k->out_fd = out[0];
    k->ready_fd = ready[0];
    k->ready = false;
    k->due_ns = cw_clock_ns() + SERVICE_READY_MS * NS_IN_MS;
    return CW_OK;
}

static void on_ready(struct keeper *k)
{
    k->ready = true;
    k->began_ns = cw_clock_ns();
    if (!k->ending)
        k->due_ns = NEVER;
    set_state(k, SERVICE_RUNS, "");
    tell(k, SERVICE_SAYS_READY, "");
}

/* --- what it prints --- */

/* Only what ssh -v says tells that it has forwarded a port. */
static bool wanted(void *ctx, const char *line)
{
    struct keeper *k = ctx;
    enum ssh_said said = SSH_SAID_OTHER;

    if (strcmp(service_text(k->request, "ready"), "forward") == 0)
        said = ssh_says(line);
    if (said == SSH_SAID_FORWARD && !k->ready)
        on_ready(k);
    return said == SSH_SAID_OTHER || said == SSH_SAID_LOGIN;
}

static void read_output(struct keeper *k)
{
    char bytes[4096];
    ssize_t n;

    while (k->out_fd >= 0 && (n = read(k->out_fd, bytes, sizeof(bytes))) != 0) {
        if (n < 0)
            return;
        service_log_take(&k->log, bytes, (size_t)n, wanted, k);
    }
}

static void close_program(struct keeper *k)
{
    if (k->out_fd >= 0)
        close(k->out_fd);
    if (k->ready_fd >= 0)
        close(k->ready_fd);
    k->out_fd = k->ready_fd = -1;
}

/* --- its end --- */

static void describe_end(const struct keeper *k, int status, char why[SERVICE_TEXT_MAX + 1])
{
    char how[64], all[SERVICE_LOG_LINE_MAX + 80];

    if (WIFSIGNALED(status))
        snprintf(how, sizeof(how), "it was killed by signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof(how), "it ended with code %d", WEXITSTATUS(status));
    snprintf(all, sizeof(all), "%s%s%s", how, k->log.last[0] ? ": " : "", k->log.last);
    service_text_copy(why, all);
}

static void start_later(struct keeper *k, const char *why)
{
    uint64_t now_ns = cw_clock_ns();

    if (k->ready && now_ns - k->began_ns >= SERVICE_PAUSE_MS_MAX * NS_IN_MS)
        k->pause_ms = SERVICE_PAUSE_MS_MIN;
    service_log_say(&k->log, "causeway service: %s; it is started again in %u ms", why,
                    k->pause_ms);
    k->due_ns = now_ns + k->pause_ms * NS_IN_MS;
    k->pause_ms = k->pause_ms * 2 < SERVICE_PAUSE_MS_MAX ? k->pause_ms * 2 : SERVICE_PAUSE_MS_MAX;
    set_state(k, SERVICE_WAITS, why);
    tell(k, SERVICE_SAYS_NOT, why);
}

static void on_end(struct keeper *k, int status)
{
    char why[SERVICE_TEXT_MAX + 1];

    read_output(k);
    close_program(k);
    k->pid = 0;
    k->due_ns = NEVER;
    describe_end(k, status, why);
    if (k->ending) {
        k->over = true;
    } else if (json_is_true(json_object_get(k->request, "again"))) {
        start_later(k, why);
    } else {
        service_log_say(&k->log, "causeway service: %s", why);
        set_state(k, SERVICE_FAILED, why);
        k->over = true;
    }
    k->log.last[0] = '\0';
}

/* --- what happens --- */

static void on_timer(struct keeper *k)
{
    struct cw_err err = {0};

    k->due_ns = NEVER;
    if (k->pid == 0) {
        if (start(k, &err) < 0)
            start_later(k, err.text);
        return;
    }
    service_log_say(&k->log, "causeway service: it %s in time, and is killed",
                    k->ending ? "did not end" : "was not ready");
    kill(k->pid, SIGKILL);
}

static void end_program(struct keeper *k)
{
    k->ending = true;
    k->over = k->pid == 0;
    if (k->pid == 0)
        return;
    kill(k->pid, SIGTERM);
    k->due_ns = cw_clock_ns() + SERVICE_TERM_MS * NS_IN_MS;
}

static void on_signal(struct keeper *k)
{
    struct signalfd_siginfo info;
    int status;

    while (!k->over && read(k->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGTERM && !k->ending)
            end_program(k);
        else if (k->pid > 0 && waitpid(k->pid, &status, WNOHANG) == k->pid)
            on_end(k, status);
    }
}

static int timeout_ms(const struct keeper *k)
{
    return k->due_ns == NEVER ? -1 : cw_clock_wait_ms(cw_clock_ns(), k->due_ns);
}

/* A line for each place where it listens, and then no more; with nothing at all it ends, and
 * SIGCHLD says so. */
static void look_whether_ready(struct keeper *k)
{
    char bytes[1024];
    ssize_t n = read(k->ready_fd, bytes, sizeof(bytes));

    if (n > 0 && !k->ready)
        on_ready(k);
    if (n > 0)
        return;
    close(k->ready_fd);
    k->ready_fd = -1;
}

/* An output that was closed is not looked at any more. */
static void turn(struct keeper *k)
{
    struct pollfd fds[3] = {{.fd = k->signals, .events = POLLIN},
                            {.fd = k->out_fd, .events = POLLIN},
                            {.fd = k->ready_fd, .events = POLLIN}};

    if (poll(fds, 3, timeout_ms(k)) < 0)
        return;
    if (fds[1].revents)
        read_output(k);
    if ((fds[1].revents & (POLLHUP | POLLIN)) == POLLHUP) {
        close(k->out_fd);
        k->out_fd = -1;
    }
    if (fds[2].revents)
        look_whether_ready(k);
    if (fds[0].revents)
        on_signal(k);
    if (!k->over && k->due_ns != NEVER && cw_clock_ns() >= k->due_ns)
        on_timer(k);
}

/* --- its life --- */

static int open_signals(struct keeper *k, struct cw_err *err)
{
    sigset_t ours;

    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    sigaddset(&ours, SIGTERM);
    sigemptyset(&k->before);
    signal(SIGCHLD, SIG_DFL); /* who starts keepers ignores how they end */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    sigprocmask(SIG_SETMASK, &ours, NULL);
    k->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return k->signals >= 0 ? CW_OK : cw_err_set(err, CW_ESYS, "signalfd: %s", strerror(errno));
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
        open_signals(k, err) < 0 || write_files(k, err) < 0)
        return err->code;
    set_state(k, SERVICE_WAITS, "it is not ready yet");
    return start(k, err);
}

int service_keeper_run(const json_t *request, const char *path, int told_fd)
{
    struct keeper k = {.request = request,
                       .path = path,
                       .told_fd = told_fd,
                       .log.fd = -1,
                       .lock_fd = -1,
                       .signals = -1,
                       .out_fd = -1,
                       .ready_fd = -1,
                       .since = time(NULL),
                       .pause_ms = SERVICE_PAUSE_MS_MIN,
                       .due_ns = NEVER};
    struct cw_err err = {0};

    prctl(PR_SET_NAME, "causeway-kept");
    if (begin(&k, &err) < 0)
        service_text_copy(k.why, err.text);
    else
        while (!k.over)
            turn(&k);
    service_log_close(&k.log);
    if (k.ending)
        service_dir_remove(path);
    if (k.lock_fd >= 0)
        close(k.lock_fd); /* before anybody hears of the end, and looks */
    tell(&k, SERVICE_SAYS_NOT, k.why);
    return k.ending ? 0 : 1;
}
