#include "rdevice/image/copy.h"

#include "rdevice/image/files.h"
#include "rdevice/image/header.h"
#include "rdevice/image/memory.h"
#include "rdevice/image/stream.h"
#include "rdevice/image/system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CLOSED_MAX 1048576 /* closed one by one where close_range() is not known */
#define WAIT_TRIES_MAX 1000u

static struct copy_outcome *shared; /* with the copy */
static long pid;                    /* of the copy; 0: none */

static uint64_t page_up(uint64_t size)
{
    return (size + CW_IMAGE_PAGE - 1) / CW_IMAGE_PAGE * CW_IMAGE_PAGE;
}

int copy_prepare(struct image_range *range, struct cw_err *err)
{
    uint64_t size = page_up(sizeof(*shared));
    void *at = shared;

    if (!at)
        at = system_map(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (system_failed(at))
        return cw_err_set(err, CW_ENOMEM, "no memory for the outcome of an image: %s",
                          strerrordesc_np((int)-(long)at));
    shared = at;
    *range = (struct image_range){(uint64_t)(uintptr_t)at, size};
    return 0;
}

/* --- in the copy ----------------------------------------------------------------------------- */

/* Sockets above all: their peers must see the end of the process, not that of its copy. */
static void close_descriptors(void)
{
    int null;

    if (system_call(SYS_close_range, 0, ~0u, 0) < 0)
        for (int fd = 0; fd < CLOSED_MAX; fd++)
            system_close(fd);
    null = system_open("/dev/null", O_RDWR, 0);
    if (null == 0) {
        system_call(SYS_dup3, null, 1, 0);
        system_call(SYS_dup3, null, 2, 0);
    }
}

/* Memory that the copy alone has. */
struct workspace {
    struct cw_image_header header;
    void *memory, *stream;
    uint64_t start, size;
};

static struct workspace *make_workspace(struct cw_err *err)
{
    uint64_t own = page_up(sizeof(struct workspace));
    uint64_t memory = page_up(memory_size()), stream = page_up(stream_size());
    uint64_t size = own + memory + stream;
    char *at = system_memory(size);
    struct workspace *w = (struct workspace *)(void *)at;

    if (!at) {
        cw_err_set(err, CW_ENOMEM, "no memory for the copy of the process");
        return NULL;
    }
    w->memory = at + own;
    w->stream = at + own + memory;
    w->start = (uint64_t)(uintptr_t)at;
    w->size = size;
    return w;
}

static int write_image(struct workspace *w, const struct copy_work *work, int fd, uint32_t base,
                       struct cw_err *err)
{
    struct stream *stream = stream_begin(w->stream, fd, base ? work->base_tag : 0, work->tag);
    const struct image_setting *setting = work->setting;

    if (setting->also)
        stream_also(stream, setting->also(setting->ctx));
    if (stream_header(stream, &w->header, err) || memory_write(w->memory, stream, err) ||
        stream_end(stream, err))
        return err->code;
    shared->sent = stream_sent(stream);
    shared->bytes = stream_bytes(stream);
    return 0;
}

static int do_work(const struct copy_work *work, struct cw_err *err)
{
    const struct image_setting *setting = work->setting;
    struct workspace *w = make_workspace(err);
    uint32_t base = work->base;
    int fd;

    if (!w || memory_look(w->memory, &w->header, err) ||
        header_fill(&w->header, work->order, work->context, work->handoff, err))
        return err->code;
    memory_leave_out(w->memory, w->start, w->size);
    for (uint32_t i = 0; i < work->left_out_count; i++)
        memory_leave_out(w->memory, work->left_out[i].start, work->left_out[i].size);
    fd = setting->open(setting->ctx, memory_bytes(w->memory), &base, err);
    if (fd < 0)
        return err->code ? err->code : cw_err_set(err, CW_ESYS, "the image has nowhere to go");
    if (write_image(w, work, fd, base, err))
        return err->code;
    if (files_try(err)) /* in time: once it is safe, what was before it is forgotten */
        return err->code;
    return setting->finish(setting->ctx, fd, err) < 0 ? CW_ESYS : 0;
}

/* A copy whose program has ended ends too: the next incarnation of the rank takes its own images.
 */
static void end_with_parent(long parent)
{
    system_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (system_call(SYS_getppid) != parent)
        system_call(SYS_exit_group, 0);
}

static void __attribute__((noreturn)) copy_main(const struct copy_work *work, long parent)
{
    end_with_parent(parent);
    close_descriptors();
    shared->stored = do_work(work, &shared->err) == 0;
    for (;;)
        system_call(SYS_exit_group, 0);
}

/* --- in the program -------------------------------------------------------------------------- */

/* No exit signal: the program's wait() and SIGCHLD do not see the copy. */
int copy_begin(const struct copy_work *work, struct cw_err *err)
{
    long made, own = system_call(SYS_getpid);

    memset(shared, 0, sizeof(*shared));
    made = system_call(SYS_clone, 0, 0, 0, 0, 0);
    if (made == 0)
        copy_main(work, own);
    if (made < 0)
        return cw_err_set(err, CW_ESYS, "the process could not be copied: %s%s",
                          strerrordesc_np((int)-made),
                          made == -ENOMEM ? "; the kernel may not promise so much memory, see "
                                            "vm.overcommit_memory"
                                          : "");
    pid = made;
    return 0;
}

static void set_outcome(struct copy_outcome *outcome, int status)
{
    *outcome = *shared;
    outcome->err.text[CW_ERR_TEXT_MAX - 1] = '\0';
    if (WIFEXITED(status) && outcome->stored)
        return;
    outcome->stored = false;
    if (WIFSIGNALED(status))
        cw_err_set(&outcome->err, CW_ESYS, "the copy of the process was ended by signal %d%s",
                   WTERMSIG(status),
                   WTERMSIG(status) == SIGKILL ? ", perhaps for want of memory" : "");
    else if (outcome->err.text[0] == '\0')
        cw_err_set(&outcome->err, CW_ESYS, "the copy of the process ended early");
}

bool copy_ended(struct copy_outcome *outcome)
{
    int status = 0;
    long ended = system_call(SYS_wait4, pid, &status, __WCLONE | WNOHANG, 0);

    if (ended == 0 || ended == -EINTR)
        return false;
    pid = 0;
    set_outcome(outcome, ended < 0 ? 0 : status);
    return true;
}

void copy_kill(void)
{
    int status;

    if (pid == 0)
        return;
    system_call(SYS_kill, pid, SIGKILL);
    for (uint32_t i = 0; i < WAIT_TRIES_MAX; i++)
        if (system_call(SYS_wait4, pid, &status, __WCLONE, 0) != -EINTR)
            break;
    pid = 0;
}

void copy_forget(void)
{
    shared = NULL;
    pid = 0;
}
