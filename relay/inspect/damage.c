#include "relay/inspect/damage.h"

#include <stdarg.h>
#include <stdio.h>

void inspect_damaged(struct inspect_damage *damage, const char *fmt, ...)
{
    char text[INSPECT_TEXT_MAX];
    va_list args;

    damage->count++;
    if (!damage->say)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    damage->say(damage->ctx, text);
}
