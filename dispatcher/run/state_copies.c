#include "dispatcher/run/state_copies.h"
#include "common/machine.h"
#include "dispatcher/launch/node_commands.h"
#include "dispatcher/state/state_copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct state_copies {
    struct parts *parts;
    struct node_child child;
    struct state_link link;
    struct loop_watch greeting; /* of the keeper, until it has come */
    struct loop_timer timer;    /* when that has taken too long, or another one is tried */
    enum { STATE_COPIES_AWAY, STATE_COPIES_STARTING, STATE_COPIES_THERE } state;
    uint32_t host;
    uint32_t tried;    /* hosts, in vain, since there was one */
    struct cw_err why; /* it is not there */
};

static uint64_t now_of(const struct state_copies *c)
{
    return loop_now_ns(c->parts->loop);
}

static const char *name_of(const struct state_copies *c)
{
    return nodes_name(c->parts->nodes, c->host);
}

/* --- where it is --- */

static bool has_relay(const struct state_copies *c, uint32_t host)
{
    for (uint32_t i = 0; i < c->parts->layout.relays; i++)
        if (c->parts->layout.relay_host[i] == host)
            return true;
    return false;
}

static bool has_own(const struct state_copies *c, uint32_t host)
{
    const char *dir = nodes_facts(c->parts->nodes, host)->dir;

    return strncmp(state_file_dir(c->parts->state), dir, strlen(dir)) == 0;
}

static bool is_on(const struct state_copies *c, uint32_t host, uint32_t other)
{
    return cw_machine_is_same(nodes_facts(c->parts->nodes, host)->system,
                              nodes_facts(c->parts->nodes, other)->system);
}

/* With a host that has a relay the job ends: no copy of it can be older than the job. This machine
 * is for want of others. Returns HOSTS_NONE where there is none. */
static uint32_t choose_host(const struct state_copies *c, bool elsewhere)
{
    const struct nodes *nodes = c->parts->nodes;
    uint32_t hosts = nodes_here(nodes);

    for (uint32_t i = 0; i < hosts; i++) {
        uint32_t host = (c->host + c->tried + i) % hosts;

        if (!nodes_mux(c->parts->nodes, host) || !has_relay(c, host) || has_own(c, host))
            continue;
        if (!elsewhere || !is_on(c, host, hosts))
            return host;
    }
    return HOSTS_NONE;
}

/* --- its end --- */

static void let_go(struct state_copies *c)
{
    state_file_copy_no_more(c->parts->state, &c->link);
    loop_unwatch(c->parts->loop, &c->greeting);
    state_link_close(&c->link);
    node_child_kill(&c->child);
}

/* What is left there is not to be gone on with. */
static void fail(struct state_copies *c, const struct cw_err *why)
{
    struct cw_err err;

    if (c->state == STATE_COPIES_THERE)
        log_notice(&c->parts->log,
                   "host %s: the state of the job is not copied there any more: %s; until it is "
                   "copied again, the job ends with this machine",
                   name_of(c), why->text);
    let_go(c);
    nodes_tell(c->parts->nodes, c->host, NODE_FORGET, NULL, 0, &err);
    cw_err_set(&c->why, why->code, "host %s: the state of the job cannot be copied there: %s",
               name_of(c), why->text);
    c->state = STATE_COPIES_AWAY;
    c->tried++;
    loop_timer_set(&c->timer, now_of(c) + STATE_COPIES_PAUSE_NS);
}

static void on_lost(void *ctx, struct state_link *link, const struct cw_err *why)
{
    (void)link;
    fail(ctx, why);
}

/* --- its beginning --- */

/* What a dispatcher before us has left elsewhere is of no use any more. */
static void forget_others(const struct state_copies *c)
{
    struct cw_err err;

    for (uint32_t host = 0; host < nodes_here(c->parts->nodes); host++)
        if (host != c->host && !has_own(c, host))
            nodes_tell(c->parts->nodes, host, NODE_FORGET, NULL, 0, &err);
}

/* The keeper has greeted, or ended: what there is of the state goes to it, and waits for it. */
static void on_greeting(void *ctx)
{
    struct state_copies *c = ctx;
    struct state_file *state = c->parts->state;
    struct cw_err err = {0};

    loop_unwatch(c->parts->loop, &c->greeting);
    c->state = STATE_COPIES_THERE;
    if (state_file_copy_to(state, &c->link, on_lost, c, &err) < 0)
        fail(c, &err);
    else
        state_file_sync(state);
    if (c->state != STATE_COPIES_THERE)
        return;
    forget_others(c);
    c->tried = 0;
    c->why.code = CW_OK;
    loop_timer_set(&c->timer, LOOP_NEVER);
    log_verbose(&c->parts->log, "host %s has a copy of the state of the job", name_of(c));
}

static int start(struct state_copies *c, struct cw_err *err)
{
    static struct launch_command command;
    uint64_t wait_ns = c->parts->options->hosts.timeout_ns / STATE_COPIES_WAIT_SHARE;
    char dir[GREETING_TEXT_MAX + sizeof(STATE_COPY_DIR) + 1];
    int in_fd, out_fd;

    snprintf(dir, sizeof(dir), "%s/" STATE_COPY_DIR, nodes_facts(c->parts->nodes, c->host)->dir);
    if (node_commands_keep(nodes_commands(c->parts->nodes), c->host, dir, &command, err) < 0 ||
        node_child_start(&c->child, &command, &in_fd, &out_fd, err) < 0)
        return err->code;
    state_link_open(&c->link, in_fd, out_fd, wait_ns);
    if (loop_watch(c->parts->loop, &c->greeting, out_fd, EPOLLIN, on_greeting, c) < 0)
        return cw_err_set(err, CW_ESYS, "watching its keeper");
    loop_timer_set(&c->timer, now_of(c) + STATE_COPIES_START_NS);
    c->state = STATE_COPIES_STARTING;
    return CW_OK;
}

static void on_timer(void *ctx)
{
    struct state_copies *c = ctx;
    uint32_t host = choose_host(c, true);
    struct cw_err err;

    if (c->state == STATE_COPIES_STARTING) {
        fail(c, (cw_err_set(&err, CW_ETIME, "its keeper does not greet in time"), &err));
        return;
    }
    if (host == HOSTS_NONE)
        host = choose_host(c, false);
    if (host == HOSTS_NONE) {
        cw_err_set(&c->why, CW_ENOTFOUND, "there is no other host for the state of the job");
        loop_timer_set(&c->timer, now_of(c) + STATE_COPIES_PAUSE_NS);
        return;
    }
    c->host = host;
    if (start(c, &err) < 0)
        fail(c, &err);
}

/* --- all of them --- */

static bool on_said(void *ctx, const char *line)
{
    struct state_copies *c = ctx;

    log_notice(&c->parts->log, "host %s: %s", name_of(c), line);
    return true;
}

struct state_copies *state_copies_new(struct parts *parts, struct cw_err *err)
{
    struct state_copies *c = calloc(1, sizeof(*c));

    if (!c) {
        cw_err_set(err, CW_ENOMEM, "no memory for copies of the state of the job");
        return NULL;
    }
    c->parts = parts;
    c->greeting.fd = c->link.in_fd = c->link.out_fd = -1;
    node_child_init(&c->child, parts->loop, on_said, c);
    loop_timer_add(parts->loop, &c->timer, on_timer, c);
    loop_timer_set(&c->timer, 0);
    return c;
}

void state_copies_free(struct state_copies *c)
{
    if (!c)
        return;
    let_go(c);
    loop_timer_remove(&c->timer);
    free(c);
}

bool state_copies_are_there(const struct state_copies *c, struct cw_err *err)
{
    err->code = CW_OK;
    if (!c || c->state == STATE_COPIES_THERE)
        return true;
    *err = c->why;
    return false;
}

bool state_copies_child_ended(struct state_copies *c, pid_t pid, int status)
{
    if (!state_copies_have_child(c, pid))
        return false;
    node_child_ended(&c->child, status);
    return true;
}

bool state_copies_have_child(const struct state_copies *c, pid_t pid)
{
    return c && pid > 0 && c->child.pid == pid;
}
