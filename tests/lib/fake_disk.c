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

static void grow(struct fake_file *file, uint64_t size)
{
    if (size <= file->size)
        return;
    size *= 2;
    file->bytes = realloc(file->bytes, size);
    file->durable = realloc(file->durable, size);
    require(file->bytes && file->durable, "no memory");
    memset(file->bytes + file->size, 0, size - file->size);
    memset(file->durable + file->size, 0, size - file->size);
    file->size = size;
}

void fake_disk_take(struct fake_disk *disk, const struct relay_log_io *io)
{
    require(disk->count < FAKE_DISK_OUT, "too many requests at once");
    require(io->at && io->size > 0, "a request without memory");
    require(!io->segment == (io->file != STORE_SEGMENTS), "a segment in a journal");
    for (uint32_t i = 0; i < disk->count; i++)
        require(io->file != disk->out[i].file || io->offset + io->size <= disk->out[i].offset ||
                    disk->out[i].offset + disk->out[i].size <= io->offset,
                "two requests at one place");
    require(io->write || io->offset + io->size <= disk->files[io->file].high,
            "a read of what was not written");
    disk->sums[disk->count] = io->write ? sum_of(io->at, io->size) : 0;
    disk->out[disk->count++] = *io;
}

static int carry_out(struct fake_disk *disk, const struct relay_log_io *io, uint64_t sum)
{
    struct fake_file *file = &disk->files[io->file];

    if (!io->write) {
        if (disk->good_reads && disk->reads >= disk->good_reads)
            return EIO;
        disk->reads++;
        memcpy(io->at, file->bytes + io->offset, io->size);
        if (disk->right_reads && disk->reads > disk->right_reads)
            io->at[0] ^= 1;
        return 0;
    }
    require(sum_of(io->at, io->size) == sum, "what was being written has changed");
    if (disk->good_writes && disk->writes >= disk->good_writes)
        return ENOSPC;
    disk->writes++;
    grow(file, io->offset + io->size);
    memcpy(file->bytes + io->offset, io->at, io->size);
    if (io->sync)
        memcpy(file->durable + io->offset, io->at, io->size);
    if (file->high < io->offset + io->size)
        file->high = io->offset + io->size;
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

void fake_disk_lose_power(struct fake_disk *disk)
{
    for (uint32_t i = 0; i < disk->count; i++)
        if (disk->out[i].write) {
            disk->out[i].sync = false;
            carry_out(disk, &disk->out[i], disk->sums[i]);
        }
    disk->count = 0;
    for (int i = 0; i < STORE_FILES; i++)
        for (uint64_t at = 0; at < disk->files[i].high; at += FAKE_DISK_SECTOR) {
            uint8_t *sector = disk->files[i].bytes + at;
            uint8_t *durable = disk->files[i].durable + at;

            if (memcmp(sector, durable, FAKE_DISK_SECTOR) == 0)
                continue;
            if (codec_random_below(&disk->seed, 2) == 0)
                memcpy(sector, durable, FAKE_DISK_SECTOR);
            else
                memcpy(durable, sector, FAKE_DISK_SECTOR);
        }
}

void fake_disk_fini(struct fake_disk *disk)
{
    for (int i = 0; i < STORE_FILES; i++) {
        free(disk->files[i].bytes);
        free(disk->files[i].durable);
    }
    *disk = (struct fake_disk){0};
}
