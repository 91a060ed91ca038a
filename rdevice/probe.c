/* Probes ask the mailbox; "none" is remembered until the relay hints that a message has come. */
#include "common/clock.h"
#include "rdevice/device.h"

static bool known_none(uint64_t tag, uint64_t mask)
{
    if (device.mailbox_empty)
        return true;
    for (uint32_t i = 0; i < device.none_count; i++)
        if (device.none[i].tag == tag && device.none[i].mask == mask)
            return true;
    return false;
}

static struct device_probe repeat(void)
{
    struct cw_probed answer;

    if (!replay_probe(&answer))
        return (struct device_probe){.found = false};
    return (struct device_probe){
        .found = true, .msg = answer.msg, .tag = answer.tag, .total = answer.total};
}

struct device_probe device_probe(uint64_t tag, uint64_t mask, bool remove)
{
    struct cw_probe probe = {.tag = tag, .mask = mask, .remove = remove};
    uint64_t since;

    device_enter();
    device.stats.polls++;
    if (device.replay.active)
        return repeat();
    /* a hint may be waiting in the socket */
    if (known_none(tag, mask) && !(input_read() && !known_none(tag, mask)))
        return (struct device_probe){.found = false};
    probe.clock = device.stats.polls;
    cw_probe_put(output_probe(), &probe);
    device.asked = probe;
    device.probe_answered = false;
    output_flush();
    since = cw_clock_ns();
    while (!device.probe_answered)
        if (!input_read())
            wait_socket(false, since);
    device.acts += device.probe.found;
    return device.probe;
}
