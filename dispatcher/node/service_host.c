#include "dispatcher/node/service_host.h"
#include "common/fd.h"
#include "dispatcher/node/service_dir.h"
#include "dispatcher/node/service_keeper.h"
#include "dispatcher/node/service_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOST_BYTES 256

__attribute__((format(printf, 2, 3))) static void note(struct service_answer *a, const char *fmt,
                                                       ...)
{
    char text[2 * SERVICE_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    service_text_copy(a->note, text);
}

/* --- how it stands --- */

/* What is known of it, in a directory that may be shared by several hosts. */
static void look(const char *path, struct service_answer *a)
{
    json_t *info = service_dir_info(path);
    pid_t holder = service_dir_holder(path);
    struct cw_err none;

    service_answer_get(a, info, &none);
    json_decref(info);
    if (access(path, F_OK) < 0) {
        *a = (struct service_answer){.well = true};
        return;
    }
    a->well = true;
    a->pid = (uint64_t)holder;
    if (holder > 0 && a->state != SERVICE_WAITS)
        a->state = SERVICE_RUNS;
    if (holder == 0 && a->state != SERVICE_FAILED) {
        a->state = SERVICE_FAILED;
        service_text_copy(a->why, "it was killed");
    }
    if (a->state != SERVICE_RUNS)
        service_log_tail(path, a);
}

/* A home directory may be that of several hosts; locks and numbers of processes are not. Returns
 * false, and says so, if the service is another host's. */
static bool is_of_this_host(const json_t *info, struct service_answer *a)
{
    const char *other = service_text(info, "host");
    char host[HOST_BYTES] = "";

    gethostname(host, sizeof(host) - 1);
    if (!other || strcmp(other, host) == 0)
        return true;
    note(a,
         "it was started on %s, which has the same home directory as %s; "
         "end it there first: the grid file may have named another host then",
         other, host);
    return false;
}

/* --- starting --- */

/* In a child: a program of its own, so that who ends nodes by their names does not end services. */
static _Noreturn void become_keeper(const char *path, int request, int told)
{
    char *const argv[] = {"causeway", "keep", (char *)path, NULL};
    int fds[] = {fcntl(request, F_DUPFD, 100), fcntl(told, F_DUPFD, 100)};

    if (dup2(fds[0], SERVICE_KEEPER_REQUEST_FD) >= 0 && dup2(fds[1], SERVICE_KEEPER_TOLD_FD) >= 0 &&
        close_range(SERVICE_KEEPER_TOLD_FD + 1, ~0u, 0) == 0)
        execv("/proc/self/exe", argv);
    dprintf(SERVICE_KEEPER_TOLD_FD, "%cstarting its keeper: %s", SERVICE_SAYS_NOT, strerror(errno));
    _exit(1);
}

/* A file in memory, for the request has keys. Returns its descriptor, or -1 with errno. */
static int put_request(const json_t *request)
{
    int fd = memfd_create("causeway-request", MFD_CLOEXEC);

    if (fd >= 0 && (json_dumpfd(request, fd, JSON_COMPACT) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    return fd;
}

/* What it says, until it says no more. */
static size_t hear(int fd, char *text, size_t max)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t size = 0;
    ssize_t n;

    while (size < max && poll(&p, 1, SERVICE_TOLD_MS) == 1 &&
           (n = read(fd, text + size, max - size)) > 0)
        size += (size_t)n;
    text[size] = '\0';
    return size;
}

static void start_keeper(const json_t *request, const char *path, struct service_answer *a)
{
    char said[SERVICE_TEXT_MAX + 2];
    int file = put_request(request);
    int told[2];
    pid_t pid;

    if (file < 0 || pipe2(told, O_CLOEXEC) < 0) {
        note(a, "it cannot be started: %s", strerror(errno));
        cw_close(&file);
        return;
    }
    pid = fork();
    if (pid == 0)
        become_keeper(path, file, told[1]);
    close(file);
    close(told[1]);
    if (pid < 0)
        snprintf(said, sizeof(said), "-fork: %s", strerror(errno));
    else if (hear(told[0], said, SERVICE_TEXT_MAX + 1) == 0)
        strcpy(said, "-it does not say whether it is ready");
    close(told[0]);
    look(path, a);
    a->well = said[0] == SERVICE_SAYS_READY;
    if (a->well)
        note(a, "started");
    else
        note(a, "%s%s", said + 1, a->state == SERVICE_WAITS ? "; it goes on trying" : "");
}

/* It runs already. */
static void compare(const json_t *request, const json_t *info, struct service_answer *a)
{
    char wanted[SERVICE_DIGEST_BYTES];
    const char *digest = service_text(info, "digest");

    service_digest(request, a->version, wanted);
    a->well = false;
    if (strcmp(a->version, CAUSEWAY_VERSION) != 0)
        note(a,
             "it was started by Causeway %s, and here is Causeway %s: end it (causeway down), "
             "and start it again",
             a->version, CAUSEWAY_VERSION);
    else if (!digest || strcmp(digest, wanted) != 0)
        note(a, "it runs with another configuration: the grid file or the key has changed since; "
                "end it (causeway down), and start it again");
    else if (a->state == SERVICE_WAITS)
        note(a, "%s; it goes on trying", a->why);
    else {
        a->well = true;
        note(a, "runs already");
    }
}

/* --- stopping --- */

static bool await_end(const char *path, pid_t pid, uint32_t max_ms)
{
    for (uint32_t ms = 0; ms < max_ms; ms += SERVICE_STEP_MS) {
        if (service_dir_holder(path) != pid)
            return true;
        poll(NULL, 0, SERVICE_STEP_MS);
    }
    return false;
}

/* Without it, its program is killed as well. */
static bool end_keeper(const char *path, pid_t pid)
{
    if (kill(pid, SIGTERM) < 0 || await_end(path, pid, SERVICE_END_MS))
        return true;
    kill(pid, SIGKILL);
    return await_end(path, pid, SERVICE_KILLED_MS);
}

static void stop(const char *path, struct service_answer *a)
{
    bool was_there = a->state != SERVICE_STOPPED;

    if (a->pid > 0 && !end_keeper(path, (pid_t)a->pid)) {
        a->well = false;
        note(a, "process %d does not end, not even by SIGKILL", (int)a->pid);
        return;
    }
    if (service_dir_holder(path) == 0)
        service_dir_remove(path);
    look(path, a);
    a->well = a->state == SERVICE_STOPPED;
    note(a, "%s",
         !a->well    ? "it was started again meanwhile"
         : was_there ? "stopped"
                     : "did not run");
}

void service_carry_out(const json_t *request, struct service_answer *a)
{
    const char *op = service_text(request, "op");
    bool starts = strcmp(op, "start") == 0;
    struct cw_err err = {0};
    char path[PATH_MAX];
    json_t *info = NULL;

    *a = (struct service_answer){.state = SERVICE_FAILED};
    if (service_dir_path(request, path, &err) < 0)
        note(a, "%s", err.text);
    else if (is_of_this_host(info = service_dir_info(path), a)) {
        look(path, a);
        if (starts && a->pid > 0)
            compare(request, info, a);
        else if (starts)
            start_keeper(request, path, a);
        else if (strcmp(op, "stop") == 0)
            stop(path, a);
    }
    json_decref(info);
}
