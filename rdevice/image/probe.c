#include "rdevice/image/probe.h"

#include "rdevice/image/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/wait.h>

#define WAIT_TRIES_MAX 1000u

static int probe_proc(struct cw_err *err)
{
    static const char *const needed[] = {"/proc/self/maps", "/proc/self/smaps",
                                         "/proc/self/pagemap", "/proc/self/mem", "/proc/self/auxv"};

    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        int fd = system_open(needed[i], O_RDONLY | O_CLOEXEC, 0);

        if (fd < 0)
            return cw_err_set(err, CW_ESYS,
                              "images need %s: %s; mount /proc, and do not run the program without "
                              "read permission or from set-user-ID files",
                              needed[i], strerrordesc_np(-fd));
        system_close(fd);
    }
    return 0;
}

static int probe_prctl(struct cw_err *err)
{
    unsigned size = 0;
    void *address = NULL;
    long status = system_call(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0);

    if (status == 0 && size != sizeof(struct prctl_mm_map))
        return cw_err_set(err, CW_ESYS, "this kernel's PR_SET_MM_MAP has %u bytes, %zu are known",
                          size, sizeof(struct prctl_mm_map));
    if (status == 0)
        status = system_call(SYS_prctl, PR_GET_TID_ADDRESS, &address);
    if (status < 0)
        return cw_err_set(err, CW_ESYS,
                          "images need prctl() with PR_SET_MM_MAP and PR_GET_TID_ADDRESS: %s; the "
                          "kernel has to be built with CONFIG_CHECKPOINT_RESTORE",
                          strerrordesc_np((int)-status));
    return 0;
}

/* As the copy is made; this one ends at once. */
static int probe_clone(struct cw_err *err)
{
    int status = 0;
    long pid = system_call(SYS_clone, 0, 0, 0, 0, 0), ended = -EINTR;

    if (pid == 0)
        for (;;)
            system_call(SYS_exit_group, 0);
    if (pid < 0)
        return cw_err_set(err, CW_ESYS, "images need copies of the process: clone() fails: %s",
                          strerrordesc_np((int)-pid));
    for (uint32_t i = 0; i < WAIT_TRIES_MAX && ended == -EINTR; i++)
        ended = system_call(SYS_wait4, pid, &status, __WCLONE, 0);
    if (ended != pid || !WIFEXITED(status))
        return cw_err_set(err, CW_ESYS, "images need copies of the process: wait4() fails: %s",
                          ended < 0 ? strerrordesc_np((int)-ended) : "the copy was ended");
    return 0;
}

int image_probe(struct cw_err *err)
{
    if (probe_proc(err) || probe_prctl(err))
        return err->code;
    return probe_clone(err);
}
