#include "ckptsrv/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 256u

bool extents_add(struct extents *extents, struct extent extent)
{
    struct extent *last = extents->count ? &extents->at[extents->count - 1] : NULL;

    if (last && last->first + last->count == extent.first) {
        last->count += extent.count;
        return true;
    }
    if (extents->count == extents->size) {
        size_t size = extents->size ? 2 * extents->size : 64;
        struct extent *at = realloc(extents->at, size * sizeof(*at));

        if (!at)
            return false;
        extents->at = at;
        extents->size = size;
    }
    extents->at[extents->count++] = extent;
    return true;
}

void extents_clear(struct extents *extents)
{
    free(extents->at);
    *extents = (struct extents){0};
}

uint64_t extents_units(const struct extents *extents)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < extents->count; i++)
        sum += extents->at[i].count;
    return sum;
}

void units_clear(struct units *units)
{
    free(units->refs);
    *units = (struct units){0};
}

/* Makes the table long enough; what is new is free. */
static bool reserve(struct units *units, uint64_t count)
{
    uint64_t size = units->size ? units->size : FIRST_SIZE;
    uint8_t *refs;

    if (count <= units->size)
        return true;
    while (size < count)
        size *= 2;
    refs = realloc(units->refs, size);
    if (!refs)
        return false;
    memset(refs + units->size, 0, size - units->size);
    units->refs = refs;
    units->size = size;
    return true;
}

bool units_refer(struct units *units, struct extent extent)
{
    uint64_t end = extent.first + extent.count;

    if (!reserve(units, end))
        return false;
    for (uint64_t i = extent.first; i < end; i++)
        if (units->refs[i] == UNITS_REFS_MAX)
            return false;
    for (uint64_t i = extent.first; i < end; i++)
        units->used += units->refs[i]++ == 0;
    if (end > units->count)
        units->count = end;
    return true;
}

void units_release(struct units *units, struct extent extent)
{
    for (uint64_t i = extent.first; i < extent.first + extent.count; i++) {
        assert(i < units->count && units->refs[i] > 0);
        units->used -= --units->refs[i] == 0;
    }
    units->failed = 0;
    while (units->count > 0 && units->refs[units->count - 1] == 0)
        units->count--;
    if (units->cursor > units->count)
        units->cursor = 0;
}

/* A run of `least` to `most` that begins in [from, until) and ends before the end of the file. */
static bool find(const struct units *units, uint64_t from, uint64_t until, uint64_t least,
                 uint64_t most, struct extent *found)
{
    uint64_t at = from;

    while (at < until) {
        uint64_t end = at;

        while (end < units->count && end - at < most && units->refs[end] == 0)
            end++;
        if (end - at >= least) {
            *found = (struct extent){at, end - at};
            return true;
        }
        at = end + 1;
    }
    return false;
}

static bool find_inside(struct units *units, uint64_t least, uint64_t most, struct extent *found)
{
    if (units->count - units->used < least || (units->failed && units->failed <= least))
        return false;
    if (find(units, units->cursor, units->count, least, most, found) ||
        find(units, 0, units->cursor, least, most, found))
        return true;
    units->failed = least;
    return false;
}

static bool find_behind(const struct units *units, uint64_t least, uint64_t most, uint64_t growth,
                        struct extent *found)
{
    if (growth < least)
        return false;
    *found = (struct extent){units->count, growth < most ? growth : most};
    return true;
}

/* Small holes are left for the time when there is nothing else, or when they are a quarter of the
 * file: an image in many small pieces is slow to write and to read. */
bool units_take(struct units *units, uint64_t least, uint64_t most, uint64_t growth,
                struct extent *taken)
{
    uint64_t large = least < UNITS_BLOCK ? UNITS_BLOCK : least;
    bool sparse = units->count - units->used > units->count / 4;

    assert(least > 0 && least <= most);
    if (!find_inside(units, large < most ? large : most, most, taken) &&
        !(sparse && find_inside(units, least, most, taken)) &&
        !find_behind(units, least, most, growth, taken) && !find_inside(units, least, most, taken))
        return false;
    if (!units_refer(units, *taken))
        return false;
    units->cursor = taken->first + taken->count;
    return true;
}
