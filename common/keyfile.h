/* Relay keys in files: one line of 64 hexadecimal digits, readable only by the owner. */
#ifndef CW_KEYFILE_H
#define CW_KEYFILE_H

#include "common/frame.h"

#define CW_KEY_LINE (2 * CW_KEY_SIZE + 1) /* digits and a newline */

/* Fills `key` with random bytes. */
void cw_key_random(uint8_t key[CW_KEY_SIZE]);

/* Reads a key from a descriptor (a pipe or file), which stays open. Errors: CW_EINVAL, CW_ESYS. */
int cw_key_read_fd(int fd, uint8_t key[CW_KEY_SIZE], struct cw_err *err);
/* Writes the line to a descriptor, which stays open. Errors: CW_ESYS. */
int cw_key_write_fd(int fd, const uint8_t key[CW_KEY_SIZE], struct cw_err *err);

/* Reads the key from the file. Errors: CW_ENOTFOUND, CW_ESYS, CW_EINVAL (not a key), CW_EAUTH
 * (other users have permissions on the file, or its owner is neither the effective user nor root).
 */
int cw_key_load(const char *path, uint8_t key[CW_KEY_SIZE], struct cw_err *err);

/* As cw_key_load, but creates a missing file with a random key. Sets *made to whether it did. */
int cw_key_load_or_make(const char *path, uint8_t key[CW_KEY_SIZE], bool *made, struct cw_err *err);

#endif
