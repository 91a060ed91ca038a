#include "tests/sim/descriptors.h"
#include "tests/sim/datagrams.h"
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DESCRIPTORS_MAX 4096
#define PAGE 4096u

static struct descriptor table[DESCRIPTORS_MAX];
static int count;
static struct sim_memory *memories;

static bool is_free(const struct descriptor *d)
{
    return !d->socket && !d->memory && !d->datagrams && !d->control;
}

int descriptor_new_from(int first, struct descriptor what)
{
    int at = first - DESCRIPTOR_FIRST;

    if (at < DESCRIPTORS_GIVEN)
        at = DESCRIPTORS_GIVEN;
    while (at < count && !is_free(&table[at]))
        at++;
    if (at >= DESCRIPTORS_MAX)
        abort();
    if (at >= count)
        count = at + 1;
    table[at] = what;
    return DESCRIPTOR_FIRST + at;
}

int descriptor_new(struct descriptor what)
{
    return descriptor_new_from(DESCRIPTOR_FIRST + DESCRIPTORS_GIVEN, what);
}

int descriptor_give(uint32_t number, struct descriptor what)
{
    if (number >= DESCRIPTORS_GIVEN || !is_free(&table[number]))
        abort();
    if (count <= (int)number)
        count = (int)number + 1;
    table[number] = what;
    return DESCRIPTOR_FIRST + (int)number;
}

bool descriptor_refers(const struct socket *socket)
{
    for (int i = 0; i < count; i++)
        if (table[i].socket == socket)
            return true;
    return false;
}

struct descriptor *descriptor_of(int fd)
{
    int at = fd - DESCRIPTOR_FIRST;

    return at >= 0 && at < count && !is_free(&table[at]) ? &table[at] : NULL;
}

void descriptor_free(int fd)
{
    struct descriptor *d = descriptor_of(fd);

    if (d)
        *d = (struct descriptor){0};
}

short descriptor_events(int fd, short wanted)
{
    const struct descriptor *d = descriptor_of(fd);

    if (d && d->datagrams)
        return datagrams_are_there(d->datagrams) ? POLLIN & wanted : 0;
    return d && d->socket ? socket_events(d->socket, wanted) : POLLNVAL;
}

struct sim_memory *memory_new(void)
{
    struct sim_memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        abort();
    memory->next = memories;
    memories = memory;
    return memory;
}

/* Nobody relies on what the rest holds. */
void memory_size(struct sim_memory *memory, size_t size)
{
    memory->size = size;
    memory->at = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
    if (!memory->at)
        abort();
    memset(memory->at, 0, PAGE);
}

struct sim_memory *memory_new_zero(size_t size)
{
    struct sim_memory *memory = memory_new();

    *memory = (struct sim_memory){.next = memory->next, .size = size, .mapped = size};
    memory->at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory->at == MAP_FAILED)
        abort();
    return memory;
}

struct sim_memory *memory_file_in(struct sim_memory *memory, size_t size)
{
    struct sim_memory *file = memory_new();

    memory->size -= size;
    *file = (struct sim_memory){
        .next = file->next, .size = size, .at = memory->at + memory->size, .part = true};
    if (mprotect(file->at, size, PROT_NONE) < 0)
        abort();
    return file;
}

void memory_provide(const struct sim_memory *file, size_t bytes)
{
    if (mprotect(file->at, bytes, PROT_READ | PROT_WRITE) < 0)
        abort();
}

void descriptors_fini(void)
{
    memset(table, 0, (size_t)count * sizeof(*table));
    count = 0;
    while (memories) {
        struct sim_memory *memory = memories;

        memories = memory->next;
        if (memory->mapped)
            munmap(memory->at, memory->mapped);
        else if (!memory->part)
            free(memory->at);
        free(memory);
    }
}
