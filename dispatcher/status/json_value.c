#include "dispatcher/status/json_value.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_SIZE 48

json_t *json_value_text(const char *text)
{
    json_t *value;
    char *ascii;

    if (!text)
        return json_null();
    value = json_string(text);
    if (value)
        return value;
    ascii = strdup(text);
    if (!ascii)
        return NULL;
    for (char *c = ascii; *c; c++)
        if (*c & 0x80)
            *c = '?';
    value = json_string(ascii);
    free(ascii);
    return value;
}

json_t *json_value_time(const struct timespec *moment)
{
    char day[TIME_SIZE] = "";
    char text[2 * TIME_SIZE];
    struct tm utc;

    if (gmtime_r(&moment->tv_sec, &utc))
        strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof(text), "%s.%06ldZ", day, moment->tv_nsec / 1000);
    return json_string(text);
}

json_t *json_object_read(const void *bytes, size_t size, struct cw_err *err)
{
    json_t *object = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, NULL);

    if (json_is_object(object))
        return object;
    json_decref(object);
    cw_err_set(err, CW_EPROTO, "what it says is no JSON object");
    return NULL;
}

void json_text_copy(char *to, size_t size, const char *from)
{
    size_t i;

    for (i = 0; from && from[i] && i + 1 < size; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}

static json_t *put_field(const struct json_field *field, const char *from)
{
    if (field->type == JSON_FIELD_TEXT)
        return json_value_text(from);
    return field->type == JSON_FIELD_TRUTH
               ? json_boolean(*(const bool *)from)
               : json_integer((json_int_t) * (const uint64_t *)(const void *)from);
}

json_t *json_fields_put(const struct json_field *field, const void *from)
{
    json_t *object = json_object();

    for (; field->key; field++)
        if (json_object_set_new(object, field->key,
                                put_field(field, (const char *)from + field->at)) < 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

void json_fields_get(const struct json_field *field, const json_t *object, void *to)
{
    for (; field->key; field++) {
        const json_t *value = json_object_get(object, field->key);
        char *at = (char *)to + field->at;

        if (field->type == JSON_FIELD_TEXT)
            json_text_copy(at, field->size, json_string_value(value));
        else if (field->type == JSON_FIELD_TRUTH)
            *(bool *)at = json_is_true(value);
        else
            *(uint64_t *)(void *)at =
                json_integer_value(value) < 0 ? 0 : (uint64_t)json_integer_value(value);
    }
}
