#include "rdevice/image/traits.h"

#include "rdevice/image/image.h"
#include "rdevice/image/remark.h"
#include "rdevice/image/system.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef PR_GET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif
#ifndef PR_GET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#define PERSONALITY_ASK 0xffffffffu
#define NUMBER_BYTES 32u
#define BOOT_ID_BYTES 40u

/* What prctl() tells and takes again. */
static const struct setting {
    int get, set;
    bool by_address; /* it is told by the second argument */
    const char *name;
} settings[] = {
    {PR_GET_THP_DISABLE, PR_SET_THP_DISABLE, false, "PR_SET_THP_DISABLE"},
    {PR_GET_CHILD_SUBREAPER, PR_SET_CHILD_SUBREAPER, true, "PR_SET_CHILD_SUBREAPER"},
    {PR_GET_PDEATHSIG, PR_SET_PDEATHSIG, true, "PR_SET_PDEATHSIG"},
    {PR_GET_IO_FLUSHER, PR_SET_IO_FLUSHER, false, "PR_SET_IO_FLUSHER"},
    {PR_GET_MEMORY_MERGE, PR_SET_MEMORY_MERGE, false, "PR_SET_MEMORY_MERGE"},
};
#define SETTINGS (sizeof(settings) / sizeof(*settings))

/* Files with one number. */
static const struct number {
    const char *path;
    int base;
} numbers[] = {{"/proc/self/oom_score_adj", 10}, {"/proc/self/coredump_filter", 16}};
#define NUMBERS (sizeof(numbers) / sizeof(*numbers))
#define UNKNOWN INT64_MIN

static struct {
    int64_t setting[SETTINGS]; /* negative: the kernel does not know it */
    int64_t number[NUMBERS];
    int64_t personality, dumpable, mdwe;
    bool leads_session, leads_group;
    char boot_id[BOOT_ID_BYTES];
} kept;

/* --- reading --------------------------------------------------------------------------------- */

static int64_t get_setting(const struct setting *s)
{
    int value = -1;
    long status =
        s->by_address ? system_call(SYS_prctl, s->get, &value) : system_call(SYS_prctl, s->get);

    return status < 0 || !s->by_address ? status : value;
}

static int64_t read_number(const struct number *n)
{
    char text[NUMBER_BYTES];

    return system_read_file(n->path, text, sizeof(text)) > 0 ? strtol(text, NULL, n->base)
                                                             : UNKNOWN;
}

static void read_boot_id(char *to)
{
    memset(to, 0, BOOT_ID_BYTES);
    system_read_file("/proc/sys/kernel/random/boot_id", to, BOOT_ID_BYTES);
}

void traits_read(void)
{
    long pid = system_call(SYS_getpid);

    for (size_t i = 0; i < SETTINGS; i++)
        kept.setting[i] = get_setting(&settings[i]);
    for (size_t i = 0; i < NUMBERS; i++)
        kept.number[i] = read_number(&numbers[i]);
    kept.personality = system_call(SYS_personality, PERSONALITY_ASK);
    kept.dumpable = system_call(SYS_prctl, PR_GET_DUMPABLE);
    kept.mdwe = system_call(SYS_prctl, PR_GET_MDWE);
    kept.leads_session = system_call(SYS_getsid, 0) == pid;
    kept.leads_group = system_call(SYS_getpgid, 0) == pid;
    read_boot_id(kept.boot_id);
}

/* --- putting back: what is as it was is not touched, since it may be forbidden to touch it -----
 */

bool image_is_here(void)
{
    char now[BOOT_ID_BYTES];

    read_boot_id(now);
    return now[0] != '\0' && memcmp(now, kept.boot_id, sizeof(now)) == 0;
}

static void write_number(const struct number *n, int64_t value)
{
    char text[NUMBER_BYTES];
    int fd = system_open(n->path, O_WRONLY | O_CLOEXEC, 0);
    uint64_t left = (uint64_t)(value < 0 ? -value : value);
    uint32_t at = NUMBER_BYTES;
    long status = fd;

    do
        text[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        text[--at] = '-';
    if (fd >= 0) {
        status = system_call(SYS_write, fd, text + at, NUMBER_BYTES - at);
        system_close(fd);
    }
    if (status < 0)
        remark_add("%s of the program could not be set to %lld: %s", n->path, (long long)value,
                   strerrordesc_np((int)-status));
}

static void restore_group(void)
{
    long pid = system_call(SYS_getpid);

    if (kept.leads_session && system_call(SYS_getsid, 0) != pid)
        system_call(SYS_setsid);
    else if (kept.leads_group && system_call(SYS_getpgid, 0) != pid)
        system_call(SYS_setpgid, 0, 0);
}

void traits_restore(void)
{
    for (size_t i = 0; i < NUMBERS; i++)
        if (kept.number[i] != UNKNOWN && read_number(&numbers[i]) != kept.number[i])
            write_number(&numbers[i], kept.number[i]);
    for (size_t i = 0; i < SETTINGS; i++)
        if (kept.setting[i] >= 0 && get_setting(&settings[i]) != kept.setting[i] &&
            system_call(SYS_prctl, settings[i].set, kept.setting[i]) < 0)
            remark_add("what the program has set with %s could not be set again", settings[i].name);
    if (kept.personality >= 0 &&
        system_call(SYS_personality, PERSONALITY_ASK) != kept.personality &&
        system_call(SYS_personality, kept.personality) < 0)
        remark_add("the personality of the program could not be set again");
    restore_group();
}

void traits_restore_last(void)
{
    const struct setting *signal = &settings[2]; /* of a parent that ends */

    if (kept.setting[2] > 0 && get_setting(signal) != kept.setting[2])
        system_call(SYS_prctl, signal->set, kept.setting[2]);
    if (kept.dumpable >= 0 && kept.dumpable != system_call(SYS_prctl, PR_GET_DUMPABLE))
        system_call(SYS_prctl, PR_SET_DUMPABLE, kept.dumpable);
    if (kept.mdwe > 0 && system_call(SYS_prctl, PR_GET_MDWE) != kept.mdwe &&
        system_call(SYS_prctl, PR_SET_MDWE, kept.mdwe) < 0)
        remark_add("what the program has set with PR_SET_MDWE could not be set again");
}
