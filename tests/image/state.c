/* state [NAME...]: sets what the kernel keeps for a process, of each name or of all; prints "kept
 * NAME" or "lost NAME" for each where it goes on from its image, and "not here NAME" for what this
 * kernel, or this user, cannot set. */
#include "tests/image/taker.h"

#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLACK_NS 70000
#define CLASS_BEST_EFFORT (2 << 13)

static int fd_of_signal, fd_of_flock, fd_of_lock;

/* --- each sets, and returns whether it could; or tells whether it is so -------------------------
 */

static bool affinity(bool set)
{
    cpu_set_t one, now;

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    return set ? sched_setaffinity(0, sizeof(one), &one) == 0
               : sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&one, &now);
}

static bool niceness(bool set)
{
    return set ? setpriority(PRIO_PROCESS, 0, 7) == 0 : getpriority(PRIO_PROCESS, 0) == 7;
}

static bool class(bool set)
{
    struct sched_param param = {0};

    return set ? sched_setscheduler(0, SCHED_BATCH, &param) == 0
               : sched_getscheduler(0) == SCHED_BATCH;
}

static bool io_priority(bool set)
{
    return set ? syscall(SYS_ioprio_set, 1, 0, CLASS_BEST_EFFORT | 6) == 0
               : syscall(SYS_ioprio_get, 1, 0) == (CLASS_BEST_EFFORT | 6);
}

static bool timer_slack(bool set)
{
    return set ? prctl(PR_SET_TIMERSLACK, SLACK_NS) == 0 : prctl(PR_GET_TIMERSLACK) == SLACK_NS;
}

static bool memory_nodes(bool set)
{
    unsigned long nodes = 1, now[1024 / 64];
    int mode = 0;

    if (set)
        return syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 64) == 0;
    return syscall(SYS_get_mempolicy, &mode, now, 1024, 0, 0) == 0 && mode == MPOL_BIND;
}

static bool machine_checks(bool set)
{
    return set ? prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0) == 0
               : prctl(PR_MCE_KILL_GET, 0, 0, 0, 0) == PR_MCE_KILL_EARLY;
}

static bool timestamps(bool set)
{
    int now = 0;

    return set ? prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0
               : prctl(PR_GET_TSC, &now) == 0 && now == PR_TSC_SIGSEGV;
}

static bool speculation(bool set)
{
    return set ? prctl(PR_SET_SPECULATION_CTRL, 0, PR_SPEC_DISABLE, 0, 0) == 0
               : (prctl(PR_GET_SPECULATION_CTRL, 0, 0, 0, 0) & PR_SPEC_DISABLE) != 0;
}

static bool huge_pages(bool set)
{
    return set ? prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0
               : prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
}

static bool subreaper(bool set)
{
    int now = 0;

    return set ? prctl(PR_SET_CHILD_SUBREAPER, 1) == 0
               : prctl(PR_GET_CHILD_SUBREAPER, &now) == 0 && now == 1;
}

static bool parent_signal(bool set)
{
    int now = 0;

    return set ? prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0
               : prctl(PR_GET_PDEATHSIG, &now) == 0 && now == SIGUSR1;
}

static bool io_flusher(bool set)
{
    return set ? prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0
               : prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) == 1;
}

static bool memory_merge(bool set)
{
    return set ? prctl(67, 1, 0, 0, 0) == 0 : prctl(68, 0, 0, 0, 0) == 1;
}

static bool write_execute(bool set)
{
    return set ? prctl(65, 1, 0, 0, 0) == 0 : prctl(66, 0, 0, 0, 0) == 1;
}

static bool dumpable(bool set)
{
    return set ? prctl(PR_SET_DUMPABLE, 0) == 0 : prctl(PR_GET_DUMPABLE) == 0;
}

static bool persona(bool set)
{
    int now = personality(0xffffffff);

    return set ? personality((unsigned)now | STICKY_TIMEOUTS) >= 0 : (now & STICKY_TIMEOUTS) != 0;
}

static bool file_has(const char *path, bool set, const char *text)
{
    char now[40] = "";
    int fd = open(path, set ? O_WRONLY : O_RDONLY);
    ssize_t n = fd < 0 ? -1 : set ? write(fd, text, strlen(text)) : read(fd, now, sizeof(now) - 1);

    if (fd >= 0)
        close(fd);
    return n > 0 && (set || strncmp(now, text, strlen(text)) == 0);
}

static bool oom_score(bool set)
{
    return file_has("/proc/self/oom_score_adj", set, "300");
}

static bool core_filter(bool set)
{
    return file_has("/proc/self/coredump_filter", set, set ? "0x21" : "00000021");
}

static bool limits(bool set)
{
    struct rlimit limit = {100, 200};

    if (set)
        return setrlimit(RLIMIT_NOFILE, &limit) == 0;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 100 && limit.rlim_max == 200;
}

static bool timers(bool set)
{
    struct itimerval timer = {.it_value.tv_sec = 1000}, now;

    if (set)
        return setitimer(ITIMER_REAL, &timer, NULL) == 0;
    return getitimer(ITIMER_REAL, &now) == 0 && now.it_value.tv_sec > 900;
}

static bool name(bool set)
{
    char now[16] = "";

    return set ? prctl(PR_SET_NAME, "renamed") == 0
               : prctl(PR_GET_NAME, now) == 0 && strcmp(now, "renamed") == 0;
}

static bool no_privileges(bool set)
{
    return set ? prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
               : prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

static bool secure_bits(bool set)
{
    return set ? prctl(PR_SET_SECUREBITS, 0x4) == 0 : prctl(PR_GET_SECUREBITS) == 0x4;
}

static bool bounding_set(bool set)
{
    return set ? prctl(PR_CAPBSET_DROP, 25) == 0 : prctl(PR_CAPBSET_READ, 25) == 0;
}

static bool signal_of_input(bool set)
{
    int fds[2];

    if (set) {
        if (pipe(fds))
            return false;
        fd_of_signal = fds[0];
        return fcntl(fds[0], F_SETSIG, SIGUSR2) == 0 && fcntl(fds[0], F_SETOWN, getpid()) == 0 &&
               signal(SIGUSR2, SIG_IGN) != SIG_ERR && fcntl(fds[0], F_SETFL, O_ASYNC) == 0;
    }
    return fcntl(fd_of_signal, F_GETSIG) == SIGUSR2 && fcntl(fd_of_signal, F_GETOWN) == getpid() &&
           (fcntl(fd_of_signal, F_GETFL) & O_ASYNC);
}

static bool locked_whole(bool set)
{
    bool got;
    int fd;

    if (set)
        return (fd_of_flock = open("flock", O_RDWR | O_CREAT, 0600)) >= 0 &&
               flock(fd_of_flock, LOCK_EX) == 0;
    fd = open("flock", O_RDWR);
    got = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return !got;
}

static bool locked_part(bool set)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 20};
    int status;

    if (set)
        return (fd_of_lock = open("lock", O_RDWR | O_CREAT, 0600)) >= 0 &&
               fcntl(fd_of_lock, F_SETLK, &lock) == 0;
    if (fork() == 0)
        _exit(fcntl(fd_of_lock, F_SETLK, &lock) == 0);
    return wait(&status) > 0 && status == 0;
}

static bool alternate_stack(bool set)
{
    static char bytes[65536];
    stack_t stack = {.ss_sp = bytes, .ss_size = sizeof(bytes)}, now;

    return set ? sigaltstack(&stack, NULL) == 0 : !sigaltstack(NULL, &now) && now.ss_sp == bytes;
}

static bool mask_of_files(bool set)
{
    mode_t now;

    if (set)
        return umask(037) != (mode_t)-1;
    now = umask(022);
    return now == 037;
}

static bool handlers(bool set)
{
    struct sigaction now;

    return set ? signal(SIGHUP, SIG_IGN) != SIG_ERR
               : sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static bool blocked_signals(bool set)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGWINCH);
    if (set)
        return sigprocmask(SIG_BLOCK, &signals, NULL) == 0 && raise(SIGWINCH) == 0;
    return sigpending(&signals) == 0 && sigismember(&signals, SIGWINCH);
}

static const struct {
    const char *name;
    bool (*with)(bool set);
    bool alone; /* it changes what is asked of the others: only by its name */
} all[] = {
    {"affinity", affinity, false},
    {"niceness", niceness, false},
    {"class", class, false},
    {"io_priority", io_priority, false},
    {"timer_slack", timer_slack, false},
    {"memory_nodes", memory_nodes, false},
    {"machine_checks", machine_checks, false},
    {"timestamps", timestamps, true},
    {"speculation", speculation, false},
    {"huge_pages", huge_pages, false},
    {"subreaper", subreaper, false},
    {"parent_signal", parent_signal, false},
    {"io_flusher", io_flusher, false},
    {"memory_merge", memory_merge, false},
    {"write_execute", write_execute, false},
    {"dumpable", dumpable, true},
    {"personality", persona, false},
    {"oom_score", oom_score, false},
    {"core_filter", core_filter, false},
    {"limits", limits, false},
    {"timers", timers, false},
    {"name", name, false},
    {"no_privileges", no_privileges, false},
    {"secure_bits", secure_bits, false},
    {"bounding_set", bounding_set, false},
    {"signal_of_input", signal_of_input, false},
    {"locked_whole", locked_whole, false},
    {"locked_part", locked_part, false},
    {"alternate_stack", alternate_stack, false},
    {"mask_of_files", mask_of_files, false},
    {"handlers", handlers, false},
    {"blocked_signals", blocked_signals, false},
};
#define ALL (sizeof(all) / sizeof(*all))

static bool is_wanted(size_t i, int argc, char **argv)
{
    for (int k = 1; k < argc; k++)
        if (strcmp(argv[k], all[i].name) == 0)
            return true;
    return argc == 1 && !all[i].alone;
}

/* A thread has some of it for itself. */
static pthread_barrier_t meeting;
static bool thread_kept;

static void *with_its_own(void *unused)
{
    bool set =
        setpriority(PRIO_PROCESS, (id_t)gettid(), 9) == 0 && affinity(true) && timer_slack(true);

    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    thread_kept = set && getpriority(PRIO_PROCESS, (id_t)gettid()) == 9 && affinity(false) &&
                  timer_slack(false);
    return unused;
}

int main(int argc, char **argv)
{
    bool set[ALL] = {false};
    pthread_t thread;

    pthread_barrier_init(&meeting, NULL, 2);
    pthread_create(&thread, NULL, with_its_own, NULL);
    pthread_barrier_wait(&meeting);
    for (size_t i = 0; i < ALL; i++)
        set[i] = is_wanted(i, argc, argv) && all[i].with(true);
    if (taker_take() == 0) {
        printf("went on\n");
        return 0;
    }
    pthread_barrier_wait(&meeting);
    pthread_join(thread, NULL);
    printf("%s a_thread\n", thread_kept ? "kept" : "lost");
    for (size_t i = 0; i < ALL; i++)
        if (is_wanted(i, argc, argv))
            printf("%s %s\n",
                   !set[i]              ? "not here"
                   : all[i].with(false) ? "kept"
                                        : "lost",
                   all[i].name);
    printf("ids %u %u %u, groups %d\n", getuid(), geteuid(), getgid(), getgroups(0, NULL));
    return 0;
}
