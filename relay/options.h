/* The options of a relay that `causeway run` takes too, for the relay that it starts itself. */
#ifndef RELAY_OPTIONS_H
#define RELAY_OPTIONS_H

#include "relay/engine/engine.h"

#include <getopt.h>

enum relay_option {
    RELAY_OPTION_ENGINE,
    RELAY_OPTION_THREADS,
    RELAY_OPTION_RECEIVERS,
    RELAY_OPTION_LOGGERS,
    RELAY_OPTION_SENDERS,
    RELAY_OPTION_MEMORY_MAX,
    RELAY_OPTION_LOG_MEMORY,
    RELAY_OPTION_LOG_DISK,
    RELAY_OPTION_LOG_DIR,
    RELAY_OPTION_LOG_SAFETY,
    RELAY_OPTION_RINGS,
    RELAY_OPTIONS
};

/* Without the two dashes; each takes a value. */
extern const char *const relay_option_names[RELAY_OPTIONS];

/* They and an end, for getopt_long: RELAY_OPTIONS + 1 of them. The value of each is `first` + its
 * number. */
void relay_option_list(struct option *options, int first);

/* What the log of a relay outlives. */
enum relay_log_safety {
    RELAY_LOG_IN_MEMORY, /* nothing: it ends with the relay's process, and so do its jobs */
    RELAY_LOG_IN_FILE,   /* that process: another one goes on with the log */
    RELAY_LOG_SYNCED,    /* also the loss of power: what was told to the world is on disk */
};

struct relay_settings {
    const struct relay_engine_ops *engine; /* NULL: whichever this system can run */
    struct relay_pools pools;
    bool rings; /* offered to clients on the same machine */
    uint64_t memory_max;
    uint64_t log_memory; /* of the logs; 0: a share of what there is */
    uint64_t log_disk;   /* ... and on disk */
    bool log_disk_given; /* else a share of what is free there */
    const char *log_dir; /* NULL: where temporary files are kept */
    enum relay_log_safety log_safety;
};

void relay_settings_init(struct relay_settings *settings);

/* What the logs may hold in memory, and where what is more is kept. */
uint64_t relay_settings_log_memory(const struct relay_settings *settings);
const char *relay_settings_log_dir(const struct relay_settings *settings);
/* The same, or NULL: no disk is wanted, or the relay has a directory of its own there. */
const char *relay_settings_disk_dir(const struct relay_settings *settings);

/* Errors: CW_EINVAL, naming the option, the value and what was expected. */
int relay_settings_take(struct relay_settings *settings, enum relay_option option,
                        const char *value, struct cw_err *err);

#endif
