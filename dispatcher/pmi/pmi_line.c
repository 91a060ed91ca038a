#include "dispatcher/pmi/pmi_line.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const char *pmi_line_find(const struct pmi_line *line, const char *key)
{
    for (size_t i = 0; i < line->count; i++)
        if (strcmp(line->fields[i].key, key) == 0)
            return line->fields[i].value;
    return NULL;
}

bool pmi_read_int(const char *text, int *value)
{
    char *end;
    long v;

    if (!text || !*text)
        return false;
    errno = 0;
    v = strtol(text, &end, 10);
    if (*end || errno || v < INT_MIN || v > INT_MAX)
        return false;
    *value = (int)v;
    return true;
}

bool pmi_line_split(struct pmi_line *line, char *text)
{
    char *end = text; /* of the last word */

    line->count = 0;
    for (;;) {
        char *word = end + strspn(end, " ");
        size_t size = strcspn(word, " ");
        char *equals = memchr(word, '=', size);

        if (size == 0)
            break;
        if (equals == word || (!equals && line->count == 0))
            return false;
        if (equals) {
            if (line->count == PMI_FIELDS_MAX)
                return false;
            if (line->count)
                *end = '\0';
            *equals = '\0';
            line->fields[line->count++] = (struct pmi_field){.key = word, .value = equals + 1};
        }
        end = word + size;
    }
    *end = '\0';
    return line->count > 0;
}
