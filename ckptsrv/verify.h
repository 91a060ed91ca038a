/* Looks at an image in the directory of a checkpoint server, which may be running. */
#ifndef CKPTSRV_VERIFY_H
#define CKPTSRV_VERIFY_H

#include "ckptsrv/imgdir.h"
#include "ckptsrv/index.h"

/* Reads the index of an image, and checks it. The caller frees *bytes. Errors: CW_EPROTO: what is
 * damaged; CW_ENOTFOUND, CW_ENOMEM, CW_ESYS. */
int verify_index(const struct imgdir *dir, const uint8_t job[CW_ID_SIZE], uint32_t rank,
                 uint32_t number, struct index_summary *summary, uint8_t **bytes, size_t *size,
                 struct cw_err *err);

/* Reads all of its blocks, too, and compares each with its checksum. Errors: as above. */
int verify_image(const struct imgdir *dir, const uint8_t job[CW_ID_SIZE], uint32_t rank,
                 uint32_t number, struct cw_err *err);

#endif
