#include "dispatcher/job/image_policy.h"

#define NS_IN_MS 1000000ull

uint64_t image_policy_mtbf_ns(const struct image_policy *policy, uint64_t ranks_ns,
                              uint32_t crashes)
{
    uint64_t observed = crashes ? ranks_ns / crashes : IMAGE_MTBF_NS;

    if (policy->mtbf_ns)
        return policy->mtbf_ns;
    return observed < IMAGE_MTBF_NS ? observed : IMAGE_MTBF_NS;
}

static uint64_t square_root(uint64_t square)
{
    uint64_t root = 0;

    for (uint64_t bit = 1ull << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= square)
            root |= bit;
    return root;
}

/* Young's. In milliseconds, so that the product fits; a century is as good as never. */
static uint64_t interval_ns(uint64_t cost_ns, uint64_t mtbf_ns)
{
    uint64_t cost_ms = cost_ns / NS_IN_MS + 1;
    uint64_t mtbf_ms = mtbf_ns / NS_IN_MS + 1;

    if (mtbf_ms > UINT64_MAX / 2 / cost_ms)
        mtbf_ms = UINT64_MAX / 2 / cost_ms;
    return square_root(2 * cost_ms * mtbf_ms) * NS_IN_MS;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void image_policy_set_room(struct image_policy *policy, uint64_t memory, uint64_t disk,
                           uint32_t ranks)
{
    uint64_t much = memory / 2 / ranks;
    uint64_t room = disk < UINT64_MAX - memory ? memory + disk : UINT64_MAX;

    policy->log_much = much < IMAGE_LOG_MUCH ? much : IMAGE_LOG_MUCH;
    policy->log_urgent = room / ranks / IMAGE_LOG_URGENT_SHARE;
}

uint64_t image_policy_every_ns(const struct image_policy *policy, const struct image_history *h)
{
    return later_of(policy->every_ns,
                    h->first ? 0 : h->cost_ns * policy->turns * IMAGE_EVERY_SHARE);
}

bool image_policy_is_grown(const struct image_policy *policy, uint64_t log_grown)
{
    return log_grown >= IMAGE_LOG_MIN || log_grown >= policy->log_much ||
           log_grown >= policy->log_urgent;
}

uint64_t image_policy_due_ns(const struct image_policy *policy, const struct image_history *h,
                             uint64_t mtbf_ns)
{
    uint64_t cost_ns = h->first ? IMAGE_COST_NS : h->cost_ns;
    uint64_t pause_ns = h->first ? IMAGE_FIRST_NS : h->cost_ns * IMAGE_SHARE;
    uint64_t sent = h->first ? 0 : h->sent;

    if (h->log_grown >= policy->log_urgent)
        return 0;
    if (policy->every_ns)
        return h->since_ns + image_policy_every_ns(policy, h);
    if (h->log_grown >= later_of(policy->log_much, sent))
        return h->since_ns + (h->first ? 0 : h->cost_ns * IMAGE_SHARE_MUCH);
    if (h->log_grown >= later_of(IMAGE_LOG_MIN, sent))
        return h->since_ns + pause_ns;
    return h->since_ns + later_of(pause_ns, interval_ns(cost_ns, mtbf_ns));
}
