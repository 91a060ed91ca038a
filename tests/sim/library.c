#include "tests/sim/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "sim-device.so" /* beside the program */

static struct library *free_list;
static uint8_t *file;
static size_t file_size;

static void fail(const char *what)
{
    fprintf(stderr, "sim: %s: %s\n", NAME, what);
    exit(2);
}

static void read_file(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(NAME));
    struct stat s;
    char *slash;
    int fd;

    if (n < 0)
        fail("no path to it");
    path[n] = '\0';
    slash = strrchr(path, '/');
    strcpy(slash + 1, NAME);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s) < 0)
        fail("it cannot be opened");
    file_size = (size_t)s.st_size;
    file = malloc(file_size);
    if (!file || read(fd, file, file_size) != s.st_size)
        fail("it cannot be read");
    close(fd);
}

/* What may be written once it is loaded: behind what the loader has made read-only. */
static int find_memory(struct dl_phdr_info *info, size_t size, void *context)
{
    struct library *library = context;
    struct link_map *map;
    uintptr_t constant = 0;

    (void)size;
    if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) < 0 || map->l_addr != info->dlpi_addr)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            constant = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_W))
            continue;
        library->start = (uint8_t *)info->dlpi_addr + constant;
        library->size = end - constant;
    }
    return 1;
}

#if defined(__SANITIZE_ADDRESS__)
/* Between variables lies what must not be touched. */
__attribute__((no_sanitize("address"))) static void copy(uint8_t *to, const uint8_t *from,
                                                         size_t size)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = from[i];
        __asm__ volatile("" ::: "memory"); /* else it becomes a call of memcpy, which looks */
    }
}
#else
#define copy(to, from, size) memcpy(to, from, size)
#endif

static void *resolve(const struct library *library, const char *name)
{
    void *at = dlsym(library->handle, name);

    if (!at)
        fail(name);
    return at;
}

/* A file of its own each time, under a name of its own: the loader loads none twice. */
static struct library *load(void)
{
    struct library *library = calloc(1, sizeof(*library));
    int fd = memfd_create(NAME, MFD_CLOEXEC);
    char path[64];

    if (!file)
        read_file();
    if (!library || fd < 0 || write(fd, file, file_size) != (ssize_t)file_size)
        fail("it cannot be copied");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        fail(dlerror());
    library->fd = fd;
    dl_iterate_phdr(find_memory, library);
    library->fresh = malloc(library->size);
    if (!library->start || !library->fresh)
        fail("its memory is not found");
    copy(library->fresh, library->start, library->size);
#define X(name) library->name = resolve(library, #name);
    LIBRARY_FUNCTIONS(X)
#undef X
    return library;
}

struct library *library_take(void)
{
    struct library *library = free_list;

    if (!library)
        return load();
    free_list = library->next;
    library_renew(library);
    return library;
}

void library_renew(struct library *library)
{
    copy(library->start, library->fresh, library->size);
}

void library_save(const struct library *library, uint8_t *to)
{
    copy(to, library->start, library->size);
}

void library_restore(struct library *library, const uint8_t *from)
{
    copy(library->start, from, library->size);
}

void library_release(struct library *library)
{
    library->next = free_list;
    free_list = library;
}

void libraries_fini(void)
{
    while (free_list) {
        struct library *library = free_list;

        free_list = library->next;
        dlclose(library->handle);
        close(library->fd);
        free(library->fresh);
        free(library);
    }
    free(file);
    file = NULL;
}
