#include "dispatcher/status/json_value.h"

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
