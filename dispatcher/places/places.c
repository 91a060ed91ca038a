#include "dispatcher/places/places.h"

#include <stddef.h>

static void remove_at(struct places *places, uint32_t index)
{
    places->of[index] = places->of[--places->count];
}

/* The lowest number is the oldest image: a rank's numbers grow over all incarnations. */
static void forget_oldest(struct places *places)
{
    uint32_t oldest = places->of[0].number == places->base;

    for (uint32_t i = 0; i < places->count; i++)
        if (places->of[i].number != places->base &&
            places->of[i].number < places->of[oldest].number)
            oldest = i;
    remove_at(places, oldest);
}

void places_add(struct places *places, const struct place *place)
{
    for (uint32_t i = 0; i < places->count; i++)
        if (places->of[i].number == place->number) {
            places->of[i] = *place;
            return;
        }
    if (places->count == PLACES_MAX)
        forget_oldest(places);
    places->of[places->count++] = *place;
}

const struct place *places_find(const struct places *places, uint32_t number)
{
    static const struct place beginning;

    if (number == 0)
        return &beginning;
    for (uint32_t i = 0; i < places->count; i++)
        if (places->of[i].number == number)
            return &places->of[i];
    return NULL;
}

void places_forget_before(struct places *places, uint32_t number)
{
    for (uint32_t i = places->count; i-- > 0;)
        if (places->of[i].number < number)
            remove_at(places, i);
    places->base = number;
}
