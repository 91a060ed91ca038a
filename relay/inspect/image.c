#include "relay/inspect/image.h"
#include "relay/log/restore.h"
#include "relay/log/store.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

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

#define SLOT                                                                                       \
    ((sizeof(struct relay_block) + RELAY_BLOCK_ALIGN - 1) / RELAY_BLOCK_ALIGN * RELAY_BLOCK_ALIGN)

/* How many blocks may be needed: each segment has first bytes, or a place. What waits may be read
 * from disk, and stands in blocks twice then. */
static uint64_t count_blocks(const uint8_t *bytes, const struct journal_summary *summary)
{
    struct journal_reader reader = journal_read(bytes, summary->end);
    struct journal_record record;
    uint64_t segments = 0;
    uint64_t places = 0;
    const uint8_t *at;
    bool sense;

    while (journal_next_part(&reader))
        while (journal_next_record(&reader, &record, &at, &sense)) {
            segments += record.type == JOURNAL_BYTES && record.from == 0;
            places += record.type == JOURNAL_PLACE;
        }
    if (places > LEDGER_EXTENTS)
        places = LEDGER_EXTENTS;
    return 2 * (segments + places) + INSPECT_BLOCKS;
}

static int map(struct inspect_image *image, uint64_t blocks, struct cw_err *err)
{
    uint64_t size = blocks * SLOT;
    void *at = mmap(NULL, sizeof(struct ledger_memory) + size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        return cw_err_set(err, CW_ENOMEM,
                          "no addresses for the %llu MiB that these logs may need; raise ulimit -v",
                          (unsigned long long)size >> 20);
    image->memory = at;
    image->region = (struct relay_region){.start = (uint8_t *)(image->memory + 1), .size = size};
    return CW_OK;
}

int inspect_image_open(struct inspect_image *image, const uint8_t *bytes,
                       const struct journal_summary *summary, inspect_read *read, void *ctx,
                       struct cw_err *err)
{
    int failed;

    *image = (struct inspect_image){.read = read, .ctx = ctx, .buffer = malloc(RELAY_BLOCK_BYTES)};
    failed = image->buffer ? map(image, count_blocks(bytes, summary), err)
                           : cw_err_set(err, CW_ENOMEM, "no memory");
    if (!failed)
        failed = restore(image->memory, &image->region, bytes, summary, err);
    if (!failed) {
        supply_init(&image->supply, &image->region);
        ledger_open(&image->ledger, image->memory, image->region.size);
        if (ledger_find_left(&image->ledger, &image->supply) < 0)
            failed = cw_err_set(err, CW_ENOMEM, "no memory");
    }
    if (failed)
        inspect_image_close(image);
    return failed;
}

void inspect_image_give_up_pieces(struct inspect_image *image)
{
    for (uint32_t i = 0; i < image->ledger.left_count; i++)
        image->ledger.left[i].taken = true; /* it stays in memory or on disk */
    ledger_forget_left(&image->ledger, &image->supply);
}

void inspect_image_close(struct inspect_image *image)
{
    if (image->memory) {
        inspect_image_give_up_pieces(image);
        munmap(image->memory, sizeof(*image->memory) + image->region.size);
    }
    free(image->buffer);
}
