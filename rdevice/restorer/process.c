#include "rdevice/restorer/process.h"

#include "rdevice/image/features.h"
#include "rdevice/image/system.h"
#include "rdevice/restorer/regions.h"
#include "rdevice/restorer/report.h"

#include <linux/prctl.h>
#include <string.h>

void process_check(const struct cw_image_header *header)
{
    uint32_t own[8];
    uint64_t xcr0 = features_read(own);

    for (uint32_t i = 0; i < 8; i++)
        if (header->features[i] & ~own[i])
            report_end("this machine's processor lacks features that the image was made with (word "
                       "%d, bits %x); the machines where the rank may run need processors alike",
                       (int64_t)i, (uint64_t)(header->features[i] & ~own[i]));
    xcr0 |= FEATURES_XCR0_BASELINE;
    if (header->xcr0 & ~xcr0)
        report_end("this machine's processor lacks registers that the image was made with (%x); "
                   "the machines where the rank may run need processors alike",
                   header->xcr0 & ~xcr0);
}

static void set_bounds(const struct cw_image_header *header)
{
    struct prctl_mm_map map;
    long status;

    memset(&map, 0, sizeof(map));
    memcpy(&map, &header->bounds, sizeof(header->bounds));
    map.auxv = (void *)(uintptr_t)header->auxv;
    map.auxv_size = header->auxv_size;
    map.exe_fd = ~0u;
    status = system_call(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0);
    if (status < 0)
        report_end("the kernel refuses where the heap and the stack of the process are: %e",
                   status);
    system_call(SYS_prctl, PR_SET_NAME, header->comm);
}

static void leave_handoff(const struct cw_image_header *header, const struct handoff *handoff)
{
    if (!regions_writable(header->handoff, sizeof(*handoff)))
        report_end("the image is damaged: it does not say where it goes on");
    memcpy((void *)(uintptr_t)header->handoff, handoff, sizeof(*handoff));
}

/* ARCH_SET_GS is 0x1001, ARCH_SET_FS 0x1002, arch_prctl 158. */
static void __attribute__((noreturn)) jump(const struct cw_image_context *context)
{
    __asm__ volatile("mov %0, %%rbx\n"
                     "mov $158, %%eax\n"
                     "mov $0x1002, %%edi\n"
                     "mov 72(%%rbx), %%rsi\n"
                     "syscall\n"
                     "mov 80(%%rbx), %%rsi\n"
                     "test %%rsi, %%rsi\n"
                     "jz 1f\n"
                     "mov $158, %%eax\n"
                     "mov $0x1001, %%edi\n"
                     "syscall\n"
                     "1:\n"
                     "ldmxcsr 64(%%rbx)\n"
                     "fldcw 68(%%rbx)\n"
                     "mov 8(%%rbx), %%rbp\n"
                     "mov 16(%%rbx), %%r12\n"
                     "mov 24(%%rbx), %%r13\n"
                     "mov 32(%%rbx), %%r14\n"
                     "mov 40(%%rbx), %%r15\n"
                     "mov 48(%%rbx), %%rsp\n"
                     "mov 56(%%rbx), %%rdx\n"
                     "mov 0(%%rbx), %%rbx\n"
                     "mov $1, %%eax\n"
                     "jmp *%%rdx\n"
                     :
                     : "r"(context)
                     : "memory");
    __builtin_unreachable();
}

void process_go_on(const struct cw_image_header *header, const struct handoff *handoff)
{
    set_bounds(header);
    leave_handoff(header, handoff);
    jump(&header->context);
}
