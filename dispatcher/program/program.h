/* A program file before it is started: where it is, what it is, and whether Causeway can carry it.
 * Nothing here executes the program. Functions may block (files, a short-lived child process) and
 * are safe in any thread as long as nobody changes the environment meanwhile. */
#ifndef DISPATCHER_PROGRAM_H
#define DISPATCHER_PROGRAM_H

#include "common/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define PROGRAM_DETAIL_MAX 256
#define PROGRAM_SONAME_MAX 64 /* bytes */

enum program_kind {
    PROGRAM_MPICH_UCX,    /* what Causeway is made for */
    PROGRAM_MPICH_OTHER,  /* a libmpich that is not linked against libucp */
    PROGRAM_OPENMPI,      /* linked against Open MPI */
    PROGRAM_STATIC,       /* has no dynamic loader */
    PROGRAM_SCRIPT,       /* starts with #! */
    PROGRAM_NOT_MPI,      /* a program of this machine that is linked against no MPI */
    PROGRAM_FOREIGN,      /* for another machine, or with the loader of another C library */
    PROGRAM_SETUID,       /* the loader would ignore LD_PRELOAD */
    PROGRAM_MISSING_LIBS, /* the loader does not find all that it needs */
};

struct program_info {
    enum program_kind kind;
    char mpi_library[PATH_MAX];         /* path of the MPI library; "" when there is none */
    char sanitizer[PROGRAM_SONAME_MAX]; /* of AddressSanitizer's library; "": it has none */
    char
        detail[PROGRAM_DETAIL_MAX]; /* the machine, loader, interpreter or missing library; or "" */
};

/* Looks into the file at `path` (absolute, as of resolve.h) and asks the system's dynamic
 * loader for its libraries, in the environment of the caller. Errors: CW_ENOTFOUND (the file, or a
 * script's interpreter), CW_EINVAL (neither a program nor a script), CW_ESYS, CW_ELIMIT, CW_ENOMEM.
 */
int program_inspect(const char *path, struct program_info *info, struct cw_err *err);

/* A sentence for people: what it is, whether Causeway can carry it and what to do otherwise. */
const char *program_explain(enum program_kind kind);

/* Whether to start it at all. */
bool program_can_run(enum program_kind kind);

/* True when the ELF file at `path` itself asks for the library of that SONAME. */
bool program_needs(const char *path, const char *soname);

/* What the dynamic loader says of `path` (a program or a library) and what it would load with it:
 * lines "NAME => PATH (0x...)" or "PATH (0x...)". Returns the loader's exit code, not 0 when
 * something is missing (the output is then its message), or a negative code as tool_read.
 */
int program_list_libraries(const char *path, char *output, struct cw_err *err);

#endif
