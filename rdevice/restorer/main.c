/* causeway-restore IMAGE_FD CONTROL_FD PMI_FD CHANNEL_FD: becomes the process whose image comes
 * from IMAGE_FD. Static, without libc, at an address where no program has anything: all that a
 * process has must be free for the image's. What goes wrong is reported on CONTROL_FD. */
#include "rdevice/image/system.h"
#include "rdevice/restorer/input.h"
#include "rdevice/restorer/process.h"
#include "rdevice/restorer/regions.h"
#include "rdevice/restorer/report.h"
#include "rdevice/restorer/world.h"

#include <signal.h>

#define RESTORER_STACK_BYTES 1048576u
#define TLS_BYTES 4096u
#define NUMBER_MAX 1000000 /* numbers on the command line */

static char stack[RESTORER_STACK_BYTES] __attribute__((aligned(64), used));
static char tls[TLS_BYTES] __attribute__((aligned(64))); /* LZ4's code looks for a canary there */

void restorer_main(long *arguments) __attribute__((noreturn, used));

static int descriptor(const char *text)
{
    int value = 0;

    if (text[0] == '-' && text[1] == '1' && text[2] == '\0')
        return -1;
    for (; *text >= '0' && *text <= '9' && value <= NUMBER_MAX; text++)
        value = value * 10 + (*text - '0');
    return *text == '\0' && value <= NUMBER_MAX ? value : -2;
}

void restorer_main(long *arguments)
{
    char **argv = (char **)(arguments + 1);
    const struct cw_image_header *header;
    unsigned long all = ~0ul;
    struct handoff handoff = {.magic = HANDOFF_MAGIC};
    int image;

    system_call(SYS_arch_prctl, 0x1002 /* ARCH_SET_FS */, tls);
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
    if (arguments[0] != 6)
        report_end("usage: causeway-restore IMAGE_FD CONTROL_FD PMI_FD CHANNEL_FD CHANNEL_FILE_FD");
    image = descriptor(argv[1]);
    handoff.control_fd = descriptor(argv[2]);
    handoff.pmi_fd = descriptor(argv[3]);
    handoff.channel_fd = descriptor(argv[4]);
    handoff.channel_file_fd = descriptor(argv[5]);
    report_to(handoff.control_fd);
    if (image < 0 || handoff.control_fd < -1 || handoff.pmi_fd < -1 || handoff.channel_fd < -1 ||
        handoff.channel_file_fd < -1)
        report_end("causeway-restore was started with wrong descriptors");
    input_open(image);
    header = input_header();
    report_name(header->rank, header->number);
    process_check(header);
    world_clear(header);
    regions_restore();
    world_settle(header);
    system_close(image);
    process_go_on(header, &handoff);
}

__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    lea stack(%rip), %rsp\n"
        "    add $1048512, %rsp\n"
        "    call restorer_main\n"
        "    hlt\n");
