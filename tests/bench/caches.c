/* How fast large pieces go through a ring from one core to each other one: by stores into the
 * cache, and as the ring chooses (common/ring.c). Rounds of both take turns, for how far two cores
 * are from each other can change under a virtual machine. Prints a line for each round:
 *
 *   CORE OTHER CACHED CHOSEN        microseconds a MiB
 */
#include "common/clock.h"
#include "common/copy.h"
#include "common/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1u << 20)
#define ROUND_MIB 16 /* enough for a ring to choose */
#define MESSAGE (64u << 10)

static struct cw_ring_shared shared;
static _Alignas(4096) uint8_t memory[CW_RING_BYTES];
static _Alignas(4096) uint8_t sent[MESSAGE];
static _Alignas(4096) uint8_t received[MESSAGE];
static struct cw_ring writer = {.shared = &shared, .bytes = memory};
static _Alignas(CW_RING_LINE) struct cw_ring reader = {.shared = &shared, .bytes = memory};
static atomic_bool reads;
static int readers_core;

static void run_on(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void *read_round(void *unused)
{
    run_on(readers_core);
    atomic_store(&reads, true);
    for (size_t left = (size_t)ROUND_MIB * MIB; left > 0;)
        left -= cw_ring_take(&reader, received, left < MESSAGE ? left : MESSAGE);
    return unused;
}

static double write_round(uint64_t (*ticks)(void))
{
    uint64_t before;
    pthread_t thread;

    writer.ticks = ticks;
    atomic_store(&reads, false);
    if (pthread_create(&thread, NULL, read_round, NULL) != 0)
        exit(1);
    while (!atomic_load(&reads))
        sched_yield(); /* it begins on our core */
    before = cw_clock_ns();
    for (size_t left = (size_t)ROUND_MIB * MIB; left > 0;)
        left -= cw_ring_put(&writer, sent, left < MESSAGE ? left : MESSAGE);
    pthread_join(thread, NULL);
    return (double)(cw_clock_ns() - before) / 1e3 / ROUND_MIB;
}

static void rounds(int count)
{
    for (int i = 0; i < count; i++) {
        double cached = write_round(NULL);
        double chosen = write_round(cw_copy_ticks);

        if (i > 0) /* the first one touches the memory */
            printf("0 %d %.1f %.1f\n", readers_core, cached, chosen);
        usleep(10000);
    }
}

int main(int argc, char **argv)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    memset(sent, 1, sizeof(sent));
    run_on(0);
    for (readers_core = 1; readers_core < cores; readers_core++)
        rounds(argc > 1 ? atoi(argv[1]) : 1000);
    return 0;
}
