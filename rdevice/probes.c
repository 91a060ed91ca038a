#include "rdevice/probes.h"

bool probes_known_none(const struct probes *p, uint64_t tag, uint64_t mask)
{
    if (p->mailbox_empty)
        return true;
    for (uint32_t i = 0; i < p->none_count; i++)
        if (p->none[i].tag == tag && p->none[i].mask == mask)
            return true;
    return false;
}

void probes_ask(struct probes *p, const struct cw_probe *probe, uint64_t until)
{
    p->asked = *probe;
    p->asked_until = until;
    p->lost = false; /* this one was not */
    p->answered = false;
}

/* At once: a HINT that follows in the same read must find it. */
static void remember_none(struct probes *p, const struct cw_probe *probe)
{
    uint32_t at = p->none_count < PROBES_NONE_KNOWN ? p->none_count++ : 0;

    p->none[at] = *probe;
}

/* Returns whether it is the answer that we wait for. */
static bool on_last_answer(struct probes *p, struct cw_probed *answer)
{
    p->returned = false;
    if (!p->lost)
        return false;
    if (answer->found && answer->clock == p->asked.clock)
        return true;
    *answer = (struct cw_probed){.clock = p->asked.clock};
    return true;
}

void probes_on_return(struct probes *p, uint64_t received)
{
    probes_on_hint(p); /* one may have been lost */
    p->returned = true;
    p->lost = !p->answered && received >= p->asked_until;
}

void probes_on_answer(struct probes *p, const struct cw_probed *answer)
{
    struct cw_probed last = *answer;

    if (p->returned) {
        if (on_last_answer(p, &last)) {
            p->answer = last;
            p->answered = true;
        }
        return;
    }
    p->answer = *answer;
    p->answered = true;
    p->mailbox_empty = answer->unexpected == 0;
    if (!answer->found)
        remember_none(p, &p->asked);
}

void probes_on_hint(struct probes *p)
{
    p->mailbox_empty = false;
    p->none_count = 0;
}
