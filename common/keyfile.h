/* Relay keys as files: one line of 64 hexadecimal digits, readable by their owner alone. */
#ifndef CW_KEYFILE_H
#define CW_KEYFILE_H

#include "common/frame.h"

#define CW_KEY_LINE (2 * CW_KEY_SIZE + 1) /* digits and a newline */

void cw_key_random(uint8_t key[CW_KEY_SIZE]);

/* Reads a key from a descriptor (a pipe or file), which stays open. Errors: CW_EINVAL, CW_ESYS. */
int cw_key_read_fd(int fd, uint8_t key[CW_KEY_SIZE], struct cw_err *err);
int cw_key_write_fd(int fd, const uint8_t key[CW_KEY_SIZE], struct cw_err *err);

/* Errors: CW_ENOTFOUND, CW_EAUTH when others may read the file, CW_EINVAL. */
int cw_key_load(const char *path, uint8_t key[CW_KEY_SIZE], struct cw_err *err);

/* Loads it; makes it with a random key first when there is none. Sets *made. */
int cw_key_load_or_make(const char *path, uint8_t key[CW_KEY_SIZE], bool *made, struct cw_err *err);

#endif
