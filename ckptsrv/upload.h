/* An image that comes in: what was received is given to a thread piece by piece, while the next
 * piece is being filled. All calls and events in the loop's thread. */
#ifndef CKPTSRV_UPLOAD_H
#define CKPTSRV_UPLOAD_H

#include "ckptsrv/put.h"
#include "common/workers.h"

#define UPLOAD_PIECE_BYTES (1u << 20)

struct upload;

struct upload_events {
    void (*opened)(void *ctx, uint32_t base);                  /* the stream may come */
    void (*room)(void *ctx);                                   /* there is space again */
    void (*whole)(void *ctx);                                  /* nothing more is to come */
    void (*stored)(void *ctx, const struct cw_stored *stored); /* on disk */
    void (*failed)(void *ctx, const struct cw_err *err);       /* instead, once */
    void (*ended)(void *ctx);                                  /* after upload_end: the last */
};

/* Begins. NULL without memory. */
struct upload *upload_new(struct workers *workers, struct vault *vault,
                          const struct put_request *request, const struct upload_events *events,
                          void *ctx);

/* Where bytes of the stream go; none is there before `opened`, or while a thread is behind. */
size_t upload_space(struct upload *upload, uint8_t **at);
void upload_came(struct upload *upload, size_t size);

/* If it is stored all the same, it is dropped then. */
void upload_unwanted(struct upload *upload);

/* What is not stored is void. No event but `ended` comes any more, after which it is
 * gone; and before it `stored`, where it was too late to stop that. */
void upload_end(struct upload *upload);

#endif
