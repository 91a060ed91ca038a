#include "rdevice/image/loader.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

#define DEPTH_MAX 1000 /* of a lock that is taken again by its owner; more is something else */
#define KIND_RECURSIVE 1

/* As libc has it. */
struct mutex {
    int32_t lock;
    uint32_t count;
    int32_t owner;
    uint32_t users;
    int32_t kind;
};

static uintptr_t start, end; /* of the loader's own data; 0: not known */

static int find(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (info->dlpi_addr != getauxval(AT_BASE) || info->dlpi_addr == 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & PF_W)) {
            start = (info->dlpi_addr + part->p_vaddr + 7) & ~(uintptr_t)7;
            end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        }
    }
    return 1;
}

__attribute__((constructor)) static void look(void)
{
    dl_iterate_phdr(find, NULL);
}

bool loader_is_used_by(int32_t tid)
{
    for (uintptr_t at = start; at + sizeof(struct mutex) <= end; at += 8) {
        const struct mutex *m = (const struct mutex *)at;

        if (m->owner == tid && m->kind == KIND_RECURSIVE && m->lock != 0 && m->count > 0 &&
            m->count <= DEPTH_MAX)
            return true;
    }
    return false;
}
