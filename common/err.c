#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int cw_err_set(struct cw_err *err, int code, const char *fmt, ...)
{
    va_list ap;

    err->code = code;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    return code;
}

int cw_err_wrap(struct cw_err *err, const char *fmt, ...)
{
    char cause[CW_ERR_TEXT_MAX];
    va_list ap;
    size_t used;

    memcpy(cause, err->text, sizeof(cause));
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s", cause);
    return err->code;
}
