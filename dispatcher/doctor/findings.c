#include "dispatcher/doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = {"ok", "warning", "missing"};

void findings_free(struct findings *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->item[i].text);
    *f = (struct findings){0};
}

void findings_add(struct findings *f, enum doctor_level level, const char *fmt, ...)
{
    char text[FINDING_TEXT_MAX + 1];
    char *kept = NULL;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (f->count < FINDINGS_MAX)
        kept = strdup(text);
    if (kept)
        f->item[f->count++] = (struct finding){level, kept};
    else
        f->more = true;
}

const char *doctor_level_word(enum doctor_level level)
{
    return words[level];
}

bool doctor_level_of(const char *word, enum doctor_level *level)
{
    for (size_t i = 0; word && i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(words[i], word) == 0) {
            *level = (enum doctor_level)i;
            return true;
        }
    return false;
}
