/* The memory that a relay would make of a journal: states, and the segments of chains. In memory of
 * its own; the files stay as they are. */
#ifndef RELAY_INSPECT_IMAGE_H
#define RELAY_INSPECT_IMAGE_H

#include "common/cred.h"
#include "common/err.h"
#include "relay/core/core.h"
#include "relay/log/journal.h"
#include "relay/log/ledger.h"

/* Blocks that the region has beside those of the journal and as many as are on disk: what is read
 * stays for a while. */
#define INSPECT_BLOCKS 2048u

/* The first `size` bytes of a place on disk. Returns 0 or an errno. */
typedef int inspect_read(void *ctx, uint32_t extent, uint8_t *to, uint32_t size);

struct inspect_image {
    struct ledger_memory *memory;
    struct relay_region region;
    struct ledger ledger;
    struct supply supply;
    inspect_read *read;
    void *ctx;
    uint8_t *buffer; /* of a segment */
};

/* `bytes`: a journal with commits that count. Errors: as restore(). */
int inspect_image_open(struct inspect_image *image, const uint8_t *bytes,
                       const struct journal_summary *summary, inspect_read *read, void *ctx,
                       struct cw_err *err);
/* The pieces that were found are let go of; the memory is as a relay finds it. */
void inspect_image_give_up_pieces(struct inspect_image *image);
void inspect_image_close(struct inspect_image *image);

/* What a relay would make of an image: a core takes it up, in memory, and says what it loses.
 * `key`: the relay's; it is needed where jobs are of several relays. The image cannot be looked at
 * any more. Returns 0 or CW_ENOMEM. */
int inspect_trial(struct inspect_image *image, const uint8_t key[CW_KEY_SIZE],
                  struct relay_returned *returned, struct cw_err *err);

#endif
