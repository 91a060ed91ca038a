/* A program file before it is started: where it is, what it is, and whether Causeway can carry it.
 * Nothing here executes the program. Functions may block (files, a short-lived child process) and
 * are safe in any thread as long as nobody changes the environment meanwhile. */
#ifndef CW_PROGRAM_H
#define CW_PROGRAM_H

#include "common/err.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define PROGRAM_DETAIL_MAX 256
#define PROGRAM_OUTPUT_MAX (256u << 10) /* bytes that program_read_tool takes from a tool */

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
    char mpi_library[PATH_MAX]; /* path of the MPI library; "" when there is none */
    char
        detail[PROGRAM_DETAIL_MAX]; /* the machine, loader, interpreter or missing library; or "" */
};

/* Finds `name` as execvp would from the directory `wdir` (NULL: the current one) and puts its
 * absolute path, symbolic links kept, into `path` (`path_size` bytes). Errors: CW_ENOTFOUND;
 * CW_EINVAL (a directory, not executable, too long); CW_ESYS. The text is fit for the user as it
 * is. */
int program_resolve(const char *name, const char *wdir, char *path, size_t path_size,
                    struct cw_err *err);

/* Looks into the file at `path` (absolute, as from program_resolve) and asks the system's dynamic
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
 * something is missing (the output is then its message), or a negative code as program_read_tool.
 */
int program_list_libraries(const char *path, char *output, struct cw_err *err);

/* Runs a tool without a shell, argv[0] being its path, and returns its exit code (128 + signal when
 * killed). `output` (PROGRAM_OUTPUT_MAX bytes) gets what it wrote to stdout and stderr, terminated.
 * Errors: CW_ESYS (could not start), CW_ELIMIT (wrote more). */
int program_read_tool(char *const argv[], char *output, struct cw_err *err);

#endif
