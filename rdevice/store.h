/* Where images of this rank go: a session with its checkpoint server, opened by the copy of the
 * process (docs/protocol.md, "Checkpoint servers"). It takes no memory of the heap, and resolves no
 * name after store_begin(). */
#ifndef RDEVICE_STORE_H
#define RDEVICE_STORE_H

#include "common/setup.h"
#include "common/wire.h"
#include "rdevice/image/image.h"

/* For one image; on the stack of the process, and so in its copy. */
struct store_place {
    const struct image_order *order;
    uint8_t key[CW_KEY_SIZE];
    uint32_t count; /* of servers that it goes to: */
    struct store_session {
        uint32_t server;
        struct cw_wire wire;
        struct cw_session numbers;
    } at[CW_IMAGE_COPIES_MAX];
};

/* Keeps what `setup` says of the servers; their key, away from images. Errors: CW_EINVAL: nothing
 * is known of any; CW_ENOMEM. */
int store_begin(const struct cw_setup *setup, struct cw_err *err);
/* Of these, as bits, it said where they are; they are not more than CW_IMAGE_COPIES_MAX. */
bool store_knows(uint32_t servers);
/* The page of the key. */
const void *store_secret(void);

/* Before the process is copied: the key is no longer readable afterwards. `servers`: bits. */
void store_put_in(struct store_place *place, const struct image_order *order, uint32_t servers);
void store_wipe(struct store_place *place);

/* For struct image_setting; ctx is a struct store_place. */
int store_open(void *ctx, uint64_t bytes, uint32_t *base, struct cw_err *err);
int store_also(void *ctx);
int store_finish(void *ctx, int fd, struct cw_err *err);

#endif
