#include "relay/channel_file.h"

#include <sys/stat.h>
#include <unistd.h>

static uint64_t size_of(int fd)
{
    struct stat s;

    return fd >= 0 && fstat(fd, &s) == 0 ? (uint64_t)s.st_size : 0;
}

/* The memory gets its size last: before, there is none. */
static uint64_t size(void *ctx)
{
    const struct channel_file *files = ctx;
    uint64_t memory = size_of(files->memory);

    return memory > 0 ? memory + size_of(files->file) : 0;
}

/* One call copies from one of the two. */
static bool read_at(void *ctx, uint64_t at, void *to, size_t bytes)
{
    const struct channel_file *files = ctx;
    uint64_t memory = size_of(files->memory);
    int fd = at < memory ? files->memory : files->file;

    return fd >= 0 &&
           pread(fd, to, bytes, (off_t)(at < memory ? at : at - memory)) == (ssize_t)bytes;
}

struct relay_channel channel_file_source(struct channel_file *files)
{
    if (files->memory < 0)
        return (struct relay_channel){.read = NULL};
    return (struct relay_channel){.size = size, .read = read_at, .ctx = files};
}
