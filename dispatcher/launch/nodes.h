/* The nodes of a job, one on each of its hosts, and one on this machine: started side by side, a
 * bounded number at a time; a session with each, which outlives its connection; and, where that
 * cannot be made again in time, the host is lost, until another node can be started there. All in
 * the job's loop, which never waits for one of them. */
#ifndef DISPATCHER_NODES_H
#define DISPATCHER_NODES_H

#include "common/frame.h"
#include "common/loop.h"
#include "dispatcher/hosts/host_list.h"
#include "dispatcher/wire/greeting.h"
#include "dispatcher/wire/node_child.h"
#include "dispatcher/wire/node_frames.h"

#include <sys/types.h>

#define NODES_STARTS_MAX 32u /* nodes that are being started at a time */
#define NODES_DROPS_MAX 8    /* connections that a busy sshd ends, of a start */
#define NODES_DROP_PAUSE_NS                                                                        \
    500000000ull /* after one; doubled each time, and spread over hosts                            \
                  */
#define NODES_DROP_PAUSE_MAX_NS 4000000000ull
#define NODES_START_NS 60000000000ull      /* for one of them to answer */
#define NODES_CONNECT_MAX_S 20u            /* for ssh to connect */
#define NODES_EXPLAIN_NS 1000000000ull     /* for a launcher whose connection ended to end */
#define NODES_PERIOD_MAX_NS 1000000000ull  /* between two signs of life */
#define NODES_PERIODS 4u                   /* of these in the timeout ... */
#define NODES_SILENCE 2u                   /* ... after which another connection is made */
#define NODES_PAUSE_MIN_NS 50000000ull     /* between two such tries; doubled each time ... */
#define NODES_PAUSE_MAX_NS 1000000000ull   /* ... up to this */
#define NODES_END_NS 3000000000ull         /* for nodes to end ... */
#define NODES_END_OWN_NS 6000000000ull     /* ... and for that of this machine, with its units */
#define NODES_RETURN_MIN_NS 1000000000ull  /* until a lost host is tried; doubled each time ... */
#define NODES_RETURN_MAX_NS 60000000000ull /* ... up to this */
#define NODES_RETURNS_MAX 1500u            /* such tries in vain: some 24 hours */
#define NODES_USERS 4u

struct nodes;

/* In the job's loop. A host is known by its index in the list, this machine by the one behind them.
 */
struct nodes_events {
    void (*ready)(void *ctx); /* every host has a node; once */
    /* Before that: this one cannot be had. */
    void (*failed)(void *ctx, uint32_t host, const struct cw_err *err);
    /* After that: it is given up; its ranks were told lost() before. */
    void (*lost)(void *ctx, uint32_t host, const struct cw_err *err);
    /* A host that was lost has another node, which knows nothing of the one before. */
    void (*back)(void *ctx, uint32_t host);
    void (*suspended)(void *ctx, uint32_t host,
                      const struct cw_err *err); /* its connection broke */
    void (*resumed)(void *ctx, uint32_t host);
    /* Nothing is heard of it, and it may be lost or not; or it is heard again. */
    void (*silent)(void *ctx, uint32_t host, bool silent);
    /* The way to it has said something, on stderr. */
    void (*said)(void *ctx, uint32_t host, const char *line);
};

/* Everything borrowed. */
struct nodes_config {
    struct loop *loop;
    const struct host_list *hosts; /* ... beside this machine, whose node is a child process */
    const char *own;               /* program of that child; NULL: there is none */
    int kept_fds[NODE_KEPT_FDS];   /* which it gets; -1: none */
    const uint8_t *job_id;         /* CW_ID_SIZE bytes */
    uint32_t ranks;
    const char *launcher;      /* as of struct launch_command_config */
    const char *launcher_args; /* NULL: none */
    const char *causeway;      /* path on the hosts; NULL: as here */
    uint64_t timeout_ns;       /* of silence, after which a host is lost */
    uint64_t orphan_ns;        /* that nodes go on after that; 0: another dispatcher cannot come */
    const uint8_t *relay_key;  /* CW_KEY_SIZE bytes, from which the keys for that are made */
    char *const *taken;        /* of each host the directory of its node, which a dispatcher before
                                  us started, and which is taken over; NULL: none is */
    uint64_t alive_period_ns;  /* of ranks */
    const struct nodes_events *events;
    void *ctx;
};

/* Who speaks to nodes, through one session with each: dispatcher/launch/remote.h, far_units.h,
 * staging.h. */
struct nodes_user {
    /* Frames of these types, as of struct mux_ops: an error gives the host up. One whose type is
     * nobody's does, too. */
    uint32_t first, last;
    int (*frame)(void *ctx, uint32_t host, uint32_t type, const uint8_t *body, size_t size,
                 struct cw_err *err);
    /* The host is lost: its streams are to be forgotten. */
    void (*lost)(void *ctx, uint32_t host);
    /* There are no sessions any more. NULL: it is not told. */
    void (*over)(void *ctx);
};

/* NULL with *err set: CW_ENOMEM. */
struct nodes *nodes_new(const struct nodes_config *config, struct cw_err *err);
/* Does not wait; nodes that were not told to end do so within the timeout. NULL is allowed. */
void nodes_free(struct nodes *nodes);

/* At most NODES_USERS. */
void nodes_add_user(struct nodes *nodes, const struct nodes_user *user, void *ctx);

/* Begins to start them: ready() or failed() comes. */
void nodes_open(struct nodes *nodes);

/* Tells them to end, and waits for that, for a bounded time. Once; NULL is allowed. */
void nodes_end(struct nodes *nodes);

/* A process of these has ended; the caller has waited for it. Returns false: it is none. */
bool nodes_child_ended(struct nodes *nodes, pid_t pid, int status);
bool nodes_has_child(const struct nodes *nodes, pid_t pid);

/* The session with a host that is there, maybe suspended; NULL: it is not. */
struct mux *nodes_mux(struct nodes *nodes, uint32_t host);
/* Errors: CW_ECLOSED: the host is not there; as of mux_send. */
int nodes_tell(struct nodes *nodes, uint32_t host, uint32_t type, const void *body, size_t size,
               struct cw_err *err);
int nodes_tell_event(struct nodes *nodes, uint32_t host, uint32_t type, uint32_t of, uint32_t value,
                     struct cw_err *err);

/* What leads to them (dispatcher/launch/node_commands.h). */
const struct node_commands *nodes_commands(const struct nodes *nodes);

/* The index of this machine's, which is how many hosts there are, too; and one more than that. */
uint32_t nodes_here(const struct nodes *nodes);
uint32_t nodes_count(const struct nodes *nodes);
const char *nodes_name(const struct nodes *nodes, uint32_t host);
/* What the node told of its host, once it is ready. */
const struct greeting_hello *nodes_facts(const struct nodes *nodes, uint32_t host);

#endif
