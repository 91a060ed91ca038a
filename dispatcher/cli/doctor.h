/* `causeway doctor`: its checks of this machine, of the hosts of a job, and of a grid. */
#ifndef DISPATCHER_DOCTOR_H
#define DISPATCHER_DOCTOR_H

#include "dispatcher/doctor/findings.h"
#include "dispatcher/options/host_options.h"

#include <limits.h>

#define DOCTOR_VERSION_MAX 64                   /* bytes of MPICH's version, cut */
#define DOCTOR_HOSTS_MAX 32u                    /* hosts that are checked at a time, ... */
#define DOCTOR_GRID_HOSTS_MAX 8u                /* ... of a grid */
#define DOCTOR_GRID_OPEN_NS 22000000000ull      /* for a way from here, if the user says nothing */
#define DOCTOR_GRID_TIME_NS_MIN 100000000ull    /* a shorter one is refused ... */
#define DOCTOR_GRID_TIME_NS_MAX 600000000000ull /* ... and a longer one */

struct doctor {
    struct findings findings;
    char mpich_version[DOCTOR_VERSION_MAX];
    char mpich[PATH_MAX]; /* "" while not found, as the next */
    char device[PATH_MAX];
};

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

/* --- of several hosts: prints what it finds, and returns the exit code --- */

/* `program`: that is to run on all of them; NULL: none. */
int doctor_hosts(const struct host_options *options, const char *program);

/* All sites of a grid, and the ways between them. `here`: the site of this machine, "-": none,
 * NULL: by its name; `time_ns`: for a connection, and for a host to report; 0: the user said
 * nothing. */
int doctor_grid(const char *file, const char *here, uint64_t time_ns);

#endif
