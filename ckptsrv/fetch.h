/* The stream of an image that is read back. One thread at a time; the functions wait for the disk.
 */
#ifndef CKPTSRV_FETCH_H
#define CKPTSRV_FETCH_H

#include "ckptsrv/vault.h"

#define FETCH_BUFFER_MIN (128u << 10) /* a record has fewer bytes */

struct fetch;

/* *bytes: of the whole stream. The image stays until fetch_free. NULL with *err: CW_ENOTFOUND,
 * CW_ENOMEM, CW_ESYS. */
struct fetch *fetch_new(struct vault *vault, const uint8_t job[CW_ID_SIZE],
                        const struct cw_image_ref *ref, uint64_t *bytes, struct cw_err *err);

/* Reads what comes next: as many whole records as fit. *got 0: the end. `size` is FETCH_BUFFER_MIN
 * at least. Errors: CW_ESYS. */
int fetch_read(struct fetch *fetch, uint8_t *to, size_t size, size_t *got, struct cw_err *err);

/* NULL is allowed. */
void fetch_free(struct fetch *fetch);

#endif
