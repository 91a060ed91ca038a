#include "relay/log/squeeze.h"

#include <lz4.h>

uint32_t squeeze_try(struct squeeze *squeeze, const uint8_t *from, uint32_t size, uint8_t *to)
{
    uint32_t most = size - size / SQUEEZE_GAIN_SHARE;
    int stored;

    if (squeeze->left > 0) {
        squeeze->left--;
        return 0;
    }
    stored = LZ4_compress_default((const char *)from, (char *)to, (int)size, (int)most);
    if (stored > 0) {
        squeeze->pause = 0;
        return (uint32_t)stored;
    }
    squeeze->pause = squeeze->pause ? 2 * squeeze->pause : 1;
    if (squeeze->pause > SQUEEZE_PAUSE_MAX)
        squeeze->pause = SQUEEZE_PAUSE_MAX;
    squeeze->left = squeeze->pause;
    return 0;
}

bool squeeze_undo(const uint8_t *from, uint32_t stored, uint8_t *to, uint32_t size)
{
    return LZ4_decompress_safe((const char *)from, (char *)to, (int)stored, (int)size) == (int)size;
}
