#include "ckptsrv/registry.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct held_image {
    struct held_image *newer; /* of its rank */
    struct held_rank *rank;
    struct cw_stored stored;
    struct extents extents; /* what it refers to */
    uint32_t pins;          /* one for being in the list */
    bool told;
};

struct held_job {
    struct held_job *next;
    struct registry *registry;
    uint8_t id[CW_ID_SIZE];
    struct held_rank **ranks; /* NULL: nothing of it is held */
    uint32_t ranks_size;
    uint32_t ranks_count; /* that are not NULL */
};

struct held_rank {
    struct held_job *job;
    uint32_t number;
    struct units units;
    struct held_image *oldest;
    uint32_t users;   /* who have entered, and images that are pinned and not in the list */
    uint32_t unknown; /* the highest number of an image whose units are not known; 0: none */
};

struct registry {
    pthread_mutex_t lock;
    const struct imgdir *files;
    uint64_t max_units; /* UINT64_MAX: no bound */
    uint64_t units;     /* of all files */
    struct held_job *jobs;
};

static void lock(struct registry *registry)
{
    pthread_mutex_lock(&registry->lock);
}

static void unlock(struct registry *registry)
{
    pthread_mutex_unlock(&registry->lock);
}

static struct registry *registry_of(const struct held_rank *rank)
{
    return rank->job->registry;
}

struct registry *registry_new(const struct imgdir *files, uint64_t max)
{
    struct registry *registry = calloc(1, sizeof(*registry));

    if (!registry)
        return NULL;
    pthread_mutex_init(&registry->lock, NULL);
    registry->files = files;
    registry->max_units = max ? max / UNIT_BYTES : UINT64_MAX;
    return registry;
}

/* --- finding and forgetting ----------------------------------------------------------------------
 */

static struct held_job *find_job(const struct registry *registry, const uint8_t *id)
{
    struct held_job *job = registry->jobs;

    while (job && memcmp(job->id, id, CW_ID_SIZE) != 0)
        job = job->next;
    return job;
}

static struct held_job *make_job(struct registry *registry, const uint8_t *id)
{
    struct held_job *job = calloc(1, sizeof(*job));

    if (!job)
        return NULL;
    memcpy(job->id, id, CW_ID_SIZE);
    job->registry = registry;
    job->next = registry->jobs;
    registry->jobs = job;
    return job;
}

static void free_job(struct held_job *job)
{
    struct held_job **at = &job->registry->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    free(job->ranks);
    free(job);
}

static bool make_place(struct held_job *job, uint32_t rank)
{
    uint32_t size = job->ranks_size ? job->ranks_size : 16;
    struct held_rank **ranks;

    assert(rank < CW_RANKS_MAX);
    if (rank < job->ranks_size)
        return true;
    while (size <= rank)
        size *= 2;
    ranks = realloc(job->ranks, size * sizeof(struct held_rank *));
    if (!ranks)
        return false;
    memset(ranks + job->ranks_size, 0, (size - job->ranks_size) * sizeof(struct held_rank *));
    job->ranks = ranks;
    job->ranks_size = size;
    return true;
}

static struct held_rank *make_rank(struct held_job *job, uint32_t number)
{
    struct held_rank *rank;

    if (!make_place(job, number))
        return NULL;
    if (job->ranks[number])
        return job->ranks[number];
    rank = calloc(1, sizeof(*rank));
    if (!rank)
        return NULL;
    rank->job = job;
    rank->number = number;
    job->ranks[number] = rank;
    job->ranks_count++;
    return rank;
}

static void free_image(struct held_image *image)
{
    extents_clear(&image->extents);
    free(image);
}

static void free_rank(struct held_rank *rank)
{
    struct held_job *job = rank->job;

    registry_of(rank)->units -= rank->units.count;
    while (rank->oldest) {
        struct held_image *image = rank->oldest;

        rank->oldest = image->newer;
        free_image(image);
    }
    units_clear(&rank->units);
    job->ranks[rank->number] = NULL;
    job->ranks_count--;
    free(rank);
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    while (registry->jobs) {
        struct held_job *job = registry->jobs;

        for (uint32_t i = 0; i < job->ranks_size; i++)
            if (job->ranks[i])
                free_rank(job->ranks[i]);
        free_job(job);
    }
    pthread_mutex_destroy(&registry->lock);
    free(registry);
}

/* With files, where nothing of a rank, or of a job, is held and in use any more. */
static void forget_unused(struct held_rank *rank)
{
    struct held_job *job = rank->job;
    const struct imgdir *files = job->registry->files;

    if (rank->users > 0 || rank->oldest || rank->unknown)
        return;
    imgdir_remove_blocks(files, job->id, rank->number);
    free_rank(rank);
    if (job->ranks_count > 0)
        return;
    imgdir_remove_job(files, job->id);
    free_job(job);
}

struct held_rank *registry_enter(struct registry *registry, const uint8_t id[CW_ID_SIZE],
                                 uint32_t number)
{
    struct held_rank *rank = NULL;
    struct held_job *job;

    lock(registry);
    job = find_job(registry, id);
    if (!job)
        job = make_job(registry, id);
    if (job)
        rank = make_rank(job, number);
    if (rank)
        rank->users++;
    else if (job && job->ranks_count == 0)
        free_job(job);
    unlock(registry);
    return rank;
}

void registry_leave(struct held_rank *rank)
{
    struct registry *registry = registry_of(rank);

    lock(registry);
    assert(rank->users > 0);
    rank->users--;
    forget_unused(rank);
    unlock(registry);
}

/* --- room ----------------------------------------------------------------------------------------
 */

static uint64_t growth(const struct registry *registry)
{
    return registry->max_units > registry->units ? registry->max_units - registry->units : 0;
}

uint64_t registry_room(struct held_rank *rank)
{
    struct registry *registry = registry_of(rank);
    uint64_t units;

    lock(registry);
    units = growth(registry);
    if (units < UINT64_MAX / UNIT_BYTES)
        units += rank->units.count - rank->units.used;
    unlock(registry);
    return units < UINT64_MAX / UNIT_BYTES ? units * UNIT_BYTES : UINT64_MAX;
}

void registry_use(struct registry *registry, uint64_t *used, uint64_t *max)
{
    lock(registry);
    *used = registry->units * UNIT_BYTES;
    *max = registry->max_units == UINT64_MAX ? 0 : registry->max_units * UNIT_BYTES;
    unlock(registry);
}

int registry_take(struct held_rank *rank, uint64_t least, uint64_t most, struct extent *taken,
                  struct cw_err *err)
{
    struct registry *registry = registry_of(rank);
    uint64_t before;
    int failed = CW_OK;

    lock(registry);
    before = rank->units.count;
    if (units_take(&rank->units, least, most, growth(registry), taken))
        registry->units += rank->units.count - before;
    else if (growth(registry) >= least)
        failed = cw_err_set(err, CW_ENOMEM, "no memory for an image of rank %u", rank->number);
    else
        failed = cw_err_set(err, CW_ELIMIT,
                            "no room for %llu bytes more: the checkpoint server has %llu bytes of "
                            "blocks, and may have %llu; give it more (--max; of a job: --ckpt-max)",
                            (unsigned long long)least * UNIT_BYTES,
                            (unsigned long long)registry->units * UNIT_BYTES,
                            (unsigned long long)registry->max_units * UNIT_BYTES);
    unlock(registry);
    return failed;
}

static void release(struct held_rank *rank, const struct extents *extents)
{
    struct registry *registry = registry_of(rank);
    uint64_t before = rank->units.count;

    for (size_t i = 0; i < extents->count; i++)
        units_release(&rank->units, extents->at[i]);
    registry->units -= before - rank->units.count;
    if (rank->units.count < before)
        imgdir_shorten(registry->files, rank->job->id, rank->number,
                       rank->units.count * UNIT_BYTES);
}

void registry_release(struct held_rank *rank, const struct extents *extents)
{
    struct registry *registry = registry_of(rank);

    lock(registry);
    release(rank, extents);
    unlock(registry);
}

void registry_fit(struct held_rank *rank)
{
    struct registry *registry = registry_of(rank);

    lock(registry);
    imgdir_shorten(registry->files, rank->job->id, rank->number, rank->units.count * UNIT_BYTES);
    unlock(registry);
}

/* --- images --------------------------------------------------------------------------------------
 */

static bool refer(struct held_rank *rank, const struct extents *extents)
{
    uint64_t before = rank->units.count;
    size_t i = 0;

    while (i < extents->count && units_refer(&rank->units, extents->at[i]))
        i++;
    registry_of(rank)->units += rank->units.count - before;
    if (i == extents->count)
        return true;
    release(rank, &(struct extents){.at = extents->at, .count = i});
    return false;
}

/* In the order of the numbers. */
static void enlist(struct held_image *image)
{
    struct held_image **at = &image->rank->oldest;

    while (*at && (*at)->stored.number < image->stored.number)
        at = &(*at)->newer;
    image->newer = *at;
    *at = image;
}

int registry_found(struct registry *registry, const uint8_t job[CW_ID_SIZE],
                   const struct cw_stored *stored, struct extents *extents, struct cw_err *err)
{
    struct held_rank *rank = registry_enter(registry, job, stored->rank);
    struct held_image *image = calloc(1, sizeof(*image));
    bool done;

    lock(registry);
    done = rank && image && refer(rank, extents);
    if (done) {
        *image = (struct held_image){
            .rank = rank, .stored = *stored, .extents = *extents, .pins = 1, .told = true};
        *extents = (struct extents){0};
        enlist(image);
    }
    if (rank)
        rank->users--;
    unlock(registry);
    if (done)
        return CW_OK;
    free(image);
    return cw_err_set(err, CW_ENOMEM, "no memory for what is known of images");
}

int registry_found_unknown(struct registry *registry, const uint8_t job[CW_ID_SIZE],
                           uint32_t number_of_rank, uint32_t number, uint64_t units,
                           struct cw_err *err)
{
    struct held_rank *rank = registry_enter(registry, job, number_of_rank);
    struct extent all = {0, units};
    bool done = rank != NULL;

    lock(registry);
    if (rank && !rank->unknown)
        done = refer(rank, &(struct extents){.at = &all, .count = 1});
    if (done && number > rank->unknown)
        rank->unknown = number;
    if (rank)
        rank->users--;
    unlock(registry);
    return done ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory for what is known of images");
}

struct held_image *registry_prepare(struct held_rank *rank, const struct cw_stored *stored,
                                    struct extents *own, const struct extents *shared)
{
    struct registry *registry = registry_of(rank);
    struct held_image *image = calloc(1, sizeof(*image));
    bool done = image != NULL;

    for (size_t i = 0; done && i < shared->count; i++)
        done = extents_add(&image->extents, shared->at[i]);
    for (size_t i = 0; done && i < own->count; i++)
        done = extents_add(&image->extents, own->at[i]);
    lock(registry);
    done = done && refer(rank, shared);
    if (done)
        rank->users++;
    unlock(registry);
    if (!done) {
        if (image)
            free_image(image);
        return NULL;
    }
    image->rank = rank;
    image->stored = *stored;
    image->pins = 1;
    extents_clear(own);
    return image;
}

/* The pin of one that is in no list becomes the list's. */
static void put_into_list(struct held_image *image)
{
    struct registry *registry = registry_of(image->rank);

    lock(registry);
    image->rank->users--;
    enlist(image);
    unlock(registry);
}

void registry_commit(struct held_image *image)
{
    put_into_list(image);
}

static struct held_image *find_image(const struct held_rank *rank, uint32_t number)
{
    struct held_image *image = rank->oldest;

    while (image && image->stored.number != number)
        image = image->newer;
    return image;
}

bool registry_tell(struct held_rank *rank, uint32_t number)
{
    struct registry *registry = registry_of(rank);
    struct held_image *image;
    bool first;

    lock(registry);
    image = find_image(rank, number);
    first = image && !image->told;
    if (image)
        image->told = true;
    unlock(registry);
    return first;
}

struct held_image *registry_pin(struct held_rank *rank, uint32_t number)
{
    struct registry *registry = registry_of(rank);
    struct held_image *image;

    lock(registry);
    image = find_image(rank, number);
    if (image) {
        image->pins++;
        rank->users++;
    }
    unlock(registry);
    return image;
}

void registry_unpin(struct held_image *image)
{
    struct held_rank *rank = image->rank;
    struct registry *registry = registry_of(rank);

    lock(registry);
    assert(image->pins > 0 && rank->users > 0);
    rank->users--;
    if (--image->pins == 0) {
        release(rank, &image->extents);
        free_image(image);
    }
    forget_unused(rank);
    unlock(registry);
}

/* Takes what is at `*at` out of its list. [lock] */
static struct held_image *take_out(struct held_image **at, uint32_t *number)
{
    struct held_image *image = *at;

    *at = image->newer;
    image->rank->users++; /* the pin of the list is the caller's now */
    *number = image->stored.number;
    return image;
}

struct held_image *registry_take_out(struct held_rank *rank, uint32_t number, uint32_t *its_number)
{
    struct registry *registry = registry_of(rank);
    struct held_image *image = NULL;

    lock(registry);
    if (rank->oldest && rank->oldest->stored.number <= number)
        image = take_out(&rank->oldest, its_number);
    unlock(registry);
    return image;
}

struct held_image *registry_take_surplus(struct held_rank *rank, uint32_t *its_number)
{
    struct registry *registry = registry_of(rank);
    struct held_image *image = NULL;
    uint32_t count = 0;

    lock(registry);
    for (const struct held_image *i = rank->oldest; i; i = i->newer)
        count++;
    if (count > REGISTRY_IMAGES_MAX)
        image = take_out(&rank->oldest->newer, its_number);
    unlock(registry);
    return image;
}

void registry_put_back(struct held_image *image)
{
    put_into_list(image);
}

uint32_t registry_newest(struct held_rank *rank)
{
    struct registry *registry = registry_of(rank);
    uint32_t number;

    lock(registry);
    number = rank->unknown;
    for (const struct held_image *i = rank->oldest; i; i = i->newer)
        if (i->stored.number > number)
            number = i->stored.number;
    unlock(registry);
    return number;
}

/* --- lists ---------------------------------------------------------------------------------------
 */

void registry_each(struct registry *registry, const uint8_t id[CW_ID_SIZE], registry_visit *visit,
                   void *ctx)
{
    const struct held_job *job;

    lock(registry);
    job = find_job(registry, id);
    for (uint32_t r = 0; job && r < job->ranks_size; r++)
        for (const struct held_image *i = job->ranks[r] ? job->ranks[r]->oldest : NULL; i;
             i = i->newer)
            if (i->told)
                visit(ctx, &i->stored);
    unlock(registry);
}

bool registry_has_job(struct registry *registry, const uint8_t id[CW_ID_SIZE])
{
    bool has;

    lock(registry);
    has = find_job(registry, id) != NULL;
    unlock(registry);
    return has;
}

bool registry_next_rank(struct registry *registry, const uint8_t id[CW_ID_SIZE], uint32_t from,
                        uint32_t *rank)
{
    const struct held_job *job;
    bool found = false;

    lock(registry);
    job = find_job(registry, id);
    for (uint32_t r = from; job && !found && r < job->ranks_size; r++)
        if (job->ranks[r]) {
            *rank = r;
            found = true;
        }
    unlock(registry);
    return found;
}
