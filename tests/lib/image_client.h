/* A client of a checkpoint server, which blocks: for tests. */
#ifndef TESTS_IMAGE_CLIENT_H
#define TESTS_IMAGE_CLIENT_H

#include "common/frame.h"

struct image_client {
    int fd;
    struct cw_session session;
};

/* Connects, and says HELLO: role, job, rank and incarnation are set by the caller. */
int image_client_open(struct image_client *client, const char *address,
                      const uint8_t key[CW_KEY_SIZE], struct cw_hello *hello, struct cw_err *err);
void image_client_close(struct image_client *client);

int image_client_send(struct image_client *client, uint8_t type, const uint8_t *body, uint32_t size,
                      struct cw_err *err);
int image_client_write(struct image_client *client, const uint8_t *bytes, size_t size,
                       struct cw_err *err);
/* The next frame; of REFUSED the text is the error, CW_EAUTH. */
int image_client_next(struct image_client *client, struct cw_header *header,
                      uint8_t body[CW_FRAME_BODY_MAX], struct cw_err *err);
int image_client_read(struct image_client *client, uint8_t *to, size_t size, struct cw_err *err);

/* PUT, and waits for GO. */
int image_client_begin(struct image_client *client, const struct cw_put *put, uint32_t *base,
                       struct cw_err *err);
int image_client_stored(struct image_client *client, struct cw_stored *stored, struct cw_err *err);

/* Of a dispatcher: skips what is held, calls `held` for each unless it is NULL. */
int image_client_list(struct image_client *client,
                      void (*held)(void *ctx, const struct cw_stored *stored), void *ctx,
                      struct cw_err *err);
/* Asks for an image: *size bytes are to be read then. */
int image_client_fetch(struct image_client *client, uint32_t rank, uint32_t number, uint64_t *size,
                       struct cw_err *err);
int image_client_drop(struct image_client *client, uint32_t rank, uint32_t number,
                      struct cw_err *err);

#endif
