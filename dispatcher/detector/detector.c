#include "dispatcher/detector/detector.h"
#include "dispatcher/detector/gossip.h"
#include "dispatcher/detector/routing.h"
#include "dispatcher/detector/swim.h"

#include <assert.h>
#include <stdlib.h>

/* One of both is there. */
struct detector {
    uint64_t gossip_ns;
    struct gossip *gossip;
    struct swim *swim;
};

struct detector *detector_new(const struct detector_config *config, const struct detector_out *out,
                              uint64_t now_ns)
{
    struct detector *d = calloc(1, sizeof(*d));

    assert(config->n >= 2 && config->n <= DETECTOR_PROCESSES_MAX && config->self < config->n);
    assert(config->gossip_ns > 0 && config->heartbeat > 0);
    if (!d)
        return NULL;
    d->gossip_ns = config->gossip_ns;
    if (config->kind == DETECTOR_SWIM)
        d->swim = swim_new(config, out, now_ns);
    else
        d->gossip = gossip_new(config, out, now_ns);
    if (d->swim || d->gossip)
        return d;
    free(d);
    return NULL;
}

void detector_free(struct detector *d)
{
    if (!d)
        return;
    gossip_free(d->gossip);
    swim_free(d->swim);
    free(d);
}

uint64_t detector_due_ns(const struct detector *d)
{
    return d->swim ? swim_due_ns(d->swim) : gossip_due_ns(d->gossip);
}

/* One that was stopped (SIGSTOP, a suspended laptop, a virtual machine that moved) finds that its
 * clock has jumped past what was due. What it did not hear says nothing of the others: it begins
 * to wait for them anew, which gives it T_cleanup, at least a whole cycle, to hear them. */
static void notice_absence(struct detector *d, uint64_t now_ns)
{
    if (now_ns <= detector_due_ns(d) + d->gossip_ns)
        return;
    if (d->swim)
        swim_was_away(d->swim, now_ns);
    else
        gossip_was_away(d->gossip, now_ns);
}

void detector_advance(struct detector *d, uint64_t now_ns)
{
    notice_absence(d, now_ns);
    if (d->swim)
        swim_advance(d->swim, now_ns);
    else
        gossip_advance(d->gossip, now_ns);
}

int detector_receive(struct detector *d, uint32_t from, const void *bytes, size_t size,
                     uint64_t now_ns, struct cw_err *err)
{
    notice_absence(d, now_ns);
    return d->swim ? swim_receive(d->swim, from, bytes, size, now_ns, err)
                   : gossip_receive(d->gossip, from, bytes, size, now_ns, err);
}

const char *detector_name(enum detector_kind kind)
{
    return kind == DETECTOR_SWIM ? "swim" : routings[(int)kind].name;
}

uint32_t detector_cleanup_rounds(enum detector_kind kind, uint32_t n)
{
    return kind == DETECTOR_SWIM ? 0 : routings[(int)kind].cleanup(n);
}

/* [FM] (4): h_i = ⌈(T_i - t_ri + Δt_i) / T_gossip⌉, 1 <= i < n; "the submitter adjusts its initial
 * heartbeat to h_0 = ⌈(T_0 - t_s1) / T_gossip⌉". Here at least 1: 0 is one that was never heard. */
uint32_t detector_initial_heartbeat(uint64_t registered_ns, uint64_t received_ns, uint64_t sent_ns,
                                    uint64_t gossip_ns)
{
    uint64_t missed = (registered_ns - received_ns + sent_ns + gossip_ns - 1) / gossip_ns;

    return missed == 0                       ? 1
           : missed < DETECTOR_HEARTBEAT_MAX ? (uint32_t)missed
                                             : DETECTOR_HEARTBEAT_MAX;
}
