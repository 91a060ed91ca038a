/* What the checks of `causeway doctor` share: how they say what they found. */
#ifndef DISPATCHER_DOCTOR_H
#define DISPATCHER_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_MISSING };

struct doctor {
    bool missing;         /* something needed is not there */
    char mpich[PATH_MAX]; /* "" while not found, as the next */
    char device[PATH_MAX];
    char *output; /* owned; TOOL_OUTPUT_MAX bytes, for tools */
};

/* A line about one thing. */
void doctor_say(struct doctor *d, enum doctor_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A question to a child process, so that a crash or a lasting change is harmless: runs `ask` there,
 * which writes its answer to the descriptor. Returns the bytes of the answer (terminated in
 * `answer`), 0 when there is none. */
size_t doctor_ask_child(void (*ask)(const void *about, int to), const void *about, char *answer,
                        size_t size);
/* For `ask`. */
void doctor_answer_text(int to, const char *text);

#endif
