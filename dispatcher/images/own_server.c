#include "dispatcher/images/own_server.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

void own_server_init(struct own_server *own)
{
    *own = (struct own_server){.ready.fd = -1, .child = {.listens_fd = -1, .life_fd = -1}};
}

static void close_life(struct own_server *own)
{
    if (own->child.life_fd >= 0)
        close(own->child.life_fd);
    own->child.life_fd = -1;
}

/* It listens, or does not start: then it ends by itself, or is killed when its time is up. Of its
 * end its parent hears. */
static void on_ready(void *ctx)
{
    struct own_server *own = ctx;

    own->listens = ckptsrv_child_listens(own->ready.fd, own->why, sizeof(own->why));
    loop_close(own->loop, &own->ready);
    if (!own->listens)
        return;
    loop_timer_set(&own->timer, LOOP_NEVER);
    own->listened = true;
    own->events->listens(own->ctx);
}

static int start(struct own_server *own, struct cw_err *err)
{
    if (ckptsrv_child_start(&own->config, &own->child, err) < 0)
        return err->code;
    own->pid = own->child.pid;
    own->why[0] = '\0';
    loop_watch(own->loop, &own->ready, own->child.listens_fd, EPOLLIN, on_ready, own);
    loop_timer_set(&own->timer, loop_now_ns(own->loop) + RELAY_RETURN_NS_MAX);
    own->events->started(own->ctx, own->pid);
    return CW_OK;
}

static bool again(struct own_server *own)
{
    uint64_t at_ns;

    if (!relay_restarts_next(&own->restarts, loop_now_ns(own->loop), &at_ns))
        return false;
    loop_timer_set(&own->timer, at_ns);
    return true;
}

/* The time of the next start has come, or it took too long to listen. */
static void on_timer(void *ctx)
{
    struct own_server *own = ctx;
    struct cw_err err = {0};

    if (own->pid > 0) {
        kill(own->pid, SIGKILL);
    } else if (start(own, &err) < 0 && !again(own)) {
        cw_err_wrap(&err, "after it was started again %u times", own->restarts.count);
        own->events->failed(own->ctx, &err);
    }
}

int own_server_start(struct own_server *own, struct cw_err *err)
{
    own->begun = true;
    loop_timer_add(own->loop, &own->timer, on_timer, own);
    return start(own, err);
}

/* Its end may be heard of before what it has said of it. */
static void hear_why(struct own_server *own)
{
    struct pollfd p = {.fd = own->ready.fd, .events = POLLIN};

    if (p.fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & POLLIN)
        ckptsrv_child_listens(p.fd, own->why, sizeof(own->why));
}

bool own_server_ended(struct own_server *own, bool exited, struct cw_err *err)
{
    hear_why(own);
    own->pid = 0;
    own->listens = false;
    loop_close(own->loop, &own->ready);
    loop_timer_set(&own->timer, LOOP_NEVER);
    close_life(own);
    if ((own->listened || !exited) && again(own))
        return true;
    cw_err_set(err, CW_ESYS, "the job's own checkpoint server %s%s%s",
               own->listened ? "ends again and again" : "cannot be started",
               own->why[0] ? ": " : "", own->why);
    return false;
}

void own_server_close(struct own_server *own)
{
    if (!own->begun)
        return;
    loop_close(own->loop, &own->ready);
    loop_timer_remove(own->loop, &own->timer);
    close_life(own);
}
