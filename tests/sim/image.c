/* The device's image.h, for simulated processes. */
#include "tests/sim/image.h"
/* the device's library finds them in this program */
#pragma GCC visibility push(default)
#include "rdevice/image/image.h"
#include "rdevice/image/probe.h"
#pragma GCC visibility pop
#include "tests/sim/program.h"
#include "tests/sim/sim.h"
#include "tests/sim/slot.h"

#include <stdlib.h>

#define REFUSED_ONE_IN 20
#define LOST_ONE_IN 6
#define COPY_DIES_ONE_IN 2 /* with its process */
#define COPY_MAX_NS 3000000ull

static uint8_t *must(uint8_t *at)
{
    if (!at)
        abort();
    return at;
}

/* --- memory --------------------------------------------------------------------------------------
 */

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

static uint8_t *copy_of(const void *from, size_t size)
{
    uint8_t *to = must(malloc(size + 1));

    copy(to, from, size);
    return to;
}

static void copy_record(struct record *to, const struct record *from)
{
    *to = *from;
    to->acts = (void *)copy_of(from->acts, from->act_size * sizeof(*from->acts));
    to->events = (void *)copy_of(from->events, from->event_size * sizeof(*from->events));
}

/* What lies on the stack at or above `from` is the program's, and the device's. */
static void copy_process(struct sim_image *image, const struct sim_process *p, const uint8_t *from)
{
    const uint8_t *end = p->slot->stack + COROUTINE_STACK_BYTES;

    image->slot = p->slot;
    image->program = p->program;
    image->library = must(malloc(p->library->size));
    library_save(p->library, image->library);
    image->heap_size = slot_heap_used(p->slot);
    image->heap = copy_of(p->slot->heap, image->heap_size);
    image->stack_size = (size_t)(end - from);
    image->stack = copy_of(from, image->stack_size);
    copy_record(&image->record, &p->record);
}

void image_put_back(const struct sim_image *image, struct sim_process *p)
{
    library_restore(p->library, image->library);
    copy((uint8_t *)p->slot->heap, image->heap, image->heap_size);
    copy(p->slot->stack + COROUTINE_STACK_BYTES - image->stack_size, image->stack,
         image->stack_size);
    copy_record(&p->record, &image->record);
    p->record.up = p->record.live = false;
    p->program = image->program;
    p->program->process = p;
}

void image_owner_ended(struct sim_process *p)
{
    if (p->image && p->image->state == IMAGE_IS_COPIED && sim_one_in(COPY_DIES_ONE_IN))
        p->image->will_be_lost = true;
    p->image = NULL;
}

/* --- what the device asks ------------------------------------------------------------------------
 */

int image_probe(struct cw_err *err)
{
    (void)err;
    return CW_OK;
}

static struct sim_image *image_new(const struct image_order *order)
{
    struct sim_image *image = calloc(1, sizeof(*image));

    if (!image)
        abort();
    image->rank = order->rank;
    image->incarnation = order->incarnation;
    image->number = order->number;
    image->point =
        (struct cw_point){.event = order->event, .clock = order->clock, .acts = order->acts};
    image->stored_ns = sim.now_ns + sim_below(COPY_MAX_NS);
    image->will_be_lost = sim_one_in(LOST_ONE_IN);
    return image;
}

/* In a function of its own: what it has on the stack is below the caller's. */
__attribute__((noinline)) static void take(struct sim_image *image)
{
    struct sim_process *p = process_now();

    sim_trace("%u.%u takes image %u at event %llu, poll %llu, act %llu", p->rank, p->incarnation,
              image->number, (unsigned long long)image->point.event,
              (unsigned long long)image->point.clock, (unsigned long long)image->point.acts);
    copy_process(image, p, __builtin_frame_address(0));
    p->image = image;
    image->next = sim.rank[p->rank].images;
    sim.rank[p->rank].images = image;
    sim.taken++;
}

enum image_result image_take(const struct image_order *order, const struct image_setting *setting,
                             struct cw_err *err)
{
    struct sim_image *image;

    (void)setting;
    if (process_now()->lost || sim_one_in(REFUSED_ONE_IN)) {
        cw_err_set(err, CW_ESYS, "no process can be made");
        return IMAGE_REFUSED;
    }
    image = image_new(order);
    if (_setjmp(image->at)) {
        task_gone_on();
        sim_trace("%u.%u goes on", process_now()->rank, process_now()->incarnation);
        return IMAGE_RESTORED;
    }
    take(image);
    return IMAGE_BEGUN;
}

enum image_state image_poll(struct image_outcome *outcome)
{
    struct sim_process *p = process_now();
    struct sim_image *image = p->image;

    if (!image)
        return IMAGE_NONE;
    if (image->state == IMAGE_IS_COPIED)
        return IMAGE_ON_ITS_WAY;
    p->image = NULL;
    *outcome = (struct image_outcome){.number = image->number};
    if (image->state != IMAGE_IS_LOST)
        return IMAGE_STORED;
    cw_err_set(&outcome->err, CW_ESYS, "the checkpoint server does not answer");
    return IMAGE_FAILED;
}

void image_cancel(void)
{
    struct sim_process *p = process_now();

    if (p->image && p->image->state == IMAGE_IS_COPIED)
        p->image->will_be_lost = true;
    p->image = NULL;
}

const char *image_remark(uint32_t index)
{
    (void)index;
    return NULL;
}

/* A simulated process has one thread. */
int image_hold(bool (*unfit)(void), struct cw_err *err)
{
    (void)unfit;
    if (sim_one_in(REFUSED_ONE_IN))
        return cw_err_set(err, CW_ESYS, "thread 2 does not stop");
    return 0;
}

void image_let_go(void)
{
}

bool image_thread(uint32_t index, int32_t *former, int32_t *now)
{
    (void)index;
    (void)former;
    (void)now;
    return false;
}

void *image_thread_local(uint32_t index, void *mine)
{
    (void)index;
    (void)mine;
    return NULL;
}

bool image_is_here(void)
{
    return true;
}
