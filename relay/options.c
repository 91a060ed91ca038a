#include "relay/options.h"
#include "relay/core/bounds.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENGINE_AUTO "auto"

static uint64_t whole_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t relay_settings_log_memory(const struct relay_settings *settings)
{
    uint64_t most = settings->memory_max / 4 * 3;
    uint64_t wanted = settings->log_memory ? settings->log_memory : whole_memory() / 4;

    return wanted < most ? wanted : most;
}

const char *relay_settings_log_dir(const struct relay_settings *settings)
{
    const char *dir = settings->log_dir ? settings->log_dir : getenv("TMPDIR");

    return dir && dir[0] ? dir : "/var/tmp";
}

const char *relay_settings_disk_dir(const struct relay_settings *settings)
{
    bool none = settings->log_disk == 0 || settings->log_safety == RELAY_LOG_SYNCED;

    return none ? NULL : relay_settings_log_dir(settings);
}

void relay_settings_init(struct relay_settings *settings)
{
    *settings = (struct relay_settings){.engine = relay_engine_find(RELAY_ENGINE_DEFAULT),
                                        .pools = RELAY_POOLS_DEFAULT,
                                        .log_disk = RELAY_LOG_DISK_SHARE,
                                        .memory_max = whole_memory() / 2};
}

static int take_engine(void *to, const char *name, struct cw_err *err)
{
    struct relay_settings *settings = to;

    settings->engine = relay_engine_find(name);
    if (settings->engine || strcmp(name, ENGINE_AUTO) == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL,
                      "--engine %s: no such engine; see causeway relay --list-engines", name);
}

#define AT(field) offsetof(struct relay_settings, field)

const struct cw_option relay_setting_options[] = {
    {"engine", .argument = "NAME", CW_OPTION_CALL, .take = take_engine,
     .help = "how the relay waits and moves bytes (default " RELAY_ENGINE_DEFAULT
             "), or auto: uring where this system can run it"},
    {"rings", .argument = "on|off", CW_OPTION_WORD, AT(rings_off),
     .help = "of engine poll: memory shared with each rank on this machine instead of its socket "
             "(default on)"},
    {"memory-max", .argument = "BYTES", CW_OPTION_BYTES, AT(memory_max), .min = RELAY_MEMORY_MIN,
     .help = "what the relay may hold, like 2G (default: half of the memory)"},
    {"log-memory", .argument = "BYTES", CW_OPTION_BYTES, AT(log_memory), .min = 1,
     .help = "of it, for what is needed to restart ranks (default: a quarter of the memory); what "
             "is more goes to disk"},
    {"log-dir", .argument = "DIR", CW_OPTION_TEXT, AT(log_dir),
     .help = "where (default: $TMPDIR or /var/tmp), in a file without a name"},
    {"log-disk", .argument = "BYTES", CW_OPTION_BYTES, AT(log_disk),
     .help = "how much at most; 0: nothing (default: half of what is free there). When memory and "
             "disk are spent, the rank with the largest log, of the job whose logs hold the most, "
             "can no longer be restarted"},
    {"log-safety", .argument = "memory|file|sync|copy", CW_OPTION_WORD, AT(log_safety),
     .help =
         "what the log outlives: memory (default, but with --channel file): nothing, it ends "
         "with the relay's process, "
         "and so do the jobs; file: that process, which is started again on its log; sync: the "
         "loss of power, too: nothing is told to anybody before it is on disk; copy: as file, and "
         "the loss of its host, where its dispatcher names relays that have a copy"},
    {0},
};
