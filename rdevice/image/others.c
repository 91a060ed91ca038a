#include "rdevice/image/others.h"

#include "rdevice/image/context.h"
#include "rdevice/image/image.h"
#include "rdevice/image/interrupted.h"
#include "rdevice/image/remark.h"
#include "rdevice/image/system.h"
#include "rdevice/image/thread.h"
#include "rdevice/image/traits.h"
#include "rdevice/image/xstate.h"

#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>

#define OTHERS_MAX 256u
#define STOP_NS 100000000ull /* 100 ms until all have stopped */
#define LOOK_NS 1000000u     /* 1 ms between two looks whether one has ended */
#define AGAIN_NS 20000u      /* 20 us until a thread is called again */
#define STATUS_BYTES 4096u
#define STATUS_NAME_MAX 48u
#define VDSO_BYTES 16384u
#define DEPTH_MAX 1000 /* of a lock that is taken again by its owner; more is something else */
#define KIND_RECURSIVE 1

/* libc's own, for setuid() in all threads: the functions with which programs block signals leave it
 * out. What is not meant for this is handed to libc's handler. */
#define STOP_SIGNAL 33

/* As the kernel has it, not libc. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};
#define RESTORER_FLAG 0x04000000ul /* SA_RESTORER */

enum stage {
    STAGE_CALLED = 1, /* the signal is on its way */
    STAGE_AGAIN,      /* it came where the thread cannot stop */
    STAGE_DEFERRED,   /* the thread stands as soon as it can, by image_stand() */
    STAGE_STOPPED,
    STAGE_STRANGE, /* it stands still, and cannot be restored */
    STAGE_ENDED,
};

struct other {
    _Atomic uint32_t stage;
    bool called_twice;
    int32_t tid, now;
    struct thread thread;
    struct interrupted call;
    ucontext_t *frame;
    const char *remark;
    struct cw_err err; /* why the program cannot go on with it */
};

static struct {
    struct other other[OTHERS_MAX];
    uint32_t count;
    _Atomic uint32_t round;    /* of stopping; 0: none yet */
    _Atomic uint32_t released; /* the last round that is over */
    _Atomic uint32_t progress; /* counts what becomes of threads */
    _Atomic uint32_t standing; /* threads that have stopped, and not gone on yet */
    struct kernel_action libcs;
    struct xstate_layout layout;
    uint64_t vdso;
    bool (*unfit)(void);
    bool here; /* restored on the machine of the image */
} all;

/* --- in the other threads -------------------------------------------------------------------- */

static void tell(struct other *other, enum stage stage)
{
    other->stage = stage;
    all.progress++;
    system_call(SYS_futex, &all.progress, FUTEX_WAKE_PRIVATE, 1);
}

static void await_release(uint32_t round)
{
    uint32_t released;

    while ((int32_t)((released = all.released) - round) < 0)
        system_call(SYS_futex, &all.released, FUTEX_WAIT_PRIVATE, released, 0);
    all.standing--;
}

/* Another kernel has other code there. */
static bool is_in_vdso(const ucontext_t *frame)
{
    return (uint64_t)frame->uc_mcontext.gregs[REG_RIP] - all.vdso < VDSO_BYTES;
}

static bool is_called(uint32_t round, uint32_t index)
{
    return round == all.round && (int32_t)(round - all.released) > 0 && index < OTHERS_MAX &&
           (all.other[index].stage == STAGE_CALLED || all.other[index].stage == STAGE_DEFERRED) &&
           all.other[index].tid == (int32_t)system_call(SYS_gettid);
}

/* What the signal said to this thread, which was not fit for it. */
static _Thread_local uint64_t deferred __attribute__((tls_model("initial-exec")));

static long send_signal(long tid, uint64_t value)
{
    siginfo_t info = {0};

    info.si_signo = STOP_SIGNAL;
    info.si_code = SI_QUEUE;
    info.si_pid = (pid_t)system_call(SYS_getpid);
    info.si_value.sival_ptr = (void *)(uintptr_t)value;
    return system_call(SYS_rt_tgsigqueueinfo, info.si_pid, tid, STOP_SIGNAL, &info);
}

/* It may be too late by now. */
void image_stand(void)
{
    send_signal(system_call(SYS_gettid), deferred);
}

static void on_signal(int signal, siginfo_t *info, void *frame)
{
    uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    uint32_t round = (uint32_t)(value >> 32), index = (uint32_t)value;
    struct other *other;
    enum stage stage;

    if (info->si_code != SI_QUEUE) {
        if (all.libcs.handler && all.libcs.handler != (void *)SIG_IGN)
            all.libcs.handler(signal, info, frame);
        return;
    }
    if (!is_called(round, index))
        return; /* it was too late */
    other = &all.other[index];
    other->frame = frame;
    if (is_in_vdso(frame)) {
        tell(other, STAGE_AGAIN);
        return;
    }
    if (all.unfit && !interrupted_sleeps(frame) && all.unfit()) {
        deferred = value;
        other->stage = STAGE_DEFERRED;
        return;
    }
    all.standing++;
    stage = thread_read(&other->thread) ? STAGE_STRANGE : STAGE_STOPPED;
    if (other->called_twice) /* it may have called itself too */
        other->thread.pending &= ~(1ull << (STOP_SIGNAL - 1));
    tell(other, stage);
    await_release(round);
}

/* --- stopping them --------------------------------------------------------------------------- */

/* It stays: a thread may be late. */
static void install_handler(void)
{
    struct kernel_action now, mine = {.handler = on_signal,
                                      .flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | RESTORER_FLAG,
                                      .restorer = context_restorer,
                                      .mask = ~0ul};

    system_call(SYS_rt_sigaction, STOP_SIGNAL, NULL, &now, sizeof(now.mask));
    if (now.handler == on_signal)
        return;
    all.libcs = now;
    system_call(SYS_rt_sigaction, STOP_SIGNAL, &mine, NULL, sizeof(mine.mask));
}

static void prepare(void)
{
    uint32_t words[8];

    install_handler();
    all.vdso = getauxval(AT_SYSINFO_EHDR);
    if (all.layout.enabled == 0)
        xstate_read(&all.layout, features_read(words));
}

static void call(uint32_t index)
{
    struct other *other = &all.other[index];

    interrupted_look(other->tid, &other->call);
    other->stage = STAGE_CALLED;
    if (send_signal(other->tid, (uint64_t)all.round << 32 | index) == -ESRCH)
        other->stage = STAGE_ENDED;
}

static bool is_known(int32_t tid)
{
    for (uint32_t i = 0; i < all.count; i++)
        if (all.other[i].tid == tid && all.other[i].stage != STAGE_ENDED)
            return true;
    return false;
}

static int add(int32_t tid, struct cw_err *err)
{
    struct other *other = &all.other[all.count];

    if (all.count == OTHERS_MAX)
        return cw_err_set(err, CW_ELIMIT,
                          "the program has more than %u threads; an image holds no more",
                          OTHERS_MAX + 1);
    memset(other, 0, sizeof(*other));
    other->tid = tid;
    call(all.count++);
    return 0;
}

/* Calls all threads that were not called yet. *added: how many these were. */
static int call_new(int directory, uint32_t *added, struct cw_err *err)
{
    static struct system_names names;
    int32_t own = (int32_t)system_call(SYS_gettid);
    uint32_t before = all.count;
    const struct system_name *e;

    system_call(SYS_lseek, directory, 0, SEEK_SET);
    names.at = names.end = 0;
    while ((e = system_next_name(directory, &names))) {
        int32_t tid = system_number(e->name);

        if (tid > 0 && tid != own && !is_known(tid) && add(tid, err))
            return err->code;
    }
    *added = all.count - before;
    return names.end < 0 ? cw_err_set(err, CW_ESYS, "/proc/self/task cannot be read: %s",
                                      strerrordesc_np((int)-names.end))
                         : 0;
}

/* The first of those that have come to this; NULL: there is none. */
static struct other *first_at(enum stage stage)
{
    for (uint32_t i = 0; i < all.count; i++)
        if (all.other[i].stage == stage)
            return &all.other[i];
    return NULL;
}

/* After a moment in which they run. */
static void call_again(void)
{
    const struct timespec pause = {.tv_nsec = AGAIN_NS};

    if (!first_at(STAGE_AGAIN))
        return;
    system_call(SYS_nanosleep, &pause, NULL);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.other[i].stage == STAGE_AGAIN)
            call(i);
}

/* Of those that were to stand as soon as they can, some sleep by now, for what a thread has that
 * stands: there they can. */
static void call_sleeping(void)
{
    struct interrupted now;

    for (uint32_t i = 0; i < all.count; i++) {
        if (all.other[i].stage != STAGE_DEFERRED)
            continue;
        interrupted_look(all.other[i].tid, &now);
        if (now.known && now.number == SYS_futex) {
            all.other[i].called_twice = true;
            call(i);
        }
    }
}

/* A thread that is ending blocks all signals, and ends. */
static void forget_ended(void)
{
    long pid = system_call(SYS_getpid);

    for (uint32_t i = 0; i < all.count; i++)
        if (all.other[i].stage == STAGE_CALLED &&
            system_call(SYS_tgkill, pid, all.other[i].tid, 0) == -ESRCH)
            all.other[i].stage = STAGE_ENDED;
}

/* Whether a thread has not come away yet from where it stood before: all signals are blocked. */
static bool some_are_late(void)
{
    uint32_t stopped = 0;

    for (uint32_t i = 0; i < all.count; i++)
        stopped += all.other[i].stage == STAGE_STOPPED || all.other[i].stage == STAGE_STRANGE;
    return all.standing > stopped;
}

static int name_missing(const struct other *other, struct cw_err *err)
{
    char name[STATUS_NAME_MAX], text[STATUS_BYTES], comm[THREAD_NAME_MAX + 1] = "?";
    const char *blocked;
    unsigned long long set = 0;

    snprintf(name, sizeof(name), "/proc/self/task/%d/comm", other->tid);
    system_read_file(name, comm, sizeof(comm));
    comm[strcspn(comm, "\n")] = '\0';
    snprintf(name, sizeof(name), "/proc/self/task/%d/status", other->tid);
    if (system_read_file(name, text, sizeof(text)) > 0 && (blocked = strstr(text, "SigBlk:")))
        sscanf(blocked + 7, "%llx", &set);
    return cw_err_set(err, CW_EINVAL, "thread %d (%s) of the program %s", other->tid, comm,
                      set >> (STOP_SIGNAL - 1) & 1 && !some_are_late()
                          ? "blocks the signal by which it is stopped for an image (33)"
                          : "does not stop for an image");
}

static int await_stopped(uint64_t deadline_ns, struct cw_err *err)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    const struct other *missing;
    uint32_t seen;

    for (;;) {
        seen = all.progress;
        call_again();
        missing = first_at(STAGE_CALLED);
        if (!missing)
            missing = first_at(STAGE_DEFERRED);
        if (!missing && !first_at(STAGE_AGAIN))
            return 0;
        if (system_call(SYS_futex, &all.progress, FUTEX_WAIT_PRIVATE, seen, &look) == -ETIMEDOUT) {
            forget_ended();
            call_sleeping();
        }
        if (missing && system_now_ns() > deadline_ns)
            return name_missing(missing, err);
    }
}

/* Threads that run can make others. */
static int stop_all(int directory, struct cw_err *err)
{
    uint64_t deadline_ns = system_now_ns() + STOP_NS;
    uint32_t added = 0;

    do {
        if (call_new(directory, &added, err) || await_stopped(deadline_ns, err))
            return err->code;
    } while (added > 0);
    return 0;
}

/* --- locks of the dynamic loader, which know their owner by its number, and which nobody else can
 * give to the thread that takes its place --- */

/* As libc has it. */
struct mutex {
    int32_t lock;
    uint32_t count;
    int32_t owner;
    uint32_t users;
    int32_t kind;
};

static uintptr_t loader_start, loader_end; /* of the loader's own data; 0: not known */

static int find_loader(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (info->dlpi_addr != getauxval(AT_BASE) || info->dlpi_addr == 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & PF_W)) {
            loader_start = (info->dlpi_addr + part->p_vaddr + 7) & ~(uintptr_t)7;
            loader_end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        }
    }
    return 1;
}

__attribute__((constructor)) static void look_for_loader(void)
{
    dl_iterate_phdr(find_loader, NULL);
}

/* Whether the thread is inside dlopen(), dlclose(), dl_iterate_phdr() or the like. */
static bool loader_is_used_by(int32_t tid)
{
    for (uintptr_t at = loader_start; at + sizeof(struct mutex) <= loader_end; at += 8) {
        const struct mutex *m = (const struct mutex *)at;

        if (m->owner == tid && m->kind == KIND_RECURSIVE && m->lock != 0 && m->count > 0 &&
            m->count <= DEPTH_MAX)
            return true;
    }
    return false;
}

/* --- whether they can be made anew --- */

/* Where the kernel does not tell, it has not done what few programs do. */
static bool shares_less(int32_t tid)
{
    long own = system_call(SYS_gettid);

    return system_call(SYS_kcmp, own, tid, KCMP_FILES, 0, 0) > 0 ||
           system_call(SYS_kcmp, own, tid, KCMP_FS, 0, 0) > 0;
}

/* Only those that stand still are kept. */
static int check_all(struct cw_err *err)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < all.count; i++) {
        struct other *other = &all.other[i];

        if (other->stage == STAGE_ENDED)
            continue;
        if (other->stage == STAGE_STRANGE)
            return cw_err_set(err, CW_EINVAL,
                              "thread %d of the program was not made by pthread_create(): an image "
                              "cannot hold it",
                              other->tid);
        if (shares_less(other->tid))
            return cw_err_set(err, CW_EINVAL,
                              "thread %d of the program has descriptors or a directory of its own "
                              "(unshare()): an image cannot hold them",
                              other->tid);
        if (loader_is_used_by(other->tid))
            return cw_err_set(err, CW_EINVAL,
                              "thread %d of the program loads or looks for a library just now",
                              other->tid);
        if (kept != i)
            all.other[kept] = *other;
        kept++;
    }
    all.count = kept;
    return 0;
}

/* The directory of threads has a link for each, and two of its own. */
static bool is_alone(void)
{
    struct stat st;

    return system_call(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &st, 0) == 0 &&
           st.st_nlink == 3;
}

int others_stop(bool (*unfit)(void), struct cw_err *err)
{
    int directory;

    all.count = 0;
    all.round++;
    err->code = CW_OK;
    if (is_alone())
        return 0;
    directory = system_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0)
        return cw_err_set(err, CW_ESYS, "/proc/self/task cannot be opened: %s",
                          strerrordesc_np(-directory));
    prepare();
    all.unfit = unfit;
    stop_all(directory, err);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.other[i].stage == STAGE_STOPPED || all.other[i].stage == STAGE_STRANGE)
            interrupted_again(&all.other[i].call, all.other[i].frame);
    if (err->code || check_all(err))
        others_release();
    system_close(directory);
    return err->code;
}

void others_release(void)
{
    all.released = all.round;
    if (all.count > 0)
        system_call(SYS_futex, &all.released, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* --- in the restored process ----------------------------------------------------------------- */

static void raise_pending(uint64_t pending)
{
    long pid = system_call(SYS_getpid), tid = system_call(SYS_gettid);

    for (int i = 1; i <= 64; i++)
        if (pending >> (i - 1) & 1)
            system_call(SYS_tgkill, pid, tid, i);
}

static void begin_again(void *argument)
{
    struct other *other = argument;
    const char *failed;

    other->remark = thread_restore(&other->thread);
    failed = conditions_restore(&other->thread.conditions, all.here);
    if (failed)
        other->remark = failed;
    identity_restore(&other->thread.identity, false, &other->err);
    if (other->thread.gs_base)
        system_call(SYS_arch_prctl, ARCH_SET_GS, other->thread.gs_base);
    system_call(SYS_prctl, PR_SET_NAME, other->thread.name);
    raise_pending(other->thread.pending);
    tell(other, STAGE_STOPPED);
    await_release(all.round);
    context_return(other->frame);
}

/* On its stack, below what the kernel has put there. */
static int revive(struct other *other, struct cw_err *err)
{
    uintptr_t stack = ((uintptr_t)other->frame - 16) & ~(uintptr_t)15;
    long tid;

    other->stage = STAGE_CALLED;
    tid =
        context_clone(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                          CLONE_SYSVSEM | CLONE_SETTLS,
                      (void *)stack, (void *)(uintptr_t)other->thread.fs_base, begin_again, other);
    if (tid < 0)
        return cw_err_set(err, CW_ESYS, "a thread of the program cannot be made: %s%s",
                          strerrordesc_np((int)-tid),
                          tid == -EAGAIN ? "; see ulimit -u, and the limits of the container" : "");
    other->now = (int32_t)tid;
    return 0;
}

int others_revive(uint64_t pending, struct cw_err *err)
{
    const char *remark = NULL;
    uint32_t seen;

    all.here = image_is_here();
    if (all.count == 0)
        return 0;
    if (!xstate_is(&all.layout))
        return cw_err_set(err, CW_ESYS,
                          "this machine's processor lays its registers out in another way, and the "
                          "program has several threads; the machines where the rank may run need "
                          "processors alike");
    for (uint32_t i = 0; i < all.count; i++) {
        all.other[i].thread.pending &= ~pending;
        if (revive(&all.other[i], err))
            return err->code;
    }
    while (seen = all.progress, first_at(STAGE_CALLED))
        system_call(SYS_futex, &all.progress, FUTEX_WAIT_PRIVATE, seen, 0);
    for (uint32_t i = 0; i < all.count; i++) {
        if (all.other[i].err.code)
            return (*err = all.other[i].err).code;
        if (all.other[i].remark)
            remark = all.other[i].remark;
    }
    if (remark)
        remark_add("a thread of the program could not get back %s", remark);
    return 0;
}

bool others_get(uint32_t index, int32_t *former, int32_t *now)
{
    if (index >= all.count)
        return false;
    *former = all.other[index].tid;
    *now = all.other[index].now;
    return true;
}

uintptr_t others_fs_base(uint32_t index)
{
    return index < all.count ? (uintptr_t)all.other[index].thread.fs_base : 0;
}
