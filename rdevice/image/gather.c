#include "rdevice/image/gather.h"

#include "rdevice/image/image.h"
#include "rdevice/image/remark.h"
#include "rdevice/image/system.h"
#include "rdevice/image/thread.h"
#include "rdevice/image/traits.h"
#include "rdevice/image/unkept.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

#define SIGNALS 64
#define CWD_BYTES 4096u

/* As the kernel has it, not libc. */
struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

static unsigned long blocked; /* the mask before gather_block() */

static struct {
    struct kernel_action action[SIGNALS + 1];
    stack_t stack;
    struct itimerval timer[3];
    struct rlimit limit[RLIM_NLIMITS];
    unsigned umask;
    struct thread thread;
    char cwd[CWD_BYTES];
} kept;

void gather_block(void)
{
    unsigned long all = ~0ul;

    system_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &blocked, sizeof(all));
}

void gather_unblock(void)
{
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof(blocked));
}

/* --- reading --------------------------------------------------------------------------------- */

static void read_signals(void)
{
    for (int i = 1; i <= SIGNALS; i++)
        system_call(SYS_rt_sigaction, i, NULL, &kept.action[i], sizeof(blocked));
    system_call(SYS_sigaltstack, NULL, &kept.stack);
}

static int read_timers(struct cw_err *err)
{
    char text[64];
    long n = system_read_file("/proc/self/timers", text, sizeof(text));

    if (n > 0)
        return cw_err_set(err, CW_EINVAL,
                          "the program has a timer of timer_create(), which an image cannot hold; "
                          "setitimer() and timerfd_create() are possible");
    for (int i = 0; i < 3; i++)
        system_call(SYS_getitimer, i, &kept.timer[i]);
    return 0;
}

static int read_thread(struct cw_err *err)
{
    if (thread_read(&kept.thread))
        return cw_err_set(err, CW_ESYS,
                          "the kernel does not say where libc keeps the number of its thread");
    return 0;
}

static int read_cwd(struct cw_err *err)
{
    long n = system_call(SYS_getcwd, kept.cwd, sizeof(kept.cwd));

    if (n < 0 || kept.cwd[0] != '/')
        return cw_err_set(err, CW_EINVAL, "the working directory was removed, or has no path");
    return 0;
}

int gather_read(struct cw_err *err)
{
    read_signals();
    for (int i = 0; i < (int)RLIM_NLIMITS; i++)
        system_call(SYS_prlimit64, 0, i, NULL, &kept.limit[i]);
    traits_read();
    identity_read_groups();
    kept.umask = (unsigned)system_call(SYS_umask, 0);
    system_call(SYS_umask, kept.umask);
    if (unkept_check(err) || read_timers(err) || read_thread(err))
        return err->code;
    return read_cwd(err);
}

uint64_t gather_pending(void)
{
    return kept.thread.pending;
}

int32_t gather_tid(void)
{
    return kept.thread.tid;
}

/* --- putting back ---------------------------------------------------------------------------- */

const char *gather_restore_thread(void)
{
    return thread_restore(&kept.thread);
}

static void restore_signals(void)
{
    for (int i = 1; i <= SIGNALS; i++)
        if (i != SIGKILL && i != SIGSTOP)
            system_call(SYS_rt_sigaction, i, &kept.action[i], NULL, sizeof(blocked));
    if (!(kept.stack.ss_flags & SS_DISABLE)) {
        stack_t stack = kept.stack;

        stack.ss_flags &= ~SS_ONSTACK;
        if (system_call(SYS_sigaltstack, &stack, NULL) < 0)
            remark_add("the stack of signal handlers (sigaltstack) could not be set");
    }
}

static rlim_t smaller(rlim_t a, rlim_t b)
{
    return a < b ? a : b;
}

/* What this process may not have more of stays as it is. */
void gather_restore_limits(void)
{
    struct rlimit now;

    for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
        if (system_call(SYS_prlimit64, 0, i, NULL, &now) < 0)
            continue;
        now.rlim_max = smaller(now.rlim_max, kept.limit[i].rlim_max);
        now.rlim_cur = smaller(now.rlim_max, kept.limit[i].rlim_cur);
        system_call(SYS_prlimit64, 0, i, &now, NULL);
    }
}

int gather_restore(struct cw_err *err)
{
    long status;

    restore_signals();
    traits_restore();
    system_call(SYS_umask, kept.umask);
    status = system_call(SYS_chdir, kept.cwd);
    if (status < 0)
        return cw_err_set(err, CW_ESYS,
                          "the working directory %.300s cannot be entered: %s; it must be there on "
                          "each machine where the rank may run",
                          kept.cwd, strerrordesc_np((int)-status));
    return 0;
}

int gather_restore_rights(struct cw_err *err)
{
    const char *failed = conditions_restore(&kept.thread.conditions, image_is_here());

    if (failed)
        remark_add("the program could not get back %s", failed);
    if (identity_restore(&kept.thread.identity, true, err))
        return err->code;
    traits_restore_last();
    unkept_begin();
    return 0;
}

/* While its signal is pending a timer of real time stands: the kernel sets it again when the
 * signal is taken. */
static void restart_expired(struct itimerval *timer)
{
    if (!timer->it_value.tv_sec && !timer->it_value.tv_usec)
        timer->it_value = timer->it_interval;
}

void gather_restore_timers(void)
{
    long pid = system_call(SYS_getpid), tid = system_call(SYS_gettid);

    restart_expired(&kept.timer[ITIMER_REAL]);
    for (int i = 0; i < 3; i++)
        if (kept.timer[i].it_value.tv_sec || kept.timer[i].it_value.tv_usec)
            system_call(SYS_setitimer, i, &kept.timer[i], NULL);
    for (int i = 1; i <= SIGNALS; i++)
        if (kept.thread.pending >> (i - 1) & 1)
            system_call(SYS_tgkill, pid, tid, i);
}
