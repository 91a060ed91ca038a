#include "dispatcher/job/image_sets.h"
#include "dispatcher/job/image_entries.h"

static bool is_of(const struct images *im, uint32_t rank, uint32_t group)
{
    return im->config.of_group[rank] == group;
}

static struct images_group *group_of(const struct images *im, uint32_t rank)
{
    return (struct images_group *)&im->group[im->config.of_group[rank]];
}

/* Its image in this set, if its process can go on from that. */
static struct images_image *part_of(struct images_rank *r, uint32_t set)
{
    for (struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++)
        if (image->set == set && image_can_go_on(r, image))
            return image;
    return NULL;
}

static bool is_whole(const struct images *im, uint32_t group, uint32_t set)
{
    for (uint32_t rank = 0; rank < im->config.ranks; rank++)
        if (is_of(im, rank, group) && !part_of(&im->rank[rank], set))
            return false;
    return true;
}

/* Of those that one of its ranks has a part of; 0: none. */
static uint32_t newest_whole(const struct images *im, uint32_t group)
{
    uint32_t newest = 0, rank = 0;

    while (rank < im->config.ranks && !is_of(im, rank, group))
        rank++;
    for (uint32_t i = 0; rank < im->config.ranks && i < IMAGES_KNOWN_MAX; i++) {
        uint32_t set = im->rank[rank].image[i].set;

        if (set > newest && is_whole(im, group, set))
            newest = set;
    }
    return newest;
}

void image_sets_look(struct images *im)
{
    for (uint32_t group = 0; im->config.of_group && group < IMAGES_GROUPS_MAX; group++)
        im->group[group].whole = newest_whole(im, group);
}

bool image_sets_begin(struct images *im, uint32_t rank)
{
    uint32_t group = im->config.of_group ? im->config.of_group[rank] : 0;
    bool busy = false;

    if (!im->config.of_group)
        return true;
    for (uint32_t other = 0; other < im->config.ranks; other++) {
        const struct images_rank *r = &im->rank[other];

        if (!is_of(im, other, group))
            continue;
        if (!r->live)
            return true;
        busy |= r->request != IMAGES_IDLE;
    }
    im->group[group].begun += !busy;
    return !busy;
}

bool image_sets_waits_for(const struct images *im, uint32_t rank)
{
    const struct images_rank *r = &im->rank[rank];

    return im->config.of_group && r->live && r->request == IMAGES_IDLE &&
           r->joined < group_of(im, rank)->begun;
}

uint32_t image_sets_join(struct images *im, uint32_t rank)
{
    struct images_rank *r = &im->rank[rank];
    uint32_t before = r->joined;

    if (!im->config.of_group)
        return 0;
    r->joined = group_of(im, rank)->begun;
    return r->joined > before ? r->joined : 0;
}

struct images_image *image_sets_to_trim(const struct images *im, uint32_t rank)
{
    struct images_rank *r = &im->rank[rank];
    uint32_t whole = im->config.of_group ? group_of(im, rank)->whole : 0;
    struct images_image *image = NULL;

    if (!im->config.of_group)
        image = image_newest(r, image_can_go_on);
    else if (whole)
        image = part_of(r, whole);
    return r->live && image && image->number > r->begin ? image : NULL;
}

/* Nothing but this image, or its beginning (NULL), is of use. */
static void leave_only(struct images_rank *r, const struct images_image *only)
{
    for (struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++)
        image->unusable |= image != only;
    r->voided = r->last;
    if (only && only->number > r->begin)
        r->begin = only->number;
}

bool images_group_lost(struct images *im, uint32_t group)
{
    uint32_t set = newest_whole(im, group);
    bool left = true;

    for (uint32_t rank = 0; rank < im->config.ranks; rank++) {
        struct images_rank *r = &im->rank[rank];

        if (!is_of(im, rank, group))
            continue;
        leave_only(r, set ? part_of(r, set) : NULL);
        left &= set > 0 || r->begin == 0;
    }
    im->changed = true;
    return left;
}
