#include "dispatcher/ranks/places.h"

#include <stddef.h>
#include <string.h>

/* The lowest number is the oldest image: a rank's numbers grow over all incarnations. NULL: there
 * is none of this number, and all others are newer. */
static struct place *place_for(struct places *places, uint32_t number)
{
    struct place *oldest = NULL;

    for (struct place *place = places->of; place < places->of + places->count; place++) {
        if (place->number == number)
            return place;
        if (place->number != places->base && (!oldest || place->number < oldest->number))
            oldest = place;
    }
    if (places->count < PLACES_MAX)
        oldest = &places->of[places->count++];
    else if (oldest->number > number)
        return NULL;
    *oldest = (struct place){.number = number};
    return oldest;
}

void places_set(struct places *places, uint32_t number, enum place_in in,
                const uint64_t at[PLACE_VALUES])
{
    struct place *place = place_for(places, number);

    if (!place)
        return;
    place->known |= 1u << in;
    memcpy(place->at[in], at, sizeof(place->at[in]));
}

const uint64_t *places_at(const struct places *places, uint32_t number, enum place_in in)
{
    static const uint64_t beginning[PLACE_VALUES];

    if (number == 0)
        return beginning;
    for (uint32_t i = 0; i < places->count; i++)
        if (places->of[i].number == number && places->of[i].known >> in & 1)
            return places->of[i].at[in];
    return NULL;
}

void places_forget_before(struct places *places, uint32_t number)
{
    for (uint32_t i = places->count; i-- > 0;)
        if (places->of[i].number < number)
            places->of[i] = places->of[--places->count];
    places->base = number;
}
