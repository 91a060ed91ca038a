/* The process that leads to a node on a host: ssh or the like. What it prints on stderr is kept,
 * to say why it failed. */
#ifndef DISPATCHER_NODE_CHILD_H
#define DISPATCHER_NODE_CHILD_H

#include "common/loop.h"
#include "dispatcher/wire/launch_command.h"

#include <stdbool.h>
#include <sys/types.h>

#define NODE_CHILD_LINE_MAX 200u /* bytes of a line on stderr */
#define NODE_CHILD_LINES 3u      /* that are kept, the last ones */

/* Of the node of this machine: what is open as long as ranks may live; the files of a relay's log
 * that is kept (struct relay_kept). */
#define NODE_KEPT_FDS 3

struct node_child {
    struct loop *loop; /* borrowed */
    pid_t pid;         /* 0: there is none, or it has ended */
    int status;        /* as of waitpid(2), once it has ended */
    struct loop_watch errors;
    uint32_t lines; /* that came */
    size_t used;    /* of the one that comes */
    char line[NODE_CHILD_LINES][NODE_CHILD_LINE_MAX + 1];
    bool here; /* what it starts is our user's: it stays in our session, and prints to our stderr */
    int kept_fds[NODE_KEPT_FDS]; /* open there under the same numbers; -1: none is */
    /* A line has come. Returns whether it may say why it fails. */
    bool (*said)(void *ctx, const char *line);
    void *ctx;
};

/* There is none. */
void node_child_init(struct node_child *child, struct loop *loop,
                     bool (*said)(void *ctx, const char *line), void *ctx);

/* Starts it. *in_fd (to it) and *out_fd (from it) are the caller's. Errors: CW_ENOTFOUND: the
 * program; CW_ESYS. */
int node_child_start(struct node_child *child, const struct launch_command *command, int *in_fd,
                     int *out_fd, struct cw_err *err);

/* SIGKILL; nobody waits for it here. */
void node_child_kill(struct node_child *child);

/* The caller has waited for it. */
void node_child_ended(struct node_child *child, int status);

/* Whether ssh said that the other side ended the connection before anybody had logged in, as sshd
 * and gateways do with some of many that come at once (sshd_config(5), MaxStartups). */
bool node_child_was_dropped(const struct node_child *child);

/* Why it failed, as far as it said so. Returns `text`. */
const char *node_child_why(struct node_child *child, char *text, size_t size);

#endif
