/* JSON values of things that JSON knows no rule for, and objects that structs become. */
#ifndef DISPATCHER_JSON_VALUE_H
#define DISPATCHER_JSON_VALUE_H

#include "common/err.h"

#include <jansson.h>
#include <stddef.h>
#include <time.h>

/* A string. Text that is no UTF-8, as a program's name need not be, has '?' for each byte that is
 * not ASCII. NULL gives JSON's null. Returns a new reference, NULL without memory. */
json_t *json_value_text(const char *text);

/* A moment of CLOCK_REALTIME in UTC by ISO 8601: "2026-01-31T23:59:59.123456Z". Likewise. */
json_t *json_value_time(const struct timespec *moment);

/* An object of what somebody else wrote; the caller's. NULL with *err set: CW_EPROTO. */
json_t *json_object_read(const void *bytes, size_t size, struct cw_err *err);

/* Copies as much as fits, and '?' for what is not printable ASCII. NULL gives "". */
void json_text_copy(char *to, size_t size, const char *from);

/* What objects have at their keys, and structs in their members: a table, with a field of zeros at
 * its end. */
struct json_field {
    const char *key;
    enum { JSON_FIELD_TEXT, JSON_FIELD_NUMBER, JSON_FIELD_TRUTH } type;
    size_t at, size; /* in the struct: char[size], uint64_t or bool */
};

#define JSON_FIELD(TYPE, of, member)                                                               \
    {                                                                                              \
        .key = #member, .type = JSON_FIELD_##TYPE, .at = offsetof(struct of, member),              \
        .size = sizeof(((struct of *)0)->member)                                                   \
    }

/* An object of them, the caller's; NULL: no memory. */
json_t *json_fields_put(const struct json_field *fields, const void *from);

/* Texts are cut and made printable; "", 0 and false stand for what is not there, or is something
 * else. */
void json_fields_get(const struct json_field *fields, const json_t *object, void *to);

#endif
