#include "rdevice/image/thread.h"

#include "rdevice/image/system.h"

#include <asm/prctl.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <sys/rseq.h>

#define ROBUST_MAX 2048u /* mutexes that a thread holds, as the kernel looks at */
#define RSEQ_BYTES 32u   /* that libc registers at least; more are given in the auxiliary vector */

/* As libc has it. */
struct mutex {
    uint32_t lock, count, owner;
};

int thread_read(struct thread *thread)
{
    thread->tid = (int32_t)system_call(SYS_gettid);
    thread->tid_address = NULL;
    thread->pending = 0;
    system_call(SYS_get_robust_list, 0, &thread->robust, &thread->robust_size);
    system_call(SYS_arch_prctl, ARCH_GET_FS, &thread->fs_base);
    system_call(SYS_arch_prctl, ARCH_GET_GS, &thread->gs_base);
    system_call(SYS_rt_sigpending, &thread->pending, sizeof(thread->pending));
    system_call(SYS_prctl, PR_GET_NAME, thread->name);
    conditions_read(&thread->conditions);
    identity_read(&thread->identity);
    if (system_call(SYS_prctl, PR_GET_TID_ADDRESS, &thread->tid_address) < 0 ||
        !thread->tid_address || *thread->tid_address != thread->tid)
        return -1;
    return 0;
}

/* libc lays the area out at a fixed distance from the thread pointer, and registers it once. */
static const char *restore_rseq(void)
{
    uintptr_t at = (uintptr_t)__builtin_thread_pointer() + (uintptr_t)__rseq_offset;
    volatile struct rseq *area = (volatile struct rseq *)at;

    if (__rseq_size == 0)
        return NULL;
    area->rseq_cs = 0;
    if (system_call(SYS_rseq, at, RSEQ_BYTES, 0, RSEQ_SIG) == 0)
        return NULL;
    area->cpu_id = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
    return "restartable sequences: sched_getcpu() is slower";
}

/* The number of their owner is the value of mutexes that are robust. */
static void rename_robust(const struct thread *thread, uint32_t tid)
{
    const struct robust_list_head *head = thread->robust;
    uintptr_t at = head ? (uintptr_t)head->list.next & ~(uintptr_t)1 : 0;

    for (uint32_t i = 0; i < ROBUST_MAX && at && at != (uintptr_t)head; i++) {
        struct mutex *mutex = (struct mutex *)(at + (uintptr_t)head->futex_offset);

        if ((mutex->lock & FUTEX_TID_MASK) == (uint32_t)thread->tid)
            mutex->lock = (mutex->lock & ~(uint32_t)FUTEX_TID_MASK) | tid;
        if (mutex->owner == (uint32_t)thread->tid)
            mutex->owner = tid;
        at = (uintptr_t)((const struct robust_list *)at)->next & ~(uintptr_t)1;
    }
}

const char *thread_restore(const struct thread *thread)
{
    int32_t tid = (int32_t)system_call(SYS_set_tid_address, thread->tid_address);

    *thread->tid_address = tid;
    rename_robust(thread, (uint32_t)tid);
    system_call(SYS_set_robust_list, thread->robust, thread->robust_size);
    return restore_rseq();
}
