/* The simulator's part of the device's library: how a process begins, and a look inside. */
#include "rdevice/arena.h"
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

/* Looked at last: this may take a block. */
static bool has_room(struct cw_stream out)
{
    return !out.keeps && !out.spent && cw_stream_room(&out, CW_CHANNEL_PIECE_MAX) >= 0;
}

bool device_was_not_woken(uint32_t *by)
{
    const struct channel *c = &device.exchange.channel;
    bool reads = c->waits_for == CHANNEL_NOBODY || !c->keeps;

    if (!c->on)
        return false;
    for (uint32_t i = 0; reads && i < c->memory.ranks; i++) {
        *by = c->ranks[i];
        if (!c->holds[i] && (c->awaits == CHANNEL_NOBODY || c->awaits == i) &&
            cw_stream_readable(&c->in[i]))
            return true;
    }
    if (c->waits_for == CHANNEL_NOBODY)
        return false;
    *by = c->ranks[c->waits_for];
    return has_room(c->out[c->waits_for]);
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

bool store_knows(uint32_t servers)
{
    return servers == 1;
}

void store_put_in(struct store_place *place, const struct image_order *order, uint32_t servers)
{
    (void)servers;
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

int store_also(void *ctx)
{
    (void)ctx;
    return -1;
}

int store_finish(void *ctx, int fd, struct cw_err *err)
{
    (void)ctx;
    (void)fd;
    return cw_err_set(err, CW_ESYS, "there are no checkpoint servers");
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
