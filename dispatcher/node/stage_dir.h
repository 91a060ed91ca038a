/* The directory of a program that is sent to this host for one job: DIR/NAME is there once the
 * program is whole. Nodes of the job that share the directory hold a lock of it: the last one
 * removes it, and what none of them holds was left by one that was killed. */
#ifndef DISPATCHER_STAGE_DIR_H
#define DISPATCHER_STAGE_DIR_H

#include "dispatcher/wire/stage_program.h"

#define STAGE_PART_NAME 24 /* bytes of the name of a file that comes, terminated */

/* The program's directory, of this user alone and locked: it is made, if it is not there, and those
 * that were left beside it are removed. Returns a descriptor, for cw_held_dir_leave (without a lock
 * in it). Errors: CW_EAUTH: somebody else may have made it; CW_ESYS. */
int stage_dir_open(const struct stage_program *program, struct cw_err *err);

/* The file of the program, to be read and compared by the caller. Errors: CW_ENOTFOUND: it is not
 * there; CW_ESYS: something else is. */
int stage_dir_find(int dir, const struct stage_program *program, struct cw_err *err);

/* A file beside it, to be written; `part` gets its name. Errors: CW_ESYS. */
int stage_dir_begin(int dir, const struct stage_program *program, char part[STAGE_PART_NAME],
                    struct cw_err *err);
/* All of it was written: it is the program from now on, unless another node was faster. Errors:
 * CW_ESYS. */
int stage_dir_keep(int dir, const struct stage_program *program, int file, const char *part,
                   struct cw_err *err);

#endif
