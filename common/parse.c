#include "common/parse.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cw_parse_number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *value,
                    struct cw_err *err)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || *value < min || *value > max)
        return cw_err_set(err, CW_EINVAL, "%s '%s': expected a whole number from %llu to %llu",
                          what, text, (unsigned long long)min, (unsigned long long)max);
    return CW_OK;
}

int cw_parse_bytes(const char *what, const char *text, uint64_t *value, struct cw_err *err)
{
    static const char units[] = "KMGT";
    char *end;
    const char *unit;
    int shift = 0;

    errno = 0;
    *value = strtoull(text, &end, 10);
    unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        shift = 10 * (int)(unit - units + 1);
        end++;
    }
    if (!isdigit((unsigned char)text[0]) || *end || errno || *value == 0 ||
        *value > UINT64_MAX >> shift)
        return cw_err_set(err, CW_EINVAL, "%s '%s': expected bytes, like 500M or 2G", what, text);
    *value <<= shift;
    return CW_OK;
}

int cw_parse_duration(const char *what, const char *text, uint64_t *ns, struct cw_err *err)
{
    static const struct {
        const char *suffix;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 60e9}, {"h", 3600e9}};
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        if (text[0] != '.' && strspn(text, "0123456789.") == (size_t)(end - text) && end > text &&
            !errno && strcmp(end, units[i].suffix) == 0 && value * units[i].ns < 1e18) {
            *ns = (uint64_t)(value * units[i].ns);
            return CW_OK;
        }
    }
    return cw_err_set(err, CW_EINVAL, "%s '%s': expected a time, like 90, 1.5s, 300ms, 5m or 2h",
                      what, text);
}

int cw_parse_descriptor(const char *text, int *fd, struct cw_err *err)
{
    uint64_t number;

    if (cw_parse_number("descriptor", text, 0, 1 << 20, &number, err) < 0)
        return err->code;
    if (fcntl((int)number, F_SETFD, FD_CLOEXEC) < 0)
        return cw_err_set(err, CW_EINVAL, "descriptor '%s': it is not open", text);
    *fd = (int)number;
    return CW_OK;
}
