/* Under what conditions the kernel runs one thread: which processors, scheduling class and
 * niceness, priority of its I/O, slack of its timers, placing of its memory, what its processor
 * lets it do. Read by that thread, put back by the one that takes its place in the restored
 * process. */
#ifndef RDEVICE_IMAGE_CONDITIONS_H
#define RDEVICE_IMAGE_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#define CONDITIONS_CPUS 4096u          /* that a set can have */
#define CONDITIONS_NODES 1024u         /* of memory, as many as the kernel can have */
#define CONDITIONS_SPECULATION_KINDS 3 /* PR_SPEC_... */

/* As the kernel has it (sched_setattr). */
struct conditions_scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t util_min, util_max;
};

struct conditions {
    uint64_t cpus[CONDITIONS_CPUS / 64];
    uint64_t nodes[CONDITIONS_NODES / 64];
    struct conditions_scheduling scheduling;
    uint64_t timer_slack_ns;
    uint32_t cpus_size;                       /* bytes; 0: the kernel does not tell */
    int32_t memory_mode;                      /* MPOL_...; -1: the kernel does not tell */
    int32_t io_priority;                      /* -1: the kernel does not tell */
    int32_t machine_check, timestamps, cpuid; /* PR_MCE_KILL_GET, PR_GET_TSC, ARCH_GET_CPUID */
    int32_t speculation[CONDITIONS_SPECULATION_KINDS];
    bool launchers_cpus; /* those that its parent has: another machine has others */
};

/* Of the calling thread. No function of libc is used. */
void conditions_read(struct conditions *conditions);

/* `here`: the image was taken on this machine, since it was started. Returns NULL, or what cannot
 * be set, for a person. */
const char *conditions_restore(const struct conditions *conditions, bool here);

#endif
