/* Engines: how a relay waits for its connections and moves their bytes to and from the core.
 * [Relay] 4 describes the first four. Every engine passes the same conformance suite. */
#ifndef RELAY_ENGINE_H
#define RELAY_ENGINE_H

#include "common/transport.h"
#include "relay/core/core.h"

#define RELAY_LISTENERS_MAX 8

struct relay_listener {
    int fd; /* non-blocking; the caller closes it after the engine */
    struct cw_address address;
};

struct relay_engine_config {
    struct relay_core *core; /* the caller's; driven by this engine alone between open and close */
    const struct relay_listener *listeners; /* borrowed until close */
    int listener_count;
    uint64_t spin_ns; /* how long to look again before sleeping, since the last byte moved */
};

struct relay_engine;

struct relay_engine_ops {
    const char *name;
    const char *summary; /* one line, for --list-engines */
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

/* NULL-terminated. */
extern const struct relay_engine_ops *const relay_engines[];

/* NULL when there is none of that name. */
const struct relay_engine_ops *relay_engine_find(const char *name);

#endif
