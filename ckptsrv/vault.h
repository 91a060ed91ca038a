/* The store of a checkpoint server: its directory, and what is held there. All functions from any
 * thread; those that wait for the disk say so. */
#ifndef CKPTSRV_VAULT_H
#define CKPTSRV_VAULT_H

#include "ckptsrv/registry.h"

struct vault;

/* Locks the directory, and finds out what it holds; what writes have left that did not end goes.
 * `dir` stays. `max`: bytes of blocks; 0: no bound. Waits for the disk. NULL with *err: CW_ESYS,
 * CW_EBUSY, CW_ENOMEM. */
struct vault *vault_open(const char *dir, uint64_t max, struct cw_err *err);
/* Likewise, in a directory that imgdir_open has locked; `files` is the vault's from then on, also
 * after an error. */
struct vault *vault_open_in(const struct imgdir *files, uint64_t max, struct cw_err *err);
/* `remove`: images go, those of `job` (NULL: of all jobs), and the directory where vault_open made
 * it and nothing else is there. NULL is allowed. */
void vault_close(struct vault *vault, bool remove, const uint8_t *job);

const struct imgdir *vault_dir(const struct vault *vault);
struct registry *vault_registry(const struct vault *vault);

/* Removes an image that was taken out of the registry, which is over with it. Waits for the disk.
 * Errors: CW_ESYS: it is there again. */
int vault_remove(struct vault *vault, const uint8_t job[CW_ID_SIZE], uint32_t rank,
                 struct held_image *image, uint32_t number, struct cw_err *err);

/* Removes an image and all before it, of one rank or CW_EVERY_RANK. Waits for the disk. Errors:
 * CW_ESYS. */
int vault_drop(struct vault *vault, const uint8_t job[CW_ID_SIZE], const struct cw_image_ref *ref,
               struct cw_err *err);

#endif
