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

void probes_ask(struct probes *p, const struct cw_probe *probe)
{
    p->asked = *probe;
    p->answered = false;
}

/* At once: a HINT that follows in the same read must find it. */
static void remember_none(struct probes *p, const struct cw_probe *probe)
{
    uint32_t at = p->none_count < PROBES_NONE_KNOWN ? p->none_count++ : 0;

    p->none[at] = *probe;
}

void probes_on_answer(struct probes *p, const struct cw_probed *answer)
{
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
