/* Engines: how a relay waits for its connections and moves their bytes to and from the core.
 * [Relay] 4 describes the first four. Every engine passes the same conformance suite. */
#ifndef RELAY_ENGINE_H
#define RELAY_ENGINE_H

#include "common/transport.h"
#include "relay/core/core.h"

#define RELAY_LISTENERS_MAX 10     /* one of them for links that we open, one for the disk */
#define RELAY_ENGINE_COPIES "poll" /* the one that can serve a relay whose log is copied */
#define RELAY_ENGINE_DEFAULT "poll"
#define RELAY_POOL_MAX 256 /* threads of one pool */

struct relay_listener {
    int fd;       /* non-blocking; the caller closes it after the engine */
    bool dialled; /* gives connections that we have made, by relay_accept alone: no accept(2) */
    bool wakes;   /* an eventfd: says that the disk has results, and gives no connections */
    struct cw_address address;
};

/* Threads of the engines that have pools. */
struct relay_pools {
    uint32_t threads;   /* pool: how many take turns at poll() */
    uint32_t receivers; /* pipeline: [Relay] 4.4, role A */
    uint32_t loggers;   /* role B; 0: the receivers do it */
    uint32_t senders;   /* role C */
};

#define RELAY_POOLS_DEFAULT ((struct relay_pools){2, 1, 0, 1})

/* Opens the links that a core wants, session and all; each comes back by a listener that gives what
 * was dialled. */
struct relay_dialler {
    void *ctx;
    bool (*dial)(void *ctx, const struct relay_dial *dial); /* false: no room; does not block */
    /* The job has ended: nothing comes back of what was asked for it. */
    void (*cancel)(void *ctx, const uint8_t job[CW_ID_SIZE]);
};

/* Writes and reads what a core's logs ask for. All zero: there is no disk. */
struct relay_disk {
    void *ctx;
    void (*take)(void *ctx, const struct relay_log_io *io); /* does not block */
    /* The next result; false: there is none now. A listener that wakes says when to ask. */
    bool (*next_done)(void *ctx, struct relay_log_done *done);
};

struct relay_engine_config {
    struct relay_core *core; /* the caller's; driven by this engine alone between open and close */
    const struct relay_listener *listeners; /* borrowed until close */
    int listener_count;
    struct relay_dialler dialler;                       /* all zero: no links can be opened */
    void (*give_back)(const struct relay_pages *pages); /* where the core has a region */
    struct relay_disk disk;                             /* where the core's logs have a disk */
    uint64_t spin_ns; /* how long to look again before sleeping, since the last byte moved */
    struct relay_pools pools;
    bool rings; /* offered to clients on the same machine; engine poll */
};

struct relay_engine;

struct relay_engine_ops {
    const char *name;
    const char *summary; /* one line, for --list-engines */
    /* Whether this system can run it; NULL: every one can. Errors: CW_ENOTFOUND, naming what is
     * missing. */
    int (*check)(struct cw_err *err);
    /* Returns 0 with *engine set, or a negative code with nothing left behind. Does not block. */
    int (*open)(struct relay_engine **engine, const struct relay_engine_config *config,
                struct cw_err *err);
    /* Serves until stop. Returns 0, or a negative code when it cannot go on. Called once. */
    int (*run)(struct relay_engine *engine, struct cw_err *err);
    /* Makes run return soon. Any thread, any time between open and close, async-signal-safe. */
    void (*stop)(struct relay_engine *engine);
    /* After run returned: closes every connection and frees the engine. */
    void (*close)(struct relay_engine *engine);
};

extern const struct relay_engine_ops relay_engine_poll;
extern const struct relay_engine_ops relay_engine_thread;
extern const struct relay_engine_ops relay_engine_pool;
extern const struct relay_engine_ops relay_engine_pipeline;
extern const struct relay_engine_ops relay_engine_uring;

/* NULL-terminated. */
extern const struct relay_engine_ops *const relay_engines[];

/* NULL when there is none of that name. */
const struct relay_engine_ops *relay_engine_find(const char *name);

/* An engine that asks more of the system than others do, where the system has it; else the default
 * one, and *why says what is missing. */
const struct relay_engine_ops *relay_engine_auto(struct cw_err *why);

#endif
