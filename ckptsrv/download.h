/* An image that goes out: a thread reads a piece of it while the piece before is being sent. All
 * calls and events in the loop's thread. */
#ifndef CKPTSRV_DOWNLOAD_H
#define CKPTSRV_DOWNLOAD_H

#include "ckptsrv/fetch.h"
#include "common/workers.h"

#define DOWNLOAD_PIECE_BYTES (1u << 20)

struct download;

struct download_events {
    void (*opened)(void *ctx, uint64_t bytes);                   /* of the whole stream */
    void (*piece)(void *ctx, const uint8_t *bytes, size_t size); /* to be sent */
    void (*finished)(void *ctx);                                 /* all pieces are sent */
    void (*failed)(void *ctx, const struct cw_err *err);         /* instead, once */
    void (*ended)(void *ctx);                                    /* after download_end */
};

/* Begins. NULL without memory. */
struct download *download_new(struct workers *workers, struct vault *vault,
                              const uint8_t job[CW_ID_SIZE], const struct cw_image_ref *ref,
                              const struct download_events *events, void *ctx);
/* A piece was sent; its bytes are not needed any more. */
void download_sent(struct download *download);
/* No event but `ended` comes any more, after which it is gone. */
void download_end(struct download *download);

#endif
