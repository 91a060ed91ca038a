/* What the checks of `causeway doctor` share: how they say what they found. */
#ifndef DISPATCHER_DOCTOR_H
#define DISPATCHER_DOCTOR_H

#include "dispatcher/doctor/findings.h"

#include <limits.h>

#define DOCTOR_VERSION_MAX 64 /* bytes of MPICH's version, cut */

struct doctor {
    bool report;  /* what is found is for a doctor on another host */
    bool missing; /* something needed is not there */
    char mpich_version[DOCTOR_VERSION_MAX];
    char mpich[PATH_MAX]; /* "" while not found, as the next */
    char device[PATH_MAX];
    char *output; /* owned; TOOL_OUTPUT_MAX bytes, for tools */
};

/* A line about one thing. */
void doctor_say(struct doctor *d, enum doctor_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints findings about a host or the like, "": about all. Returns whether something is missing. */
bool doctor_print(const char *about, const struct findings *findings);

/* For looks at many hosts: a launcher's process has three pipes, and each look a loop. */
void doctor_raise_descriptor_limit(void);

/* A question to a child process, so that a crash or a lasting change is harmless: runs `ask` there,
 * which writes its answer to the descriptor. Returns the bytes of the answer (terminated in
 * `answer`), 0 when there is none. */
size_t doctor_ask_child(void (*ask)(const void *about, int to), const void *about, char *answer,
                        size_t size);
/* For `ask`. */
void doctor_answer_text(int to, const char *text);

#endif
