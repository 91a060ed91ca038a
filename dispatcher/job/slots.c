#include "dispatcher/job/slots.h"

#include <assert.h>
#include <stdio.h>

enum { OF_HOST, OF_SITE, OF_OTHERS, ROUNDS, NEVER = 2 * ROUNDS };

/* How far from where it was: which round of tries it is for. A site from where it lost its relay,
 * which may be out of reach from there, comes after all others. */
static uint32_t distance(const struct slot_search *search, const struct job_slot *slot)
{
    uint32_t last = slot->site == search->cut_site ? ROUNDS : 0;

    if (search->bound != JOB_ANY_HOST)
        return slot->host == search->bound ? OF_HOST : NEVER;
    if (slot->host == search->host)
        return last + OF_HOST;
    return last + (slot->site == search->site ? OF_SITE : OF_OTHERS);
}

static uint32_t rounds_of(const struct job_slots *slots, const struct slot_search *search)
{
    if (!slots->any_site)
        return OF_SITE + 1;
    return search->cut_site == JOB_NO_SITE ? ROUNDS : 2 * ROUNDS;
}

static struct job_slot *slot_at(const struct job_slots *slots, const struct slot_search *search,
                                uint64_t at)
{
    return &slots->slot[(search->first + at) % slots->count];
}

/* The one with the fewest ranks, of those that ranks may share. NULL: there is none. */
static struct job_slot *find_shared(const struct job_slots *slots, const struct slot_search *search)
{
    struct job_slot *best = NULL;

    for (uint32_t i = 0; i < slots->count; i++) {
        struct job_slot *s = slot_at(slots, search, i);

        if (!s->away && s->ranks > 0 && s->ranks < s->ranks_max &&
            distance(search, s) < rounds_of(slots, search) && (!best || s->ranks < best->ranks))
            best = s;
    }
    return best;
}

/* The next free one from search->first on, first of the host where it was, then of its site, then
 * of the others; each is tried once. After them one that is shared. NULL: there is none. */
static struct job_slot *find(const struct job_slots *slots, struct slot_search *search)
{
    uint64_t count = slots->count;
    uint64_t tries = rounds_of(slots, search) * count;

    while (search->tried < tries) {
        uint64_t round = search->tried / count;
        struct job_slot *s = slot_at(slots, search, search->tried++);

        if (!s->away && s->ranks == 0 && distance(search, s) == round)
            return s;
    }
    return search->tried++ == tries ? find_shared(slots, search) : NULL;
}

void job_slots_leave(struct job_slots *slots, uint32_t slot)
{
    assert(slots->slot[slot].ranks > 0);
    slots->slot[slot].ranks--;
}

bool job_slots_next(struct job_slots *slots, struct slot_search *search, uint32_t *slot)
{
    struct job_slot *found;

    job_slots_leave(slots, *slot);
    found = find(slots, search);
    if (!found)
        return false;
    found->ranks++;
    *slot = (uint32_t)(found - slots->slot);
    return true;
}

bool job_slots_move(struct job_slots *slots, struct slot_search *search, uint32_t *slot,
                    bool behind)
{
    search->host = slots->slot[*slot].host;
    search->first = *slot + behind;
    search->tried = 0;
    return job_slots_next(slots, search, slot);
}

void job_slots_why_none(const struct job_slots *slots, const struct slot_search *search,
                        char text[CW_ERR_TEXT_MAX])
{
    uint32_t away = 0;
    bool elsewhere = false;

    for (uint32_t i = 0; i < slots->count; i++) {
        away += slots->slot[i].away;
        elsewhere |= slots->slot[i].site != search->site;
    }
    snprintf(text, CW_ERR_TEXT_MAX,
             "there is no free slot for it: %u of %u slots are on lost hosts; give more hosts, as "
             "--spares, or let ranks share slots with --oversubscribe%s",
             away, slots->count,
             elsewhere && !slots->any_site ? ", or restart at other sites with --restart-at grid"
                                           : "");
}

void job_slots_hear(struct job_slots *slots, const struct life_event *event)
{
    for (struct job_slot *slot = slots->slot; slot < slots->slot + slots->count; slot++) {
        if (slot->host != event->host)
            continue;
        if (event->what == LIFE_DEAD || (event->what == LIFE_BACK && !slot->suspect))
            slot->away = event->what == LIFE_DEAD;
        slot->suspect = event->what == LIFE_SUSPECT;
    }
}
