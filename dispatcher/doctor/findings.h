/* What was found out about something, a line each, with what to do. Pure. */
#ifndef DISPATCHER_FINDINGS_H
#define DISPATCHER_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#define FINDINGS_MAX 64       /* about one thing */
#define FINDING_TEXT_MAX 1024 /* bytes of one */

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_MISSING };

struct finding {
    enum doctor_level level;
    char *text; /* owned */
};

/* Zeroed: none. */
struct findings {
    struct finding item[FINDINGS_MAX];
    size_t count;
    bool more; /* there was no room for all of them */
};

void findings_free(struct findings *findings);

/* Adds one; its text is cut at FINDING_TEXT_MAX. */
void findings_add(struct findings *findings, enum doctor_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "ok", "warning", "missing" */
const char *doctor_level_word(enum doctor_level level);
/* Returns false when it is none of these. */
bool doctor_level_of(const char *word, enum doctor_level *level);

#endif
