/* What a checkpoint server does for those who connect. One thread. */
#ifndef CKPTSRV_SERVICE_H
#define CKPTSRV_SERVICE_H

#include "ckptsrv/vault.h"
#include "common/loop.h"
#include "common/workers.h"

#define SERVICE_TRANSFERS_MAX 256u     /* images that come and go at a time; others wait */
#define SERVICE_PUT_NS 10000000000ull  /* after HELLO */
#define SERVICE_IDLE_NS 60000000000ull /* without a byte of a transfer */

struct service;

/* All are borrowed. NULL without memory. */
struct service *service_new(struct loop *loop, struct vault *vault, struct workers *workers,
                            const uint8_t key[CW_KEY_SIZE]);
/* Waits for what the threads do for it; what has not ended is void. NULL is allowed. */
void service_free(struct service *service);

/* A connection was accepted: the descriptor is the service's. */
void service_enter(struct service *service, int fd);

#endif
