#include "dispatcher/launch/local.h"
#include "dispatcher/launch/rank_child.h"
#include "dispatcher/launch/watcher.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A process of a rank, and its watcher. */
struct process {
    struct local *of;
    struct process *next; /* of the former ones */
    const struct launch_program *program;
    struct launch_process made; /* its descriptors are -1 once they are handed over */
    bool started;               /* it has become the program, which was told */
    bool former;
    pid_t watcher_pid; /* its parent, our child */
    int kills;
    int watcher_fd;           /* see watcher.h; -1: it is gone */
    struct loop_watch status; /* until it has become the program, or says why it cannot */
    struct loop_watch watch;  /* from then on: of watcher_fd */
};

struct local {
    struct launcher_config config;
    struct process **of_rank; /* NULL: it has none */
    struct process *formers;
};

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

/* --- the life of a process --- */

static void free_process(struct process *p)
{
    struct loop *loop = p->of->config.loop;

    loop_close(loop, &p->status);
    loop_unwatch(loop, &p->watch);
    close_all(&p->watcher_fd, 1);
    close_all(p->made.fd, LAUNCH_STREAMS);
    free(p);
}

static void tell_failed(struct process *p, struct cw_err *err)
{
    struct launcher_config config = p->of->config;
    uint32_t rank = p->made.rank;

    cw_err_wrap(err, "starting rank %u (%s)", rank, p->program->path);
    p->of->of_rank[rank] = NULL;
    free_process(p);
    config.events->failed(config.ctx, rank, err);
}

/* The first message of a process, from before it becomes the program. Where many wait for a
 * processor, its watcher may have given a sign of life before. */
static bool take_pid(struct process *p)
{
    struct watcher_message m;

    while (p->made.pid == 0 && watcher_receive(p->watcher_fd, &m) == 1)
        if (m.kind == WATCHER_STARTED)
            p->made.pid = m.value;
    return p->made.pid > 0;
}

static void read_watcher(void *ctx);

static void tell_started(struct process *p)
{
    struct launcher_config config = p->of->config;
    struct launch_process made = p->made;

    p->started = true;
    loop_close(config.loop, &p->status);
    loop_watch(config.loop, &p->watch, p->watcher_fd, EPOLLIN, read_watcher, p);
    memset(p->made.fd, -1, sizeof(p->made.fd));
    config.events->started(config.ctx, &made);
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
        tell_failed(p, &err);
    } else if (take_pid(p)) {
        tell_started(p);
    } else {
        cw_err_set(&err, CW_ESYS, "the process that was to watch it has ended");
        tell_failed(p, &err);
    }
}

static void end_former(struct process *p)
{
    struct launcher_config config = p->of->config;
    struct process **at = &p->of->formers;
    uint32_t rank = p->made.rank;
    uint32_t incarnation = p->made.incarnation;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    free_process(p);
    config.events->former_ended(config.ctx, rank, incarnation);
}

/* Nothing more comes from its watcher. */
static void end_watch(struct process *p, const struct watcher_message *last)
{
    struct launcher_config config = p->of->config;
    uint32_t rank = p->made.rank;

    loop_unwatch(config.loop, &p->watch);
    close_all(&p->watcher_fd, 1);
    if (last) {
        p->of->of_rank[rank] = NULL;
        free_process(p);
        config.events->ended(config.ctx, rank, last->value);
    } else {
        config.events->lost(config.ctx, rank);
    }
}

static void read_watcher(void *ctx)
{
    struct process *p = ctx;
    const struct launcher_config *config = &p->of->config;
    struct watcher_message m;
    int got;

    while ((got = watcher_receive(p->watcher_fd, &m)) > 0) {
        if (p->former)
            continue;
        if (m.kind == WATCHER_EXITED)
            return end_watch(p, &m);
        if (m.kind == WATCHER_ALIVE)
            config->events->alive(config->ctx, m.rank, m.incarnation);
    }
    if (got < 0 && p->former)
        end_former(p);
    else if (got < 0)
        end_watch(p, NULL);
}

/* --- the launcher --- */

static void *local_open(const struct launcher_config *config, struct cw_err *err)
{
    struct local *l = calloc(1, sizeof(*l));

    if (l)
        l->of_rank = calloc(config->ranks, sizeof(struct process *));
    if (!l || !l->of_rank) {
        free(l);
        cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", config->ranks);
        return NULL;
    }
    l->config = *config;
    return l;
}

/* Without us the watchers end their ranks. */
static void local_close(void *launcher)
{
    struct local *l = launcher;
    struct process *p;

    while ((p = l->formers)) {
        l->formers = p->next;
        free_process(p);
    }
    for (uint32_t rank = 0; rank < l->config.ranks; rank++)
        if (l->of_rank[rank])
            free_process(l->of_rank[rank]);
    free(l->of_rank);
    free(l);
}

static _Noreturn void become_watcher(const struct process *p, int fd, struct rank_child *child)
{
    struct watcher_config config = {.rank = p->made.rank,
                                    .incarnation = p->made.incarnation,
                                    .period_ns = p->of->config.alive_period_ns,
                                    .fd = fd,
                                    .keep_fd = p->of->config.keep_fd,
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
    memcpy(p->made.fd, ours, sizeof(p->made.fd));
    if (err->code == CW_OK && loop_watch(p->of->config.loop, &p->status, ours[RANK_CHILD_STATUS],
                                         EPOLLIN, read_status, p) < 0)
        cw_err_set(err, CW_ESYS, "watching it: %s", strerror(errno));
    if (err->code)
        close_all(&ours[RANK_CHILD_STATUS], 1);
    return err->code;
}

static int local_start(void *launcher, const struct launch_program *program, struct cw_setup *setup,
                       uint32_t host, int stdin_fd, int image_fd, struct cw_err *err)
{
    struct local *l = launcher;
    struct process *p = calloc(1, sizeof(*p));
    struct rank_child child = {0};

    (void)host;
    assert(!l->of_rank[setup->rank]);
    err->code = CW_OK;
    if (!p)
        return cw_err_set(err, CW_ENOMEM, "starting rank %u (%s): no memory", setup->rank,
                          program->path);
    *p = (struct process){.of = l,
                          .program = program,
                          .made = {.rank = setup->rank, .incarnation = setup->incarnation},
                          .watcher_fd = -1,
                          .status.fd = -1,
                          .watch.fd = -1};
    memset(p->made.fd, -1, sizeof(p->made.fd));
    if (rank_child_prepare(&child, program, setup, image_fd) < 0)
        cw_err_set(err, CW_ESYS, "opening its descriptors: %s (raise 'ulimit -n'?)",
                   strerror(errno));
    child.stdin_fd = stdin_fd;
    if (err->code == CW_OK)
        fork_watcher(p, &child, setup, err);
    rank_child_forget(&child);
    if (err->code) {
        free_process(p);
        return cw_err_wrap(err, "starting rank %u (%s)", setup->rank, program->path);
    }
    l->of_rank[setup->rank] = p;
    return CW_OK;
}

static void local_confirm(void *launcher, uint32_t rank)
{
    struct process *p = ((struct local *)launcher)->of_rank[rank];

    if (p && !p->started && take_pid(p))
        tell_started(p);
}

static void local_signal(void *launcher, uint32_t rank, int signal_number)
{
    struct process *p = ((struct local *)launcher)->of_rank[rank];

    if (!p || p->watcher_fd < 0)
        return;
    watcher_signal(p->watcher_fd, signal_number);
    /* a watcher that does not do as it is told takes its rank along */
    if (signal_number == SIGKILL && p->kills++ > 0)
        kill(p->watcher_pid, SIGKILL);
}

static void local_let_go(void *launcher, uint32_t rank, bool end)
{
    struct local *l = launcher;
    struct process *p = l->of_rank[rank];

    if (!p)
        return;
    l->of_rank[rank] = NULL;
    if (end && p->watcher_fd < 0)
        kill(-p->made.pid, SIGKILL);
    if (p->watcher_fd < 0) {
        free_process(p);
        return;
    }
    if (end)
        watcher_signal(p->watcher_fd, SIGKILL);
    p->former = true;
    p->next = l->formers;
    l->formers = p;
}

const struct launcher_ops local_launcher = {.open = local_open,
                                            .close = local_close,
                                            .start = local_start,
                                            .confirm = local_confirm,
                                            .signal = local_signal,
                                            .let_go = local_let_go};
