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

/* A question to a child process, so that a crash or a lasting change is harmless: runs `ask` there,
 * which writes its answer to the descriptor. Returns the bytes of the answer (terminated in
 * `answer`), 0 when there is none. */
size_t doctor_ask_child(void (*ask)(const void *about, int to), const void *about, char *answer,
                        size_t size);
/* For `ask`. */
void doctor_answer_text(int to, const char *text);

/* --- the checks; those of images and of the program come after that of the library --- */
/* The MPI library and our device below it: notes in `d` which were found. */
void doctor_check_library(struct doctor *d);
/* The machine: its kernel, and what it has. */
void doctor_check_machine(struct doctor *d);
/* MiB that programs may still take; -1 when it is not to be had. */
long doctor_free_memory_mb(void);
/* What images of ranks need, which no job does that takes none: nothing there is an error. */
void doctor_check_images(struct doctor *d);
/* A program that is to run; `name`: as a shell would find it. */
void doctor_check_program(struct doctor *d, const char *name);

/* `causeway doctor --report`, which that of another machine starts on each host: tells on standard
 * output what there is (dispatcher/doctor/report.h), then answers the requests of standard input
 * until its end. `directory`: of a job; `program`: that is to run, or NULL. Returns the exit code.
 */
int doctor_report(const char *directory, const char *program);

#endif
