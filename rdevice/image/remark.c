#include "rdevice/image/remark.h"
#include "rdevice/image/image.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static char remarks[REMARKS_MAX][REMARK_TEXT_MAX];
static uint32_t count; /* also of those that had no place */

void remark_forget(void)
{
    count = 0;
}

void remark_add(const char *fmt, ...)
{
    va_list ap;

    count++;
    if (count >= REMARKS_MAX) {
        snprintf(remarks[REMARKS_MAX - 1], REMARK_TEXT_MAX, "%u further ones",
                 count - REMARKS_MAX + 1);
        return;
    }
    va_start(ap, fmt);
    vsnprintf(remarks[count - 1], REMARK_TEXT_MAX, fmt, ap);
    va_end(ap);
}

const char *image_remark(uint32_t index)
{
    return index < count && index < REMARKS_MAX ? remarks[index] : NULL;
}
