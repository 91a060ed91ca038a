/* Settings of a file in the format of libconfig: takes what is expected, and says where something
 * else is. Pure: no I/O. Each error is CW_EINVAL, and names the file, the line, the setting with
 * what it is in ("sites.paris.relay.port"), its value, and what was expected. */
#ifndef DISPATCHER_SETTINGS_H
#define DISPATCHER_SETTINGS_H

#include "common/err.h"

#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings {
    const char *file; /* its name, for messages; borrowed */
    struct cw_err *err;
};

enum settings_kind {
    SETTINGS_TEXT,
    SETTINGS_NUMBER,
    SETTINGS_GROUP,  /* { name = value; ... } */
    SETTINGS_GROUPS, /* ( { ... }, { ... } ) */
    SETTINGS_NAMES,  /* [ "a", "b" ] */
};

/* The text of a setting that something is wrong with, and its place. Returns the error's code. */
int settings_fail(const struct settings *s, const config_setting_t *at, const char *expected, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether a group has none but these; the last of them is NULL. */
int settings_only(const struct settings *s, const config_setting_t *group,
                  const char *const *known);

/* The setting of that name in a group; NULL: there is none. */
int settings_find(const struct settings *s, const config_setting_t *group, const char *name,
                  enum settings_kind kind, config_setting_t **found);

/* ... which there must be. */
int settings_need(const struct settings *s, const config_setting_t *group, const char *name,
                  enum settings_kind kind, config_setting_t **found);

/* A number from `min` to `max`, or `*number` as it was when the group has none. */
int settings_number(const struct settings *s, const config_setting_t *group, const char *name,
                    uint32_t min, uint32_t max, uint32_t *number);

/* A text of at most `max` bytes, or "" when the group has none. `to` has room for one byte more. */
int settings_text(const struct settings *s, const config_setting_t *group, const char *name,
                  char *to, size_t max);

#endif
