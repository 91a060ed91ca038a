#include "relay/options.h"
#include "common/parse.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENGINE_AUTO "auto"

const char *const relay_option_names[RELAY_OPTIONS] = {
    [RELAY_OPTION_ENGINE] = "engine",         [RELAY_OPTION_THREADS] = "threads",
    [RELAY_OPTION_RECEIVERS] = "receivers",   [RELAY_OPTION_LOGGERS] = "loggers",
    [RELAY_OPTION_SENDERS] = "senders",       [RELAY_OPTION_MEMORY_MAX] = "memory-max",
    [RELAY_OPTION_LOG_MEMORY] = "log-memory", [RELAY_OPTION_LOG_DISK] = "log-disk",
    [RELAY_OPTION_LOG_DIR] = "log-dir",       [RELAY_OPTION_LOG_SAFETY] = "log-safety",
    [RELAY_OPTION_RINGS] = "rings",
};

void relay_option_list(struct option *options, int first)
{
    for (int i = 0; i < RELAY_OPTIONS; i++)
        options[i] = (struct option){relay_option_names[i], required_argument, NULL, first + i};
    options[RELAY_OPTIONS] = (struct option){0};
}

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
    bool none = settings->log_disk_given && settings->log_disk == 0;

    none |= settings->log_safety == RELAY_LOG_SYNCED;
    return none ? NULL : relay_settings_log_dir(settings);
}

void relay_settings_init(struct relay_settings *settings)
{
    *settings = (struct relay_settings){.engine = relay_engine_find(RELAY_ENGINE_DEFAULT),
                                        .pools = RELAY_POOLS_DEFAULT,
                                        .rings = true,
                                        .memory_max = whole_memory() / 2};
}

static int take_engine(struct relay_settings *settings, const char *name, struct cw_err *err)
{
    settings->engine = relay_engine_find(name);
    if (settings->engine || strcmp(name, ENGINE_AUTO) == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL,
                      "--engine %s: no such engine; see causeway relay --list-engines", name);
}

static int take_memory(struct relay_settings *settings, const char *text, struct cw_err *err)
{
    if (cw_parse_bytes("--memory-max", text, &settings->memory_max, err) < 0)
        return err->code;
    if (settings->memory_max >= RELAY_MEMORY_MIN)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--memory-max %s: at least %lluM", text,
                      RELAY_MEMORY_MIN >> 20);
}

static int take_pool(uint32_t *threads, const char *name, const char *text, uint64_t min,
                     struct cw_err *err)
{
    uint64_t number;

    if (cw_parse_number(name, text, min, RELAY_POOL_MAX, &number, err) < 0)
        return err->code;
    *threads = (uint32_t)number;
    return CW_OK;
}

static int take_switch(bool *on, const char *name, const char *text, struct cw_err *err)
{
    *on = strcmp(text, "on") == 0;
    if (*on || strcmp(text, "off") == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--%s %s: expected on or off", name, text);
}

static int take_log_safety(struct relay_settings *settings, const char *text, struct cw_err *err)
{
    static const char *const names[] = {[RELAY_LOG_IN_MEMORY] = "memory",
                                        [RELAY_LOG_IN_FILE] = "file",
                                        [RELAY_LOG_SYNCED] = "sync"};

    for (int i = 0; i <= RELAY_LOG_SYNCED; i++)
        if (strcmp(text, names[i]) == 0) {
            settings->log_safety = (enum relay_log_safety)i;
            return CW_OK;
        }
    return cw_err_set(err, CW_EINVAL, "--log-safety %s: expected memory, file or sync", text);
}

int relay_settings_take(struct relay_settings *settings, enum relay_option option,
                        const char *value, struct cw_err *err)
{
    switch (option) {
    case RELAY_OPTION_ENGINE:
        return take_engine(settings, value, err);
    case RELAY_OPTION_THREADS:
        return take_pool(&settings->pools.threads, "--threads", value, 1, err);
    case RELAY_OPTION_RECEIVERS:
        return take_pool(&settings->pools.receivers, "--receivers", value, 1, err);
    case RELAY_OPTION_LOGGERS:
        return take_pool(&settings->pools.loggers, "--loggers", value, 0, err);
    case RELAY_OPTION_SENDERS:
        return take_pool(&settings->pools.senders, "--senders", value, 1, err);
    case RELAY_OPTION_MEMORY_MAX:
        return take_memory(settings, value, err);
    case RELAY_OPTION_LOG_MEMORY:
        return cw_parse_bytes("--log-memory", value, &settings->log_memory, err);
    case RELAY_OPTION_LOG_DISK:
        settings->log_disk_given = true;
        if (strcmp(value, "0") == 0)
            return CW_OK;
        return cw_parse_bytes("--log-disk", value, &settings->log_disk, err);
    case RELAY_OPTION_LOG_DIR:
        settings->log_dir = value;
        return CW_OK;
    case RELAY_OPTION_LOG_SAFETY:
        return take_log_safety(settings, value, err);
    case RELAY_OPTION_RINGS:
        return take_switch(&settings->rings, relay_option_names[option], value, err);
    case RELAY_OPTIONS:
        break;
    }
    return cw_err_set(err, CW_EINVAL, "option %d of a relay", (int)option);
}
