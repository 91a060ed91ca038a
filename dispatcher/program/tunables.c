#include "dispatcher/program/tunables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HWCAPS "glibc.cpu.hwcaps="
/* By which libc chooses among versions of its functions, and looks for libraries. Without OSXSAVE
 * the dynamic loader saves registers as each x86-64 can. One that a libc does not know it leaves
 * alone. */
#define MASKS                                                                                      \
    "-AVX,-AVX2,-AVX512BW,-AVX512CD,-AVX512DQ,-AVX512ER,-AVX512F,-AVX512PF,-AVX512VL,"             \
    "-AVX_Fast_Unaligned_Load,-BMI1,-BMI2,-ERMS,-FMA,-FMA4,-FSRM,-LZCNT,-MOVBE,-OSXSAVE,-POPCNT,"  \
    "-RTM,-SSE3,-SSE4_1,-SSE4_2,-SSSE3,-XSAVE,-XSAVEC"

/* The last one counts for libc. NULL: there is none. */
static const char *find_hwcaps(const char *tunables)
{
    const char *found = NULL;

    for (const char *at = tunables; at; at = strchr(at, ':')) {
        at += *at == ':';
        if (strncmp(at, HWCAPS, strlen(HWCAPS)) == 0)
            found = at;
    }
    return found;
}

char *tunables_baseline(const char *user)
{
    const char *hwcaps = find_hwcaps(user);
    size_t until;
    char *text;
    int size;

    if (hwcaps) {
        until = (size_t)(hwcaps - user) + strcspn(hwcaps, ":");
        size = asprintf(&text, TUNABLES_NAME "=%.*s,%s%s", (int)until, user, MASKS, user + until);
    } else {
        size = asprintf(&text, TUNABLES_NAME "=%s%s" HWCAPS MASKS, user ? user : "",
                        user && *user ? ":" : "");
    }
    return size < 0 ? NULL : text;
}
