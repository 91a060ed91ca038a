#include "rdevice/collectives/plan.h"

#include <stdlib.h>
#include <string.h>

int plan_home(const char *text, uint32_t rank)
{
    char digit;

    if (strnlen(text, (size_t)rank + 1) <= rank)
        return -1;
    digit = text[rank];
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static void add_rank(struct plan *plan, int rank, int site)
{
    if (plan->size[site] == 0)
        plan->first[site] = rank;
    else if (plan->site[rank - 1] != site)
        plan->blocks = false;
    plan->site[rank] = (uint8_t)site;
    plan->place[rank] = plan->size[site]++;
}

bool plan_make(struct plan *plan, const uint8_t *home, int ranks, int rank)
{
    int site_of[CW_RELAYS_MAX];

    *plan = (struct plan){.ranks = ranks, .rank = rank, .blocks = true};
    plan->site = calloc((size_t)ranks, sizeof(*plan->site));
    plan->place = calloc((size_t)ranks, sizeof(*plan->place));
    if (!plan->site || !plan->place)
        return false;
    memset(site_of, -1, sizeof(site_of));
    for (int i = 0; i < ranks; i++) {
        if (site_of[home[i]] < 0)
            site_of[home[i]] = plan->sites++;
        add_rank(plan, i, site_of[home[i]]);
    }
    for (int s = 1; s < plan->sites; s++)
        plan->start[s] = plan->start[s - 1] + plan->size[s - 1];
    plan->mine = plan->site[rank];
    return true;
}

void plan_clear(struct plan *plan)
{
    free(plan->site);
    free(plan->place);
    plan->site = NULL;
    plan->place = NULL;
}

bool plan_pays(const struct plan *plan)
{
    return plan->sites > 1 && plan->sites < plan->ranks;
}

int plan_slot(const struct plan *plan, int rank)
{
    return plan->start[plan->site[rank]] + plan->place[rank];
}

bool plan_speaks(const struct plan *plan)
{
    return plan->rank == plan->first[plan->mine];
}

int plan_speaker(const struct plan *plan, int site, int root)
{
    return plan->site[root] == site ? root : plan->first[site];
}
