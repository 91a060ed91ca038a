#include "dispatcher/node/rank_child.h"
#include "common/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same numbers in every incarnation, out of the way of a shell's redirections where the
 * descriptor limit allows it. */
#define NUMBERS_FROM 100
#define IMAGE_AT 3 /* from there */
#define CHANNEL_AT 4
#define CHANNEL_FILE_AT 5
#define DESCRIPTORS_MIN 32 /* a lower limit leaves a process no room */

extern char **environ;

/* --- before fork --- */

static size_t name_size(const char *setting)
{
    return strcspn(setting, "=") + 1;
}

static int find(char *const *env, const char *setting)
{
    int at = 0;

    while (env[at] && strncmp(env[at], setting, name_size(setting)) != 0)
        at++;
    return at;
}

/* `env` has room for one more. */
static void set(char **env, const char *setting)
{
    int at = find(env, setting);

    if (!env[at])
        env[at + 1] = NULL;
    env[at] = (char *)setting;
}

static void unset(char **env, const char *setting)
{
    for (int at = find(env, setting); env[at]; at++)
        env[at] = env[at + 1];
}

static void set_all(char **env, const char *const *settings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        set(env, settings[i]);
}

__attribute__((format(printf, 2, 3))) static bool set_own(struct rank_child *child, const char *fmt,
                                                          ...)
{
    char *text;
    va_list ap;
    int size;

    va_start(ap, fmt);
    size = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (size < 0)
        return false;
    child->own[child->own_count++] = text;
    set(child->env, text);
    return true;
}

/* The bytes of a list of libraries that must stand first: AddressSanitizer ends a process in which
 * anything comes before it. */
static int must_be_first(const char *list)
{
    int size = (int)strcspn(list, ": ");
    int name = size;

    while (name > 0 && list[name - 1] != '/')
        name--;
    return strncmp(list + name, "libasan.so", 10) == 0 ||
                   strncmp(list + name, "libclang_rt.asan", 16) == 0
               ? size
               : 0;
}

static bool set_preload(struct rank_child *child)
{
    int at = find(child->env, "LD_PRELOAD=");
    const char *others = child->env[at] ? child->env[at] + strlen("LD_PRELOAD=") : "";
    int first = must_be_first(others);
    const char *rest = others + first + (others[first] != '\0' && first > 0);

    return set_own(child, "LD_PRELOAD=%.*s%s%s%s%s", first, others, first ? ":" : "",
                   child->program->device_path, *rest ? ":" : "", rest);
}

/* The child's number for this descriptor; -1: it is none. */
static int number_of(const struct rank_child *child, int fd, int at)
{
    return fd >= 0 ? child->base + at : -1;
}

/* Hydra, Slurm and others must not reach MPICH in the process: its PMI is ours. */
static bool make_environment(struct rank_child *child, const struct cw_setup *setup)
{
    static const char *const foreign[] = {"PMI_PORT=", "PMI_ID=", "PMI_SPAWNED=", "PMIX_RANK=",
                                          /* of a job that this one is started in */
                                          CW_SITES_ENV "="};
    static const char *const defaults[] = {
        /* one plain machine for all: looking at the real one takes time and differs between hosts
         */
        "HWLOC_SYNTHETIC=node:1 core:1 pu:1",
        /* UCX is still loaded, and would print what the program did not when it crashes */
        "UCX_HANDLE_ERRORS=none",
        /* ... and would catch SIGHUP, by which a program may be told to end */
        "UCX_DEBUG_SIGNO=0",
        /* ... and would start a thread before main(), so that each rank seemed to compute by
           threads */
        "UCX_VFS_ENABLE=n"};
    const struct launch_program *program = child->program;
    size_t count = 0;

    while (environ[count])
        count++;
    child->env = calloc(count + program->env_count + program->more_count + 16, sizeof(char *));
    if (!child->env)
        return false;
    memcpy(child->env, environ, count * sizeof(char *));
    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
        unset(child->env, foreign[i]);
    set_all(child->env, program->env, program->env_count);
    set_all(child->env, program->more, program->more_count);
    for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
        if (!child->env[find(child->env, defaults[i])])
            set(child->env, defaults[i]);
    /* nor may it patch mmap(), shmat() and others, ours among them */
    set(child->env, "UCX_MEM_EVENTS=n");
    return set_own(child, "PMI_FD=%d", child->base) &&
           set_own(child, "PMI_RANK=%u", setup->process.rank) &&
           set_own(child, "PMI_SIZE=%u", setup->ranks) &&
           set_own(child, "MPI_LOCALRANKID=%u", setup->local_rank) &&
           set_own(child, "MPI_LOCALNRANKS=%u", setup->local_ranks) &&
           set_own(child, CW_SETUP_ENV "=%d", child->base + 1) &&
           (child->channel.memory < 0 ||
            set_own(child, CW_CHANNEL_ENV "=%d,%d",
                    number_of(child, child->channel.memory, CHANNEL_AT),
                    number_of(child, child->channel.file, CHANNEL_FILE_AT))) &&
           set_own(child, CW_INSIDE_ENV "=0") && set_preload(child);
}

/* causeway-restore IMAGE_FD CONTROL_FD PMI_FD CHANNEL_FD CHANNEL_FILE_FD */
static void make_arguments(struct rank_child *child)
{
    const int fds[] = {child->base + IMAGE_AT, child->base + 1, child->base,
                       number_of(child, child->channel.memory, CHANNEL_AT),
                       number_of(child, child->channel.file, CHANNEL_FILE_AT)};

    child->restore_argv[0] = (char *)child->program->restore_path;
    for (int i = 0; i < 5; i++) {
        snprintf(child->numbers[i], sizeof(child->numbers[i]), "%d", fds[i]);
        child->restore_argv[i + 1] = child->numbers[i];
    }
}

int rank_child_prepare(struct rank_child *child, const struct launch_program *program,
                       const struct cw_setup *setup, int image_fd,
                       const struct channel_fds *channel)
{
    struct rlimit limit = {.rlim_cur = 2 * NUMBERS_FROM};

    *child = (struct rank_child){
        .program = program, .stdin_fd = -1, .image_fd = image_fd, .channel = *channel};
    getrlimit(RLIMIT_NOFILE, &limit);
    child->base = limit.rlim_cur < 2 * NUMBERS_FROM ? (int)limit.rlim_cur / 2 : NUMBERS_FROM;
    errno = EMFILE;
    if (limit.rlim_cur < DESCRIPTORS_MIN)
        return -1;
    make_arguments(child);
    errno = ENOMEM;
    return make_environment(child, setup) ? 0 : -1;
}

void rank_child_forget(struct rank_child *child)
{
    for (int i = 0; i < child->own_count; i++)
        free(child->own[i]);
    free(child->env);
    child->env = NULL;
    child->own_count = 0;
}

/* --- in the new process --- */

static void place(int fd, int number)
{
    if (dup2(fd, number) < 0)
        _exit(126);
}

/* Nothing, where there is none. */
static void place_if(int fd, int number)
{
    if (fd >= 0)
        place(fd, number);
    else
        close(number);
}

/* A duplicate above all numbers that are placed; -1 where there is none. */
static int move(const struct rank_child *child, int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, child->base + CHANNEL_FILE_AT + 1);
}

/* Moved out of the way first, so that no placement overwrites what another one still needs. */
static void place_all(const struct rank_child *child)
{
    int moved[RANK_CHILD_ENDS];
    int input = move(child, child->stdin_fd >= 0 ? child->stdin_fd : open("/dev/null", O_RDONLY));
    int image = move(child, child->image_fd);
    int memory = move(child, child->channel.memory);
    int file = move(child, child->channel.file);

    for (int i = 0; i < RANK_CHILD_ENDS; i++)
        moved[i] = move(child, child->ends[i]);
    place(input, STDIN_FILENO);
    place(moved[LAUNCH_STDOUT], STDOUT_FILENO);
    place(moved[LAUNCH_STDERR], STDERR_FILENO);
    place(moved[LAUNCH_PMI], child->base);
    place(moved[LAUNCH_CONTROL], child->base + 1);
    place(moved[RANK_CHILD_STATUS], child->base + 2);
    fcntl(child->base + 2, F_SETFD, FD_CLOEXEC);
    place_if(image, child->base + IMAGE_AT);
    place_if(memory, child->base + CHANNEL_AT);
    place_if(file, child->base + CHANNEL_FILE_AT);
    /* what a shell had open is not there in a later incarnation's number either */
    closefrom(child->base + CHANNEL_FILE_AT + 1);
    for (int fd = STDERR_FILENO + 1; fd < child->base; fd++)
        close(fd);
}

/* errno says why. The launcher reads it from the other end. */
static void fail(int fd, int doing)
{
    struct rank_child_failure failure = {.doing = doing, .error = errno};

    if (write(fd, &failure, sizeof(failure)) < 0)
        _exit(126);
    _exit(127);
}

/* As they were before us: what a user ignores (nohup) is ignored here too. The C library's own
 * signals, which posix_spawn(3) leaves ignored, signal(2) does not take. */
static void default_signals(void)
{
    static const struct {
        void *handler;
        unsigned long flags, restorer, mask;
    } standard;
    static const int kept[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t none;
    sigset_t wanted;

    sigemptyset(&wanted);
    cw_signals_add(&wanted, kept, sizeof(kept) / sizeof(*kept));
    for (int s = 1; s < NSIG; s++)
        syscall(SYS_rt_sigaction, s, &standard, NULL, sizeof(standard.mask));
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        if (!sigismember(&wanted, kept[i]))
            signal(kept[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A host's ranks make files, and share its processors, as those of the launching machine would. A
 * niceness that is lower than the host's is not to be had. */
static void take_manner(const struct launch_program *program)
{
    umask((mode_t)program->umask);
    if (getpriority(PRIO_PROCESS, 0) < program->niceness)
        setpriority(PRIO_PROCESS, 0, program->niceness);
}

void rank_child_become(void *ctx)
{
    const struct rank_child *child = ctx;
    const struct launch_program *program = child->program;

    place_all(child);
    default_signals();
    take_manner(program);
    /* design rule: every incarnation has the same addresses, because MPICH sends addresses of its
     * requests in active messages and gets them back */
    personality((unsigned long)personality(0xffffffff) | ADDR_NO_RANDOMIZE);
    if (program->wdir && chdir(program->wdir) < 0)
        fail(child->base + 2, RANK_CHILD_WDIR);
    if (child->image_fd >= 0) {
        execve(program->restore_path, child->restore_argv, child->env);
        fail(child->base + 2, RANK_CHILD_RESTORE);
    }
    execve(program->path, program->argv, child->env);
    fail(child->base + 2, RANK_CHILD_EXEC);
}

void rank_child_no_fork(void *ctx)
{
    const struct rank_child *child = ctx;

    fail(child->ends[RANK_CHILD_STATUS], RANK_CHILD_FORK);
}

int rank_child_explain(const struct rank_child_failure *failure,
                       const struct launch_program *program, struct cw_err *err)
{
    if (failure->doing == RANK_CHILD_WDIR)
        return cw_err_set(err, CW_ENOTFOUND, "working directory %.200s: %s", program->wdir,
                          strerror(failure->error));
    if (failure->doing == RANK_CHILD_RESTORE)
        return cw_err_set(err, CW_ESYS,
                          "the restorer %.300s: %s; the installation is incomplete: "
                          "run make and make install",
                          program->restore_path, strerror(failure->error));
    if (failure->doing == RANK_CHILD_FORK)
        return cw_err_set(err, CW_ESYS, "fork: %s", strerror(failure->error));
    return cw_err_set(
        err, failure->error == ENOENT || failure->error == ENOTDIR ? CW_ENOTFOUND : CW_EINVAL,
        "exec: %s", strerror(failure->error));
}
