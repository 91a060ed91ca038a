/* The simulator's part of the device's library: how a process begins, and a look inside. */
#include "rdevice/arena.h"
#include "rdevice/bell.h"
#include "rdevice/calls.h"
#include "rdevice/device.h"
#include "rdevice/heap.h"
#include "rdevice/held.h"
#include "rdevice/image/image.h"
#include "rdevice/lock.h"
#include "rdevice/store.h"
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
    const struct cursor *c = &device.exchange.cursor;

    return (struct device_view){.polls = c->polls,
                                .acts = c->acts,
                                .repeats = c->active,
                                .acts_to_repeat =
                                    device.exchange.channel.on ? UINT64_MAX : c->acts_made};
}

void lock_owe_yield(void)
{
}

void held_go_on(void)
{
}

const char *held_refusal(void)
{
    return NULL;
}

bool lock_holds_up(void)
{
    return false;
}

/* --- images: the simulator has the functions of image.h --- */

int store_begin(const struct cw_setup *setup, struct cw_err *err)
{
    (void)setup;
    err->code = CW_OK;
    return CW_OK;
}

const void *store_secret(void)
{
    return NULL;
}

void store_put_in(struct store_place *place, const struct image_order *order)
{
    place->order = order;
}

void store_wipe(struct store_place *place)
{
    (void)place;
}

int store_open(void *ctx, uint64_t bytes, uint32_t *base, struct cw_err *err)
{
    (void)ctx;
    (void)bytes;
    (void)base;
    return cw_err_set(err, CW_ESYS, "there are no checkpoint servers");
}

int store_finish(void *ctx, int fd, struct cw_err *err)
{
    (void)ctx;
    (void)fd;
    return cw_err_set(err, CW_ESYS, "there are no checkpoint servers");
}

/* --- bells: there are no sockets for them, and a rank looks at both --- */

void bell_open(struct bell *bell, const uint8_t job[CW_ID_SIZE], uint32_t rank,
               uint32_t incarnation, int number)
{
    (void)job;
    (void)rank;
    (void)incarnation;
    (void)number;
    bell->fd = -1;
}

void bell_ring(const struct bell *bell, uint32_t rank, uint32_t incarnation)
{
    (void)bell;
    (void)rank;
    (void)incarnation;
}

void bell_hear(const struct bell *bell)
{
    (void)bell;
}

/* --- memory --- */

int arena_init(void)
{
    return 0;
}

void heap_begin(uintptr_t address)
{
    (void)address;
}

bool arena_addresses_stay(void)
{
    return true;
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
