/* Memory of processes at fixed addresses: heap, stack, and a copy of the device's library. A
 * process that goes on from an image needs the memory of the one that it is of; so a slot is one
 * rank's until the run ends. */
#ifndef SIM_SLOT_H
#define SIM_SLOT_H

#include "tests/sim/coroutine.h"
#include "tests/sim/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS_MAX 64u
#define SLOT_HEAP_BYTES (256u << 20) /* address space, not memory */

struct sim_process;
struct heap;

struct slot {
    struct sim_process *process; /* NULL: free */
    bool used;                   /* in this run, by ... */
    uint32_t rank;
    uint32_t number;
    struct library *library;
    struct heap *heap;
    uint8_t *stack; /* COROUTINE_STACK_BYTES */
};

/* A free one of the rank, as for a process that begins. Never NULL. */
struct slot *slot_take(uint32_t rank, struct sim_process *process);
/* This one, which is free, as it is. */
void slot_take_again(struct slot *slot, struct sim_process *process);
void slot_release(struct slot *slot);
/* The run is over: all are anybody's. */
void slots_end_run(void);
void slots_fini(void);

void *slot_alloc(struct slot *slot, size_t size);
/* Of any. */
void slot_free(void *at);
bool slot_has(const void *at);
/* Of its heap, from the start on. */
size_t slot_heap_used(const struct slot *slot);

#endif
