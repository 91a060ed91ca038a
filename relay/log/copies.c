#include "relay/log/copies.h"

#include "common/copy.h"

#include <string.h>

static void pay_first(struct owed_copies *copies)
{
    struct owed_copy *copy = &copies->ring[copies->first++ % COPIES_MAX];

    cw_copy_away(copy->to, copy->from, copy->size);
    relay_block_release(copy->to_block);
    relay_block_release(copy->from_block);
    copies->bytes -= copy->size;
    copies->count--;
}

void copies_owe(struct owed_copies *copies, uint8_t *to, struct relay_block *to_block,
                const uint8_t *from, uint32_t size, struct relay_block *from_block)
{
    if (!from_block || size < COPIES_OWED_MIN) {
        memcpy(to, from, size);
        return;
    }
    while (copies->count == COPIES_MAX ||
           (copies->count > 0 && copies->bytes + size > COPIES_BYTES_MAX))
        pay_first(copies);
    to_block->refs++;
    from_block->refs++;
    copies->ring[(copies->first + copies->count++) % COPIES_MAX] =
        (struct owed_copy){to, from, size, to_block, from_block};
    copies->bytes += size;
}

void copies_pay_all(struct owed_copies *copies)
{
    while (copies->count > 0)
        pay_first(copies);
}
