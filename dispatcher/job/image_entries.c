#include "dispatcher/job/image_entries.h"

struct images_image *image_find(struct images_rank *r, uint32_t number)
{
    for (uint32_t i = 0; i < IMAGES_KNOWN_MAX; i++)
        if (r->image[i].number == number)
            return &r->image[i];
    return NULL;
}

bool image_is_held(const struct images_rank *r, const struct images_image *image)
{
    (void)r;
    return image->number && image->held;
}

bool image_is_usable(const struct images_rank *r, const struct images_image *image)
{
    return image_is_held(r, image) && image->whole && !image->unusable;
}

bool image_is_covered(const struct images_rank *r, const struct images_image *image)
{
    return image_is_usable(r, image) && image->number >= r->begin;
}

bool image_can_go_on(const struct images_rank *r, const struct images_image *image)
{
    return image_is_covered(r, image) && image->placed;
}

bool image_is_base(const struct images_rank *r, const struct images_image *image)
{
    return image_is_held(r, image) && (image->held & r->servers) == r->servers;
}

struct images_image *image_newest(struct images_rank *r, image_test *test)
{
    struct images_image *newest = NULL;

    for (struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++)
        if (test(r, image) && (!newest || image->number > newest->number))
            newest = image;
    return newest;
}

uint32_t image_newest_number(struct images_rank *r, image_test *test)
{
    const struct images_image *newest = image_newest(r, test);

    return newest ? newest->number : 0;
}

struct images_image *image_place_for(struct images_rank *r)
{
    struct images_image *worst = r->image;

    for (struct images_image *image = r->image + 1; image < r->image + IMAGES_KNOWN_MAX; image++) {
        bool kept = image_is_covered(r, image), worst_kept = image_is_covered(r, worst);

        if (kept != worst_kept ? worst_kept : image->number < worst->number)
            worst = image;
    }
    return worst;
}

void image_look_at_surplus(struct images_rank *r, uint32_t server)
{
    struct images_image *oldest = NULL, *second = NULL;
    uint32_t count = 0;

    for (struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++) {
        if (!image->number || !(image->held & 1u << server))
            continue;
        count++;
        if (!oldest || image->number < oldest->number) {
            second = oldest;
            oldest = image;
        } else if (!second || image->number < second->number) {
            second = image;
        }
    }
    if (count > IMAGES_HELD_MAX)
        second->held &= ~(1u << server);
}

void image_forget_servers(struct images_rank *r, uint32_t servers)
{
    for (struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++) {
        image->held &= ~servers;
        image->wanted &= ~servers;
        image->whole |= image->number && image->held && image->held == image->wanted;
    }
}

uint32_t image_all_servers(const struct images_rank *r)
{
    uint32_t all = 0;

    for (const struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++)
        all |= image->number ? image->held : 0;
    return all;
}

bool image_is_missing(struct images_rank *r)
{
    return r->begin > 0 && !image_newest(r, image_is_covered);
}

bool image_is_displaced(struct images_rank *r)
{
    const struct images_image *newest = image_newest(r, image_is_held);

    return newest && !image_is_base(r, newest);
}

uint32_t image_to_drop(struct images_rank *r)
{
    uint32_t newest = image_newest_number(r, image_is_held);
    uint32_t oldest = newest + 1;

    for (const struct images_image *image = r->image; image < r->image + IMAGES_KNOWN_MAX; image++)
        if (image_is_covered(r, image) && image->number < oldest)
            oldest = image->number;
    if (r->request != IMAGES_IDLE && r->base && r->base < oldest)
        oldest = r->base;
    /* the newest is the base of the next, even if nothing can go on from it */
    if (oldest > newest)
        oldest = newest;
    return oldest > 0 ? oldest - 1 : 0;
}
