/* What the checks of `causeway doctor` share: how they say what they found. */
#ifndef DISPATCHER_DOCTOR_H
#define DISPATCHER_DOCTOR_H

#include "dispatcher/doctor/host_check.h"

#include <limits.h>

#define DOCTOR_VERSION_MAX 64 /* bytes of MPICH's version, cut */

struct doctor {
    struct findings findings;
    char mpich_version[DOCTOR_VERSION_MAX];
    char mpich[PATH_MAX]; /* "" while not found, as the next */
    char device[PATH_MAX];
    char *output; /* owned; TOOL_OUTPUT_MAX bytes, for tools */
};

/* Prints findings about a host or the like, "": about all. Returns whether something is missing. */
bool doctor_print(const char *about, const struct findings *findings);
bool doctor_print_host(const struct host_check *host);

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

#endif
