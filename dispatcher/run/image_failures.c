#include "dispatcher/run/image_failures.h"

#include <stdio.h>
#include <stdlib.h>

#define NAMES_SIZE 256 /* of the numbers of ranks in one line */

enum rank_told {
    RANK_QUIET,    /* nothing has failed */
    RANK_UNTOLD,   /* there is no image of it, which was not told */
    RANK_TOLD,     /* likewise, and it was */
    RANK_HAS_IMAGE /* at any time */
};

struct image_failures {
    struct telling *telling;
    uint32_t ranks;
    enum rank_told *told;                       /* of each; owned */
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
    f->ranks = ranks;
    f->why = calloc(ranks, sizeof(*f->why));
    f->told = calloc(ranks, sizeof(*f->told));
    if (f->why && f->told)
        return f;
    image_failures_free(f);
    return NULL;
}

void image_failures_free(struct image_failures *f)
{
    if (!f)
        return;
    free(f->why);
    free(f->told);
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
    if (f->told[rank] == RANK_QUIET)
        f->told[rank] = RANK_UNTOLD;
    if (f->ending || !is_news(f, why))
        return;
    if (f->told[rank] == RANK_UNTOLD)
        f->told[rank] = RANK_TOLD;
    telling_tell(f->telling, "rank %u: no image of it: %s; the job goes on, and keeps its log",
                 rank, why);
}

void image_failures_stored(struct image_failures *f, uint32_t rank)
{
    f->told[rank] = RANK_HAS_IMAGE;
}

void image_failures_note(struct image_failures *f, uint32_t rank, const char *why)
{
    snprintf(f->why[rank], sizeof(f->why[rank]), "%s", why);
}

const char *image_failures_why(const struct image_failures *f, uint32_t rank)
{
    return f->why[rank];
}

/* Of this rank, and all behind it with the same cause. */
static void tell_untold(struct image_failures *f, uint32_t first)
{
    uint32_t hash = hash_of(f->why[first]);
    char names[NAMES_SIZE] = "";
    size_t used = 0;

    for (uint32_t rank = first; rank < f->ranks; rank++) {
        if (f->told[rank] != RANK_UNTOLD || hash_of(f->why[rank]) != hash)
            continue;
        f->told[rank] = RANK_TOLD;
        if (used < sizeof(names))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%u", used ? ", " : "",
                                     rank);
    }
    telling_tell(f->telling, "note: no image could be taken of rank %s%s either: %s", names,
                 used < sizeof(names) ? "" : " ...", f->why[first]);
}

void image_failures_end(struct image_failures *f)
{
    f->ending = true;
    for (uint32_t rank = 0; rank < f->ranks; rank++)
        if (f->told[rank] == RANK_UNTOLD)
            tell_untold(f, rank);
}
