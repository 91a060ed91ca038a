#include "dispatcher/run/image_failures.h"

#include <stdio.h>
#include <stdlib.h>

struct image_failures {
    struct telling *telling;
    char (*why)[CW_ERR_TEXT_MAX];               /* of each rank; owned */
    uint32_t causes[IMAGE_FAILURES_CAUSES_MAX]; /* hashes of those that were told */
    uint32_t cause_count;
    bool ending;
};

struct image_failures *image_failures_new(struct telling *telling, uint32_t ranks)
{
    struct image_failures *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->telling = telling;
    f->why = calloc(ranks, sizeof(*f->why));
    if (f->why)
        return f;
    free(f);
    return NULL;
}

void image_failures_free(struct image_failures *f)
{
    if (!f)
        return;
    free(f->why);
    free(f);
}

/* Of a cause, without its figures: numbers of bytes are others each time. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        if (*text < '0' || *text > '9')
            hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* Whether this cause was not told yet: each is told once. */
static bool is_news(struct image_failures *f, const char *why)
{
    uint32_t hash = hash_of(why);

    for (uint32_t i = 0; i < f->cause_count; i++)
        if (f->causes[i] == hash)
            return false;
    if (f->cause_count == IMAGE_FAILURES_CAUSES_MAX)
        return false;
    f->causes[f->cause_count++] = hash;
    return true;
}

void image_failures_tell(struct image_failures *f, uint64_t now_ns, uint32_t rank, uint32_t number,
                         const char *why)
{
    image_failures_note(f, rank, why);
    telling_image_failed(f->telling, now_ns, rank, number, why);
    if (!f->ending && is_news(f, why))
        telling_tell(f->telling, "rank %u: no image of it: %s; the job goes on, and keeps its log",
                     rank, why);
}

void image_failures_note(struct image_failures *f, uint32_t rank, const char *why)
{
    snprintf(f->why[rank], sizeof(f->why[rank]), "%s", why);
}

const char *image_failures_why(const struct image_failures *f, uint32_t rank)
{
    return f->why[rank];
}

void image_failures_end(struct image_failures *f)
{
    f->ending = true;
}
