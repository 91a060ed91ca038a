/* What a relay left, with some of it changed: who takes it up may lose a job, or all, but no
 * assertion fails, and at the end nothing is held. A core makes what is left once, by a script. The
 * input is a list of changes, and then of what the clients do. */
#include "common/buf.h"
#include "relay/log/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/left_job.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION (64ull << 20)
#define LEFT_SIZE (sizeof(struct ledger_memory) + REGION)
#define MEMORY_MAX (48u << 20)
#define LOG_MEMORY (100u << 10)
#define PLACES 64u /* on disk */
#define CHANGES_MAX 24

static uint8_t disk[PLACES][RELAY_BLOCK_BYTES];
static uint64_t good_reads;
static uint64_t wrong_read; /* the one after so many gives other bytes */
static bool making;         /* what is left: what is written then stays on disk */
static int left_fd;         /* what was left: each run has a copy of its own */

static struct ledger_memory *map_left(int how)
{
    void *at = mmap(NULL, LEFT_SIZE, PROT_READ | PROT_WRITE, how | MAP_NORESERVE, left_fd, 0);

    must(at != MAP_FAILED);
    return at;
}

static int carry_out(const struct relay_log_io *io)
{
    if (io->offset + io->size > sizeof(disk) || (!io->write && good_reads == 0))
        return EIO;
    good_reads -= !io->write;
    if (!io->write)
        memcpy(io->at, (uint8_t *)disk + io->offset, io->size);
    if (!io->write && wrong_read-- == 0)
        io->at[9] ^= 1;
    if (io->write && making)
        memcpy((uint8_t *)disk + io->offset, io->at, io->size);
    return 0;
}

/* `share`: one part in so many of what it had when all was made. */
static void open_core(struct ledger_memory *left, uint32_t share)
{
    struct relay_core_config config = {.memory_max = MEMORY_MAX / share,
                                       .log_memory = making ? LOG_MEMORY : MEMORY_MAX,
                                       .log_disk = sizeof(disk),
                                       .ledger = left};

    config.region = (struct relay_region){.start = (uint8_t *)(left + 1), .size = REGION};
    left_job_open(&config, carry_out);
}

/* The core that made it stays, for nothing of it may be given back. */
static void make_left(void)
{
    static struct relay_core *first;
    struct ledger_memory *left;

    left_fd = memfd_create("left", MFD_CLOEXEC);
    must(left_fd >= 0 && ftruncate(left_fd, LEFT_SIZE) == 0);
    left = map_left(MAP_SHARED);
    making = true;
    good_reads = UINT64_MAX;
    open_core(left, 1);
    left_job_begin(0, 0);
    first = left_job_leave();
    making = false;
    must(first && left->header.extents_used > 0);
}

/* --- changes ------------------------------------------------------------------------------------
 */
static uint64_t some_value(struct cw_reader *r, uint64_t old)
{
    uint8_t how = cw_get_u8(r);

    switch (how & 7) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return 0;
    case 3:
        return UINT64_MAX;
    case 4:
        return old ^ 1ull << (how >> 3);
    default:
        return cw_get_u16(r);
    }
}

/* One number of it. */
static void change_at(void *at, size_t size, struct cw_reader *r)
{
    size_t wide = 1u << (cw_get_u8(r) & 3);
    size_t place = cw_get_u16(r) % (size / wide) * wide;
    uint64_t value = 0;

    memcpy(&value, (uint8_t *)at + place, wide);
    value = some_value(r, value);
    memcpy((uint8_t *)at + place, &value, wide);
}

static void change(struct ledger_memory *left, uint64_t blocks, struct cw_reader *r)
{
    uint8_t what = cw_get_u8(r);
    uint8_t which = cw_get_u8(r);
    size_t slot = (sizeof(struct relay_block) + 4095) / 4096 * 4096;
    struct relay_block *block =
        (struct relay_block *)((uint8_t *)(left + 1) + which % blocks * slot);

    switch (what % 8) {
    case 0:
        change_at(&left->header, sizeof(left->header), r);
        break;
    case 1:
        change_at(&left->extents[which % 32], sizeof(*left->extents), r);
        break;
    case 2:
        change_at(&block->mark, sizeof(block->mark), r);
        break;
    case 3:
    case 4:
        change_at(block->bytes, what & 64 ? 256 : STORE_SEGMENT_BYTES, r);
        break;
    case 5:
        wrong_read = which;
        break;
    default:
        change_at(&left->cells[which % 16].copy[what >> 7], sizeof(struct ledger_copy), r);
        break;
    }
}

/* --- all of it ----------------------------------------------------------------------------------
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t shares[] = {1, 2, 7, 14};
    struct cw_reader r = cw_reader(data, size);
    struct relay_returned returned;
    struct ledger_memory *left;
    uint64_t blocks;
    uint32_t changes;

    if (left_fd == 0)
        make_left();
    left = map_left(MAP_PRIVATE);
    blocks = left->header.carved / ((sizeof(struct relay_block) + 4095) / 4096 * 4096);
    good_reads = size % 5 ? UINT64_MAX : size % 7;
    wrong_read = UINT64_MAX;
    changes = cw_get_u8(&r) % CHANGES_MAX;
    for (uint32_t i = 0; i < changes && r.left > 0; i++)
        change(left, blocks, &r);
    open_core(left, shares[size % 4]);
    left_job_return(&returned);
    /* what was not changed is not lost */
    must(changes > 0 || size % 5 == 0 || size % 4 > 0 ||
         (returned.lost == 0 && returned.sessions == LEFT_JOB_SESSIONS));
    while (r.left > 0)
        left_job_act(&r);
    left_job_end();
    munmap(left, LEFT_SIZE);
    return 0;
}
