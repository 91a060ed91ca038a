#include "relay/inspect/trial.h"
#include "relay/log/store.h"

#include <errno.h>

#define NO_BOUND (UINT64_MAX / 4) /* of memory: that of the region is the one that counts */

static bool serve_read(struct relay_core *core, const struct inspect_image *image)
{
    struct relay_log_io io;
    struct relay_log_done done;

    if (!relay_core_next_io(core, &io))
        return false;
    done.segment = io.segment;
    done.error = io.write ? EROFS
                          : image->read(image->ctx, (uint32_t)(io.offset / RELAY_BLOCK_BYTES),
                                        io.at, io.segment->used);
    relay_core_io_done(core, &done);
    return true;
}

int inspect_trial(struct inspect_image *image, const uint8_t key[CW_KEY_SIZE],
                  struct relay_returned *returned, struct cw_err *err)
{
    struct relay_core_config config = {.key = key,
                                       .memory_max = NO_BOUND,
                                       .region = image->region,
                                       .log_memory = NO_BOUND,
                                       .ledger = image->memory};
    struct relay_core *core;
    uint32_t vain = 0;

    *returned = (struct relay_returned){0};
    inspect_image_give_up_pieces(image);
    core = relay_core_new(&config);
    if (!core)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    /* where there is no memory to read to it finds out when it is asked again */
    while (vain < 2 && !relay_core_return(core, returned))
        vain = serve_read(core, image) ? 0 : vain + 1;
    relay_core_free(core);
    return vain < 2 ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory to read the logs from disk");
}
