/* The simulator's part of the device's library: how a process begins, and a look inside. */
#include "rdevice/arena.h"
#include "rdevice/calls.h"
#include "rdevice/device.h"
#include "rdevice/lock.h"
#include "tests/sim/device_view.h"

_Thread_local uint64_t calls_made;

extern const char __start_sim_begin[]; /* of the one function that runs when it is loaded */

void device_begin(void)
{
    void (*begin)(void);
    const char *at = __start_sim_begin;

    memcpy(&begin, &at, sizeof(begin));
    begin();
}

void device_call(void)
{
    calls_made++;
}

struct device_view device_look(void)
{
    return (struct device_view){.polls = device_polls(),
                                .acts = device_acts(),
                                .repeats = journal_is_active(&device.exchange.journal),
                                .acts_to_repeat = device.exchange.journal.acts_made};
}

void lock_owe_yield(void)
{
}

int arena_init(void)
{
    return 0;
}

void *arena_alloc(size_t size)
{
    return sim_alloc(size);
}

void arena_free(void *at, size_t size)
{
    (void)size;
    sim_free(at);
}
