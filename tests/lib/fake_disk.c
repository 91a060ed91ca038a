#include "tests/lib/fake_disk.h"
#include "tests/lib/codec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "the simulated disk: %s\n", what);
    abort();
}

static uint64_t sum_of(const uint8_t *bytes, size_t size)
{
    uint64_t sum = size;

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3ull;
    return sum;
}

static void grow(struct fake_disk *disk, uint64_t size)
{
    if (size <= disk->size)
        return;
    size *= 2;
    disk->bytes = realloc(disk->bytes, size);
    require(disk->bytes, "no memory");
    disk->size = size;
}

void fake_disk_take(struct fake_disk *disk, const struct relay_log_io *io)
{
    require(disk->count < STORE_IO_MAX, "too many requests at once");
    require(io->segment && io->at && io->size > 0, "a request without memory");
    for (uint32_t i = 0; i < disk->count; i++)
        require(io->offset + io->size <= disk->out[i].offset ||
                    disk->out[i].offset + disk->out[i].size <= io->offset,
                "two requests at one place");
    require(io->write || io->offset + io->size <= disk->high, "a read of what was not written");
    disk->sums[disk->count] = io->write ? sum_of(io->at, io->size) : 0;
    disk->out[disk->count++] = *io;
}

static int carry_out(struct fake_disk *disk, const struct relay_log_io *io, uint64_t sum)
{
    if (!io->write) {
        if (disk->good_reads && disk->reads >= disk->good_reads)
            return EIO;
        disk->reads++;
        memcpy(io->at, disk->bytes + io->offset, io->size);
        if (disk->right_reads && disk->reads > disk->right_reads)
            io->at[0] ^= 1;
        return 0;
    }
    require(sum_of(io->at, io->size) == sum, "what was being written has changed");
    if (disk->good_writes && disk->writes >= disk->good_writes)
        return ENOSPC;
    disk->writes++;
    grow(disk, io->offset + io->size);
    memcpy(disk->bytes + io->offset, io->at, io->size);
    if (disk->high < io->offset + io->size)
        disk->high = io->offset + io->size;
    return 0;
}

bool fake_disk_done(struct fake_disk *disk, struct relay_log_done *done)
{
    uint32_t at;
    struct relay_log_io io;
    uint64_t sum;

    if (disk->count == 0)
        return false;
    at = (uint32_t)codec_random_below(&disk->seed, disk->count);
    io = disk->out[at];
    sum = disk->sums[at];
    disk->out[at] = disk->out[--disk->count];
    disk->sums[at] = disk->sums[disk->count];
    *done = (struct relay_log_done){io.segment, carry_out(disk, &io, sum)};
    return true;
}

void fake_disk_fini(struct fake_disk *disk)
{
    free(disk->bytes);
    *disk = (struct fake_disk){0};
}
