#include "dispatcher/node/process.h"
#include "dispatcher/node/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the ends of its descriptors --- */

static void close_all(int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static int open_pair(int which, int fds[2])
{
    if (which == LAUNCH_PMI)
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
    if (which == LAUNCH_CONTROL)
        return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds);
    return pipe2(fds, O_CLOEXEC);
}

/* Returns 0, or -1 with errno set and what was opened in the arrays. */
static int open_pairs(int ours[RANK_CHILD_ENDS], int theirs[RANK_CHILD_ENDS], int watcher[2])
{
    int fds[2];

    for (int i = 0; i < RANK_CHILD_ENDS; i++) {
        if (open_pair(i, fds) < 0)
            return -1;
        ours[i] = fds[0];
        theirs[i] = fds[1];
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
    }
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, watcher);
}

/* What a rank has as its standard descriptors it may replace by something else. */
static uint64_t inode_of(int fd)
{
    struct stat s;

    return fd >= 0 && fstat(fd, &s) == 0 ? s.st_ino : 0;
}

/* Over our ends of what the process gets. The keys are wiped. */
static int send_setup(const int ours[RANK_CHILD_ENDS], int stdin_fd, struct cw_setup *setup,
                      struct cw_err *err)
{
    uint8_t record[CW_SETUP_MAX];
    size_t size;
    ssize_t sent;

    setup->input_inode = inode_of(stdin_fd);
    setup->output_inodes[0] = inode_of(ours[LAUNCH_STDOUT]);
    setup->output_inodes[1] = inode_of(ours[LAUNCH_STDERR]);
    size = cw_setup_put(record, setup);
    sent = send(ours[LAUNCH_CONTROL], record, size, MSG_NOSIGNAL);
    sodium_memzero(record, size);
    sodium_memzero(setup->key, sizeof(setup->key));
    sodium_memzero(setup->image_key, sizeof(setup->image_key));
    if (sent != (ssize_t)size)
        return cw_err_set(err, CW_ESYS, "sending the setup: %s", strerror(errno));
    return CW_OK;
}

/* --- its life --- */

void process_init(struct process *p)
{
    *p = (struct process){.watcher_fd = -1, .status.fd = -1, .watch.fd = -1};
    memset(p->fd, -1, sizeof(p->fd));
}

bool process_is_watched(const struct process *p)
{
    return p->watcher_fd >= 0;
}

void process_close(struct process *p)
{
    loop_close(p->loop, &p->status);
    loop_unwatch(p->loop, &p->watch);
    close_all(&p->watcher_fd, 1);
    close_all(p->fd, LAUNCH_STREAMS);
}

static void fail(struct process *p, struct cw_err *err)
{
    cw_err_wrap(err, "starting rank %u (%s)", p->rank, p->program->path);
    process_close(p);
    p->events->failed(p->ctx, err);
}

/* The first message of a process, from before it becomes the program. Where many wait for a
 * processor, its watcher may have given a sign of life before. */
static bool take_pid(struct process *p)
{
    struct watcher_message m;

    while (p->pid == 0 && watcher_receive(p->watcher_fd, &m) == 1)
        if (m.kind == WATCHER_STARTED)
            p->pid = m.value;
    return p->pid > 0;
}

static void read_watcher(void *ctx)
{
    struct process *p = ctx;
    struct watcher_message m;
    int got;

    while ((got = watcher_receive(p->watcher_fd, &m)) > 0 && m.kind != WATCHER_EXITED)
        if (m.kind == WATCHER_ALIVE)
            p->events->alive(p->ctx);
    if (got == 0)
        return;
    process_close(p);
    if (got > 0)
        p->events->ended(p->ctx, m.value);
    else
        p->events->lost(p->ctx);
}

static void read_status(void *ctx)
{
    struct process *p = ctx;
    struct rank_child_failure failure;
    struct cw_err err = {0};
    ssize_t n = read(p->status.fd, &failure, sizeof(failure));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == (ssize_t)sizeof(failure)) {
        rank_child_explain(&failure, p->program, &err);
        fail(p, &err);
    } else if (take_pid(p)) {
        loop_close(p->loop, &p->status);
        loop_watch(p->loop, &p->watch, p->watcher_fd, EPOLLIN, read_watcher, p);
        p->events->started(p->ctx);
        memset(p->fd, -1, sizeof(p->fd));
    } else {
        cw_err_set(&err, CW_ESYS, "the process that was to watch it has ended");
        fail(p, &err);
    }
}

static _Noreturn void become_watcher(const struct process *p, int fd, struct rank_child *child)
{
    struct watcher_config config = {.rank = p->rank,
                                    .incarnation = p->incarnation,
                                    .period_ns = p->alive_period_ns,
                                    .fd = fd,
                                    .keep_fd = p->keep_fd,
                                    .become = rank_child_become,
                                    .no_fork = rank_child_no_fork,
                                    .ctx = child};

    watcher_run(&config);
}

/* The ends that are ours go to `p`, also when it fails. */
static int fork_watcher(struct process *p, struct rank_child *child, struct cw_setup *setup,
                        struct cw_err *err)
{
    int ours[RANK_CHILD_ENDS] = {-1, -1, -1, -1, -1};
    int watcher[2] = {-1, -1};

    for (int i = 0; i < RANK_CHILD_ENDS; i++)
        child->ends[i] = -1;
    if (open_pairs(ours, child->ends, watcher) < 0)
        cw_err_set(err, CW_ESYS, "opening its descriptors: %s (raise 'ulimit -n'?)",
                   strerror(errno));
    else if (send_setup(ours, child->stdin_fd, setup, err) == CW_OK &&
             (p->watcher_pid = _Fork()) < 0)
        cw_err_set(err, CW_ESYS, "fork: %s", strerror(errno));
    if (err->code == CW_OK && p->watcher_pid == 0)
        become_watcher(p, watcher[1], child);
    close_all(child->ends, RANK_CHILD_ENDS);
    close_all(&watcher[1], 1);
    p->watcher_fd = watcher[0];
    memcpy(p->fd, ours, sizeof(p->fd));
    if (err->code == CW_OK &&
        loop_watch(p->loop, &p->status, ours[RANK_CHILD_STATUS], EPOLLIN, read_status, p) < 0)
        cw_err_set(err, CW_ESYS, "watching it: %s", strerror(errno));
    if (err->code)
        close_all(&ours[RANK_CHILD_STATUS], 1);
    return err->code;
}

int process_start(struct process *p, struct cw_setup *setup, int stdin_fd, int image_fd,
                  const struct channel_fds *channel, struct cw_err *err)
{
    struct rank_child child = {0};

    p->rank = setup->process.rank;
    p->incarnation = setup->process.incarnation;
    err->code = CW_OK;
    if (rank_child_prepare(&child, p->program, setup, image_fd, channel) < 0)
        cw_err_set(err, CW_ESYS, "opening its descriptors: %s (raise 'ulimit -n'?)",
                   strerror(errno));
    child.stdin_fd = stdin_fd;
    if (err->code == CW_OK)
        fork_watcher(p, &child, setup, err);
    rank_child_forget(&child);
    if (err->code == CW_OK)
        return CW_OK;
    process_close(p);
    return cw_err_wrap(err, "starting rank %u (%s)", setup->process.rank, p->program->path);
}

void process_signal(struct process *p, int signal_number)
{
    if (p->watcher_fd < 0)
        return;
    watcher_signal(p->watcher_fd, signal_number);
    /* a watcher that does not do as it is told takes its rank along */
    if (signal_number == SIGKILL && p->kills++ > 0)
        kill(p->watcher_pid, SIGKILL);
}

void process_kill(struct process *p)
{
    if (p->pid > 0)
        kill(-p->pid, SIGKILL);
    if (p->watcher_fd >= 0)
        watcher_signal(p->watcher_fd, SIGKILL);
}
