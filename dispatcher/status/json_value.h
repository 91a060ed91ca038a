/* JSON values of things that JSON knows no rule for. */
#ifndef DISPATCHER_JSON_VALUE_H
#define DISPATCHER_JSON_VALUE_H

#include <jansson.h>
#include <time.h>

/* A string. Text that is no UTF-8, as a program's name need not be, has '?' for each byte that is
 * not ASCII. NULL gives JSON's null. Returns a new reference, NULL without memory. */
json_t *json_value_text(const char *text);

/* A moment of CLOCK_REALTIME in UTC by ISO 8601: "2026-01-31T23:59:59.123456Z". Likewise. */
json_t *json_value_time(const struct timespec *moment);

#endif
