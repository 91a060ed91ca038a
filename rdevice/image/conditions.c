#include "rdevice/image/conditions.h"

#include "rdevice/image/system.h"

#include <asm/prctl.h>
#include <linux/mempolicy.h>
#include <linux/prctl.h>
#include <string.h>

#define IOPRIO_WHO_PROCESS 1
#define SCHED_FLAG_UTIL_BOTH 0x60u /* SCHED_FLAG_UTIL_CLAMP */
#define SCHED_FLAG_SET 0x07u       /* of a thread: RESET_ON_FORK, RECLAIM, DL_OVERRUN */
#define SCHEDULING_BYTES 56u
#define UTIL_ALL 1024u

_Static_assert(sizeof(struct conditions_scheduling) == SCHEDULING_BYTES, "as the kernel has it");

/* --- reading --------------------------------------------------------------------------------- */

static void read_cpus(struct conditions *c)
{
    uint64_t launchers[CONDITIONS_CPUS / 64] = {0};
    long n = system_call(SYS_sched_getaffinity, 0, sizeof(c->cpus), c->cpus);

    c->cpus_size = n > 0 ? (uint32_t)n : 0;
    c->launchers_cpus = system_call(SYS_sched_getaffinity, system_call(SYS_getppid),
                                    sizeof(launchers), launchers) == n &&
                        n > 0 && memcmp(launchers, c->cpus, (size_t)n) == 0;
}

void conditions_read(struct conditions *c)
{
    memset(c, 0, sizeof(*c));
    read_cpus(c);
    if (system_call(SYS_sched_getattr, 0, &c->scheduling, SCHEDULING_BYTES, 0) < 0)
        c->scheduling.size = 0;
    c->io_priority = (int32_t)system_call(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
    c->timer_slack_ns = (uint64_t)system_call(SYS_prctl, PR_GET_TIMERSLACK);
    if (system_call(SYS_get_mempolicy, &c->memory_mode, c->nodes, CONDITIONS_NODES, 0, 0) < 0)
        c->memory_mode = -1;
    c->machine_check = (int32_t)system_call(SYS_prctl, PR_MCE_KILL_GET);
    if (system_call(SYS_prctl, PR_GET_TSC, &c->timestamps) < 0)
        c->timestamps = PR_TSC_ENABLE;
    c->cpuid = (int32_t)system_call(SYS_arch_prctl, ARCH_GET_CPUID);
    for (int i = 0; i < CONDITIONS_SPECULATION_KINDS; i++)
        c->speculation[i] = (int32_t)system_call(SYS_prctl, PR_GET_SPECULATION_CTRL, i);
}

/* --- putting back: what is as it was is not touched, since it may be forbidden to touch it -----
 */

static const char *restore_cpus(const struct conditions *c, const struct conditions *now, bool here)
{
    if (c->cpus_size == 0 || (c->launchers_cpus && !here) ||
        memcmp(c->cpus, now->cpus, sizeof(c->cpus)) == 0)
        return NULL;
    return system_call(SYS_sched_setaffinity, 0, c->cpus_size, c->cpus) < 0
               ? "its processor affinity: none of these processors can be had here"
               : NULL;
}

static const char *restore_scheduling(const struct conditions *c, const struct conditions *now)
{
    struct conditions_scheduling wanted = c->scheduling;

    if (wanted.size == 0 || memcmp(&wanted, &now->scheduling, sizeof(wanted)) == 0)
        return NULL;
    wanted.size = SCHEDULING_BYTES;
    wanted.flags &= SCHED_FLAG_SET;
    if (wanted.util_min != now->scheduling.util_min || wanted.util_max != now->scheduling.util_max)
        wanted.flags |= SCHED_FLAG_UTIL_BOTH;
    return system_call(SYS_sched_setattr, 0, &wanted, 0) < 0
               ? "its scheduling class, priority and niceness: see ulimit -e and -r"
               : NULL;
}

static const char *restore_memory(const struct conditions *c, const struct conditions *now)
{
    if (c->memory_mode < 0 ||
        (c->memory_mode == now->memory_mode && memcmp(c->nodes, now->nodes, sizeof(c->nodes)) == 0))
        return NULL;
    return system_call(SYS_set_mempolicy, c->memory_mode, c->nodes, CONDITIONS_NODES) < 0
               ? "on which nodes its memory is (set_mempolicy)"
               : NULL;
}

static const char *restore_speculation(const struct conditions *c, const struct conditions *now)
{
    const char *failed = NULL;

    for (int i = 0; i < CONDITIONS_SPECULATION_KINDS; i++) {
        int32_t wanted = c->speculation[i];

        if (wanted <= 0 || wanted == now->speculation[i] || !(wanted & PR_SPEC_PRCTL))
            continue;
        if (system_call(SYS_prctl, PR_SET_SPECULATION_CTRL, i, wanted & ~PR_SPEC_PRCTL) < 0)
            failed = "what its processor may speculate about (PR_SET_SPECULATION_CTRL)";
    }
    return failed;
}

static const char *restore_machine(const struct conditions *c, const struct conditions *now)
{
    const char *failed = NULL;

    if (c->machine_check >= 0 && c->machine_check != now->machine_check &&
        system_call(SYS_prctl, PR_MCE_KILL,
                    c->machine_check == PR_MCE_KILL_DEFAULT ? PR_MCE_KILL_CLEAR : PR_MCE_KILL_SET,
                    c->machine_check == PR_MCE_KILL_DEFAULT ? 0 : c->machine_check) < 0)
        failed = "what follows from broken memory (PR_MCE_KILL)";
    if (c->timestamps != now->timestamps && system_call(SYS_prctl, PR_SET_TSC, c->timestamps) < 0)
        failed = "whether it may read the processor's time stamps (PR_SET_TSC)";
    if (c->cpuid >= 0 && c->cpuid != now->cpuid &&
        system_call(SYS_arch_prctl, ARCH_SET_CPUID, c->cpuid) < 0)
        failed = "whether it may ask the processor what it is (ARCH_SET_CPUID)";
    return failed;
}

static const char *first(const char *a, const char *b)
{
    return a ? a : b;
}

const char *conditions_restore(const struct conditions *c, bool here)
{
    struct conditions now;
    const char *failed = NULL;

    conditions_read(&now);
    failed = first(failed, restore_cpus(c, &now, here));
    failed = first(failed, restore_scheduling(c, &now));
    failed = first(failed, restore_memory(c, &now));
    failed = first(failed, restore_speculation(c, &now));
    failed = first(failed, restore_machine(c, &now));
    if (c->io_priority >= 0 && c->io_priority != now.io_priority &&
        system_call(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, c->io_priority) < 0)
        failed = first(failed, "the priority of its input and output (ioprio_set)");
    if ((int64_t)c->timer_slack_ns > 0 && c->timer_slack_ns != now.timer_slack_ns &&
        system_call(SYS_prctl, PR_SET_TIMERSLACK, c->timer_slack_ns) < 0)
        failed = first(failed, "the slack of its timers (PR_SET_TIMERSLACK)");
    return failed;
}
