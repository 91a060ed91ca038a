#include "common/pack.h"

/* LZ4 takes 1.43 ns a byte (0.7 GB/s; build/image/stall 1024, Debian 12, 2 cores), a socket whose
 * reader keeps up 0.3 ns. So compression pays where the path is slower than some 10 Gbit/s. */
#define PACK_NS_PER_KIB 1464u
/* One of so many blocks is compressed to know what it brings: 2% of the time at most. In the
 * beginning, 1, 2, 4... blocks are between two of them: the first one may be of another kind. */
#define PACK_TRIED_EVERY 64u
/* What counts as of late; older figures count half, a quarter, ... */
#define PACK_LATE_BYTES 16777216u
/* A smaller piece takes the time of the call, which says nothing of the path. */
#define PACK_TIMED_BYTES 65536u

static bool pays(const struct pack *pack)
{
    uint64_t saved = pack->tried > pack->packed ? pack->tried - pack->packed : 0;

    if (pack->tried == 0 || pack->written == 0)
        return false;
    /* time that is saved per byte, and what it costs */
    return (double)pack->write_ns / (double)pack->written * (double)saved / (double)pack->tried >
           PACK_NS_PER_KIB / 1024.0;
}

static bool is_to_be_tried(uint64_t block)
{
    return block < PACK_TRIED_EVERY ? (block & (block - 1)) == 0 : block % PACK_TRIED_EVERY == 0;
}

bool pack_wanted(struct pack *pack)
{
    return is_to_be_tried(pack->blocks++) || pays(pack);
}

void pack_tried(struct pack *pack, uint64_t size, uint64_t packed)
{
    pack->tried += size;
    pack->packed += packed;
    if (pack->tried > PACK_LATE_BYTES) {
        pack->tried /= 2;
        pack->packed /= 2;
    }
}

void pack_wrote(struct pack *pack, uint64_t bytes, uint64_t ns)
{
    if (bytes < PACK_TIMED_BYTES)
        return;
    pack->written += bytes;
    pack->write_ns += ns;
    if (pack->written > PACK_LATE_BYTES) {
        pack->written /= 2;
        pack->write_ns /= 2;
    }
}
