/* The programs that are kept on a host for its jobs: DIR/HASH/NAME. DIR/HASH is there once the
 * program is whole; before that it is DIR/HASH.new. Who uses a directory holds a shared lock of it,
 * who writes in it an exclusive one: what has no lock may be removed, when there is no room. Many
 * agents may be at work in one DIR. Never waits for a lock. */
#ifndef DISPATCHER_STAGE_DIR_H
#define DISPATCHER_STAGE_DIR_H

#include "dispatcher/stage/stage_program.h"

#define STAGE_KEPT_MAX 64u                /* programs on a host, for a user */
#define STAGE_KEPT_BYTES_MAX (4ull << 30) /* their bytes */

/* DIR, of this user alone: it is made, if it is not there. Returns a descriptor. Errors: CW_EAUTH:
 * somebody else may have made it; CW_ESYS. */
int stage_dir_open(const char *dir, struct cw_err *err);

struct stage_place {
    int dir; /* the program's directory, locked */
    int file;
};

/* Nothing is open. */
#define STAGE_NO_PLACE ((struct stage_place){-1, -1})
void stage_place_close(struct stage_place *place);

/* The program as it is kept: to be read, and to be compared by the caller. Errors: CW_ENOTFOUND: it
 * is not there, or not with this size, time or permissions; CW_EBUSY: another one is at it;
 * CW_ESYS.
 */
int stage_dir_find(int dir, const struct stage_program *program, struct stage_place *place,
                   struct cw_err *err);

/* It is used now: the last one to be removed. */
void stage_dir_use(const struct stage_place *place);

/* What was found is not the program: it goes. Errors: CW_EBUSY: another one uses it. */
int stage_dir_discard(int dir, const struct stage_program *program, struct stage_place *place,
                      struct cw_err *err);

/* Room for the program: a file of its size, to be written. What others left unfinished is removed,
 * and the programs that were not used for the longest time, as long as there is too little room.
 * Errors: CW_EBUSY: another one is at it; CW_ELIMIT: there is no room; CW_ESYS. */
int stage_dir_reserve(int dir, const struct stage_program *program, struct stage_place *place,
                      struct cw_err *err);

/* All of it was written: it is kept from now on. `place` is not open any more; stage_dir_find finds
 * it. Errors: CW_ESYS. */
int stage_dir_keep(int dir, const struct stage_program *program, struct stage_place *place,
                   struct cw_err *err);

/* It will not be written: it is removed. */
void stage_dir_drop(int dir, const struct stage_program *program, struct stage_place *place);

#endif
