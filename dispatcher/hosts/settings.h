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
    SETTINGS_NAME, /* of letters, digits, "-" and "_" */
    SETTINGS_NUMBER,
    SETTINGS_PORT,
    SETTINGS_GROUP,  /* { name = value; ... } */
    SETTINGS_GROUPS, /* ( { ... }, { ... } ) */
    SETTINGS_NAMES,  /* [ "a", "b" ] */
};

/* The text of a setting that something is wrong with, and its place. Returns the error's code. */
int settings_fail(const struct settings *s, const config_setting_t *at, const char *expected, ...)
    __attribute__((format(printf, 3, 4)));

/* A member that a group may have. */
struct settings_member {
    const char *name;
    enum settings_kind kind;
    bool needed;
    uint32_t min, max; /* of a number; of a text: its bytes. 0: it is not read */
    size_t at;         /* in a struct: of a text, of max + 1 bytes; a uint32_t; a port's uint16_t */
};

/* Reads what is there into the struct, whose other members stay as they are. The group has none but
 * these, of which an empty one is the last. */
int settings_read(const struct settings *s, const config_setting_t *group,
                  const struct settings_member *known, void *to);

#endif
