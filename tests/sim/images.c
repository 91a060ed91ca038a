/* The checkpoint server, and what the dispatcher does with what it has. */
#include "tests/sim/dispatch.h"
#include "tests/sim/image.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

#define KEPT_MAX 8              /* images of a rank */
#define TRIM_ONE_IN 60          /* steps ... */
#define TRIM_REPEATING_ONE_IN 4 /* ... while the rank repeats itself */
#define TRIM_AGAIN_NS 300000000ull
#define OTHER_ONE_IN                                                                               \
    2 /* ranks that are started from another image than the one of their log's begin */

#define each_image(image, rank)                                                                    \
    struct sim_image *image = sim.rank[rank].images;                                               \
    image;                                                                                         \
    image = image->next

static void image_free(struct sim_image *image)
{
    free(image->library);
    free(image->heap);
    free(image->stack);
    record_fini(&image->record);
    free(image);
}

/* A process may still ask what became of it. */
static bool is_awaited(const struct sim_image *image)
{
    for (const struct sim_process *p = sim.processes; p; p = p->next)
        if (p->image == image)
            return true;
    return false;
}

static void drop(struct sim_image *image)
{
    struct sim_image **at = &sim.rank[image->rank].images;

    for (struct sim_process *p = sim.processes; p; p = p->next)
        if (p->image == image)
            p->image = NULL;
    while (*at != image)
        at = &(*at)->next;
    *at = image->next;
    image_free(image);
}

static struct sim_image *find(uint32_t rank, enum sim_image_state state)
{
    for (each_image(image, rank))
        if (image->state == state)
            return image;
    return NULL;
}

/* --- what becomes of them ------------------------------------------------------------------------
 */

static void trim_to(struct sim_image *image)
{
    sim_trace("dispatcher: the log of rank %u is to begin at image %u", image->rank, image->number);
    image->state = IMAGE_IS_TRIMMED_TO;
    image->asked_ns = sim.now_ns;
    image->asked++;
    dispatch_trim(image->rank, &image->point);
}

/* The images that are older than the one at which the log begins, or that were lost. */
static void drop_needless(uint32_t rank)
{
    const struct sim_image *begin = find(rank, IMAGE_IS_BEGIN);
    struct sim_image *next;
    uint32_t count = 0;

    for (struct sim_image *image = sim.rank[rank].images; image; image = next) {
        bool old = begin && image->number < begin->number;

        next = image->next;
        if (image->state == IMAGE_IS_LOST     ? !is_awaited(image)
            : image->state == IMAGE_IS_STORED ? old || ++count > KEPT_MAX
                                              : old && image->state != IMAGE_IS_COPIED)
            drop(image);
    }
}

/* Not while one is on its way to its relay to be started from where the log may not begin then. */
static bool may_trim(uint32_t rank)
{
    const struct sim_process *p = sim.rank[rank].process;

    return !find(rank, IMAGE_IS_TRIMMED_TO) && p && (p->ended || p->record.up);
}

static bool is_time_to_trim(uint32_t rank)
{
    const struct record *record = &sim.rank[rank].process->record;

    return sim_one_in(record->up && !record->live ? TRIM_REPEATING_ONE_IN : TRIM_ONE_IN);
}

static void step_image(struct sim_image *image)
{
    if (image->state == IMAGE_IS_COPIED && sim.now_ns >= image->stored_ns)
        image->state = image->will_be_lost ? IMAGE_IS_LOST : IMAGE_IS_STORED;
    else if (image->state == IMAGE_IS_STORED && may_trim(image->rank) &&
             is_time_to_trim(image->rank))
        trim_to(image);
    else if (image->state == IMAGE_IS_TRIMMED_TO && sim.now_ns >= image->asked_ns + TRIM_AGAIN_NS)
        trim_to(image);
}

static void ask(void)
{
    uint32_t rank = (uint32_t)sim_below(sim.plan.ranks);
    struct sim_rank *r = &sim.rank[rank];

    sim.asked++;
    if (r->process && !r->process->ended)
        dispatch_checkpoint(rank, ++r->last_image);
}

void images_step(void)
{
    if (!sim.plan.image_one_in || !sim.ready || sim.over)
        return;
    if (sim.asked < sim.plan.images_max && sim_one_in(sim.plan.image_one_in))
        ask();
    for (uint32_t rank = 0; rank < sim.plan.ranks; rank++) {
        for (each_image(image, rank))
            step_image(image);
        drop_needless(rank);
    }
}

uint64_t images_deadline_ns(void)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t rank = 0; rank < sim.plan.ranks; rank++)
        for (each_image(image, rank)) {
            uint64_t at = image->state == IMAGE_IS_COPIED       ? image->stored_ns
                          : image->state == IMAGE_IS_TRIMMED_TO ? image->asked_ns + TRIM_AGAIN_NS
                                                                : UINT64_MAX;

            first = at < first ? at : first;
        }
    return first;
}

void images_host_lost(uint32_t rank)
{
    for (each_image(image, rank))
        if (image->state == IMAGE_IS_COPIED || image->state == IMAGE_IS_STORED)
            image->state = IMAGE_IS_LOST;
    drop_needless(rank);
}

static bool is_same(const struct cw_point *a, const struct cw_point *b)
{
    return a->event == b->event && a->clock == b->clock && a->acts == b->acts;
}

/* POINT may come to the relay after a first TRIM, and before a second: the last answer counts. */
static void refuse(struct sim_image *image)
{
    image->asked--;
    if (image->asked == 0)
        image->state = IMAGE_IS_REFUSED;
    image->asked_ns = sim.now_ns;
}

void images_relay_resumed(uint32_t relay)
{
    for (uint32_t rank = 0; rank < sim.plan.ranks; rank++)
        for (each_image(image, rank))
            if (image->state == IMAGE_IS_TRIMMED_TO && sim.plan.homes[rank] == relay)
                trim_to(image);
}

void images_trimmed(const struct cw_trim *trimmed)
{
    struct sim_image *begin = find(trimmed->rank, IMAGE_IS_BEGIN);
    struct sim_image *image = find(trimmed->rank, IMAGE_IS_TRIMMED_TO);

    sim_trace("dispatcher hears: the log of rank %u %s at poll %llu", trimmed->rank,
              trimmed->known ? "begins" : "cannot begin", (unsigned long long)trimmed->point.clock);
    if (begin && is_same(&begin->point, &trimmed->point))
        return; /* it was asked twice */
    if (!image || !is_same(&image->point, &trimmed->point)) {
        if (trimmed->known)
            sim_fail("rank %u: its log begins where nobody asked for it", trimmed->rank);
        return;
    }
    if (!trimmed->known) {
        refuse(image);
        return;
    }
    if (begin)
        begin->state = IMAGE_IS_STORED;
    image->state = IMAGE_IS_BEGIN;
    sim.trimmed++;
    drop_needless(trimmed->rank);
}

/* --- what a rank is started from -----------------------------------------------------------------
 */

bool images_are_settled(uint32_t rank)
{
    return !find(rank, IMAGE_IS_TRIMMED_TO);
}

/* Nothing that was said by earlier processes is still to come. */
static bool is_quiet(uint32_t rank)
{
    for (const struct sim_process *p = sim.processes; p; p = p->next)
        if (p->rank == rank && !p->ended)
            return false;
    return true;
}

struct sim_image *images_choose(uint32_t rank)
{
    struct sim_image *chosen = find(rank, IMAGE_IS_BEGIN);
    uint64_t count = 1;

    if (sim.plan.power || !is_quiet(rank) || !sim_one_in(OTHER_ONE_IN))
        return chosen;
    for (each_image(image, rank))
        if (image->state == IMAGE_IS_STORED && core_knows_point(rank, &image->point) &&
            sim_one_in(++count))
            chosen = image;
    return chosen;
}

void images_end(void)
{
    for (uint32_t rank = 0; rank < SIM_RANKS_MAX; rank++)
        while (sim.rank[rank].images)
            drop(sim.rank[rank].images);
}
