/* Descriptors of the simulated system, of all its processes and relays. */
#ifndef SIM_DESCRIPTORS_H
#define SIM_DESCRIPTORS_H

#include "tests/sim/socket.h"

#include <stddef.h>
#include <stdint.h>

#define DESCRIPTOR_FIRST 100
#define DESCRIPTORS_GIVEN 64 /* the first ones: given to processes at their start, by number */

struct sim_process;
struct sim_datagrams;

/* Memory that several processes may map. */
struct sim_memory {
    struct sim_memory *next;
    size_t size;
    uint8_t *at;
    size_t mapped; /* bytes that go with munmap(2) */
    bool part;     /* of another one */
};

/* One of them is not NULL. */
struct descriptor {
    struct socket *socket;
    struct sim_memory *memory;
    struct sim_datagrams *datagrams;
    struct sim_process *control; /* the rank's end of what leads to the dispatcher */
};

/* The lowest free number, or the lowest from `first` on. Never fails. */
int descriptor_new(struct descriptor what);
int descriptor_new_from(int first, struct descriptor what);
/* One of those that are given. */
int descriptor_give(uint32_t number, struct descriptor what);
/* NULL for what is none. */
struct descriptor *descriptor_of(int fd);
void descriptor_free(int fd);
/* Those of `wanted` that poll() would tell; of what is none, POLLNVAL. */
short descriptor_events(int fd, short wanted);
/* Whether any stands for this socket. */
bool descriptor_refers(const struct socket *socket);

struct sim_memory *memory_new(void);
/* Of so many bytes, the first page zero. */
void memory_size(struct sim_memory *memory, size_t size);
/* All of it zero, and made as it is used. */
struct sim_memory *memory_new_zero(size_t size);
/* So many of the last bytes of it: a file, of which nothing may be touched before memory_provide().
 */
struct sim_memory *memory_file_in(struct sim_memory *memory, size_t size);
void memory_provide(const struct sim_memory *file, size_t bytes);

/* At the end of a run. */
void descriptors_fini(void);

#endif
