#include "dispatcher/node/group_memory.h"
#include "relay/disk.h"
#include "relay/options.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct channel_fds none = {-1, -1};

void group_memory_init(struct group_memory *memory)
{
    for (uint32_t i = 0; i < CW_RELAYS_MAX; i++) {
        memory->group[i] = none;
        memory->sized[i] = false;
    }
}

static void close_group(struct group_memory *memory, uint32_t group)
{
    struct channel_fds *fds = &memory->group[group];

    if (fds->memory >= 0)
        close(fds->memory);
    if (fds->file >= 0)
        close(fds->file);
    *fds = none;
    memory->sized[group] = false;
}

void group_memory_close(struct group_memory *memory)
{
    for (uint32_t i = 0; i < CW_RELAYS_MAX; i++)
        close_group(memory, i);
}

/* For what of the log memory does not hold: where there is no disk for it, none. */
static const char *log_dir(void)
{
    const char *dir = relay_settings_log_dir(&(struct relay_settings){.log_dir = NULL});

    return disk_in_memory(dir) ? NULL : dir;
}

int group_memory_make(struct group_memory *memory, uint32_t group, struct cw_err *err)
{
    const char *dir = log_dir();

    close_group(memory, group);
    memory->group[group].memory = memfd_create("causeway-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->group[group].memory < 0)
        return cw_err_set(err, CW_ESYS, "making channel memory: %s", strerror(errno));
    memory->group[group].file = dir ? disk_make_file(dir) : -1;
    return CW_OK;
}

/* The file first: who finds the memory of some size finds the file of its own. */
static void size_file(struct channel_fds *fds, const struct cw_setup *setup)
{
    const char *dir = log_dir();
    uint64_t size = dir ? disk_free(dir) / 2 : 0;

    size = cw_channel_blocks_of(setup->channel_ranks,
                                size < setup->channel_disk ? size : setup->channel_disk);
    if (fds->file < 0 || (size > 0 && ftruncate(fds->file, (off_t)size) == 0))
        return;
    close(fds->file);
    fds->file = -1;
}

static bool size_memory(int fd, const struct cw_setup *setup)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    return ftruncate(fd, (off_t)setup->channel_bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0;
}

const struct channel_fds *group_memory_of(struct group_memory *memory, const struct cw_setup *setup,
                                          struct cw_err *err)
{
    uint32_t group = setup->channel_group;
    struct channel_fds *fds = &memory->group[group];

    if (!(setup->flags & CW_SETUP_CHANNEL))
        return &none;
    if (fds->memory < 0 && group_memory_make(memory, group, err) < 0)
        return NULL;
    if (memory->sized[group])
        return fds;
    size_file(fds, setup);
    memory->sized[group] = size_memory(fds->memory, setup);
    if (memory->sized[group])
        return fds;
    cw_err_set(err, CW_ESYS, "channel memory of %llu bytes: %s; --channel off does without",
               (unsigned long long)setup->channel_bytes, strerror(errno));
    close_group(memory, group);
    return NULL;
}
