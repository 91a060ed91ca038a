/* The options of a relay that `causeway run` takes too, for the relays that it starts itself. */
#ifndef RELAY_OPTIONS_H
#define RELAY_OPTIONS_H

#include "common/options.h"
#include "relay/engine/engine.h"

#define RELAY_LOG_DISK_SHARE UINT64_MAX /* for logs: a share of what is free there */

/* What the log of a relay outlives. */
enum relay_log_safety {
    RELAY_LOG_IN_MEMORY, /* nothing: it ends with the relay's process, and so do its jobs */
    RELAY_LOG_IN_FILE,   /* that process: another one goes on with the log */
    RELAY_LOG_SYNCED,    /* also the loss of power: what was told to the world is on disk */
    RELAY_LOG_COPIED,    /* that process, and its host: other relays have copies */
};

struct relay_settings {
    const struct relay_engine_ops *engine; /* NULL: whichever this system can run */
    struct relay_pools pools;
    uint32_t rings_off; /* they are not offered to clients on the same machine */
    uint64_t memory_max;
    uint64_t log_memory; /* of the logs; 0: a share of what there is */
    uint64_t log_disk;   /* ... and on disk; 0: nothing */
    const char *log_dir; /* NULL: where temporary files are kept */
    enum relay_log_safety log_safety;
};

/* Of a struct relay_settings; each has a value. */
extern const struct cw_option relay_setting_options[];

void relay_settings_init(struct relay_settings *settings);

/* What the logs may hold in memory, and where what is more is kept. */
uint64_t relay_settings_log_memory(const struct relay_settings *settings);
const char *relay_settings_log_dir(const struct relay_settings *settings);
/* The same, or NULL: no disk is wanted, or the relay has a directory of its own there. */
const char *relay_settings_disk_dir(const struct relay_settings *settings);

#endif
