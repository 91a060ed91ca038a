/* An image that is being stored. One thread at a time; the functions wait for the disk. */
#ifndef CKPTSRV_PUT_H
#define CKPTSRV_PUT_H

#include "ckptsrv/vault.h"

struct put;

struct put_request {
    uint8_t job[CW_ID_SIZE];
    uint32_t rank;
    uint32_t incarnation;
    struct cw_put put;
};

/* Begins. *base: the image that the stream may refer to. NULL with *err: CW_EPROTO: its number is
 * not above the others; CW_ELIMIT: no room; CW_ENOMEM, CW_ESYS. */
struct put *put_new(struct vault *vault, const struct put_request *request, uint32_t *base,
                    struct cw_err *err);

/* See intake_take. Errors: also CW_ESYS. */
int put_take(struct put *put, const uint8_t *bytes, size_t size, size_t *taken, struct cw_err *err);
bool put_ended(const struct put *put);

/* The image, which has ended, is on disk from here on. Others are not told of it before
 * put_told. Errors: CW_ESYS, CW_ELIMIT, CW_ENOMEM. */
int put_commit(struct put *put, struct cw_stored *stored, struct cw_err *err);
/* Who lists the images sees it from here on. */
void put_tell(struct put *put);

/* What was not committed is void. NULL is allowed. */
void put_free(struct put *put);

#endif
