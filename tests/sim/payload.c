#include "tests/sim/payload.h"
#include "tests/lib/codec.h"

#define PLACES (1u << 16)

static uint8_t table[PAYLOAD_MAX + PLACES];

void payload_init(void)
{
    uint64_t seed = 88172645463325252ull;

    for (size_t i = 0; i + 8 <= sizeof(table); i += 8) {
        uint64_t bits = codec_random(&seed);

        memcpy(table + i, &bits, 8);
    }
}

const uint8_t *payload_of(uint64_t tag)
{
    return table + (tag >> 8) * 2654435761u % PLACES;
}

bool payload_is(const uint8_t *at, uint64_t tag, size_t size)
{
    return size == 0 || memcmp(at, payload_of(tag), size) == 0;
}
