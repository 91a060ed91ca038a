/* What is wrong in logs, told one by one to whoever looks. */
#ifndef RELAY_INSPECT_DAMAGE_H
#define RELAY_INSPECT_DAMAGE_H

#include <stdint.h>

#define INSPECT_TEXT_MAX 600 /* bytes of what is said of one */

struct inspect_damage {
    void (*say)(void *ctx, const char *what); /* NULL: they are only counted */
    void *ctx;
    uint64_t count;
};

void inspect_damaged(struct inspect_damage *damage, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
