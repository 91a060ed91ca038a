#include "dispatcher/relays/own_relay.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

void own_relay_init(struct own_relay *own)
{
    *own = (struct own_relay){.ready.fd = -1, .kept = {.state_fd = -1, .disk_fd = -1}};
}

void own_relay_kill(struct own_relay *own)
{
    own->killed = true;
    if (own->pid > 0)
        kill(own->pid, SIGKILL);
}

/* It listens, or does not start. Of one that was started before, the end is heard of. */
static void on_ready(void *ctx)
{
    struct own_relay *own = ctx;
    struct cw_err err;

    own->listens = relay_process_listens(own->ready.fd);
    loop_close(own->loop, &own->ready);
    loop_timer_set(&own->timer, LOOP_NEVER);
    if (own->listens) {
        own->events->listens(own->ctx);
    } else if (own->restarts.count > 0) {
        own_relay_kill(own);
    } else {
        cw_err_set(&err, CW_ESYS, "the job's own relay did not start");
        own->events->failed(own->ctx, &err);
    }
}

static int start(struct own_relay *own, struct cw_err *err)
{
    int listens_fd;
    pid_t pid = relay_child_start(&own->child, &listens_fd, err);

    if (pid < 0)
        return err->code;
    own->pid = pid;
    own->killed = false;
    loop_watch(own->loop, &own->ready, listens_fd, EPOLLIN, on_ready, own);
    own->events->started(own->ctx, pid);
    return CW_OK;
}

/* Where the dead process used io_uring, the kernel may still be about to close its sockets, and
 * what looks like another process listens there. */
static void remove_socket(const struct own_relay *own)
{
    struct stat st;

    if (lstat(own->path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(own->path);
}

static int start_again(struct own_relay *own, struct cw_err *err)
{
    remove_socket(own);
    return start(own, err);
}

/* The time of the next start has come, or it took too long to listen. */
static void on_timer(void *ctx)
{
    struct own_relay *own = ctx;
    struct cw_err err;

    if (own->pid > 0) {
        own_relay_kill(own);
    } else if (start_again(own, &err) == CW_OK) {
        loop_timer_set(&own->timer, loop_now_ns(own->loop) + RELAY_RETURN_NS_MAX);
    } else if (!own_relay_again(own)) {
        cw_err_wrap(&err, "after it was started again %u times", own->restarts.count);
        own->events->failed(own->ctx, &err);
    }
}

int own_relay_start(struct own_relay *own, struct cw_err *err)
{
    loop_timer_add(own->loop, &own->timer, on_timer, own);
    return start(own, err);
}

void own_relay_ended(struct own_relay *own)
{
    own->pid = 0;
    if (own->ready.fd >= 0 && own->restarts.count == 0)
        on_ready(own);
    loop_close(own->loop, &own->ready);
    loop_timer_set(&own->timer, LOOP_NEVER);
    own->listens = false;
}

bool own_relay_again(struct own_relay *own)
{
    uint64_t at_ns;

    if (!relay_restarts_next(&own->restarts, loop_now_ns(own->loop), &at_ns))
        return false;
    loop_timer_set(&own->timer, at_ns);
    return true;
}

void own_relay_close(struct own_relay *own)
{
    if (!own->loop)
        return; /* it was never to be started */
    loop_close(own->loop, &own->ready);
    loop_timer_remove(own->loop, &own->timer);
    relay_kept_close(&own->kept);
    if (own->pid > 0)
        kill(own->pid, own->child.outlived ? SIGKILL : SIGTERM);
}
