#include "dispatcher/run/host_relays.h"
#include "common/machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether a process on that host is on this machine. */
static bool is_here(const struct parts *p, uint32_t host)
{
    return host == agents_here(p->agents) ||
           cw_machine_is_same(agents_facts(p->agents, host)->system,
                              agents_facts(p->agents, agents_here(p->agents))->system);
}

uint32_t host_relays_of(const struct parts *p, uint32_t unit)
{
    uint32_t of_server = p->options->hosts.ckptsrv_host;

    if (unit == AGENT_UNIT_SERVER)
        return of_server == HOSTS_NONE ? agents_here(p->agents) : of_server;
    return p->layout.at_hosts ? p->layout.relay_host[unit] : agents_here(p->agents);
}

static bool is_near(const struct parts *p, uint32_t unit, uint32_t host)
{
    uint32_t of_unit = host_relays_of(p, unit);

    return of_unit == host || (of_unit == agents_here(p->agents) && is_here(p, host));
}

/* Launchers but ssh do not tell: then it is our name. What is told by a host that is on this
 * machine, in other namespaces, may be a loopback address, of use to nobody else. */
void host_relays_own_address(const struct parts *p, char text[CW_ADDRESS_MAX])
{
    const char *own = agents_facts(p->agents, agents_here(p->agents))->system;

    text[0] = '\0';
    for (uint32_t host = 0; host < agents_here(p->agents); host++) {
        const struct greeting_hello *facts = agents_facts(p->agents, host);
        bool elsewhere = !cw_machine_is_one_kernel(facts->system, own);

        if (is_here(p, host) || (text[0] && !elsewhere))
            continue;
        snprintf(text, CW_ADDRESS_MAX, "%s", facts->peer);
        if (!facts->peer[0])
            gethostname(text, CW_ADDRESS_MAX - 1);
        if (elsewhere)
            return;
    }
}

void host_relays_address(const struct parts *p, uint32_t relay, uint32_t host,
                         char text[CW_ADDRESS_MAX])
{
    const struct run_options *o = p->options;

    if (o->grid)
        grid_job_relay_at(o->grid, relay, o->hosts.list.host[host].site, text);
    else
        snprintf(text, CW_ADDRESS_MAX, "%s",
                 relays_address_for(p->relays, relay, is_near(p, relay, host)));
}

/* By the name that the user gave it, unless ssh knows its address. */
void host_relays_listen_address(const struct parts *p, uint32_t host, char text[CW_ADDRESS_MAX])
{
    const struct greeting_hello *facts = agents_facts(p->agents, host);
    const char *name = strchr(agents_name(p->agents, host), '@');

    name = name ? name + 1 : agents_name(p->agents, host);
    if (is_here(p, host))
        name = p->host;
    else if (facts->own[0])
        name = facts->own;
    text[0] = '\0';
    if (name[0])
        snprintf(text, CW_ADDRESS_MAX, "tcp:%.255s:0", name);
}

bool host_relays_is_near_server(const struct parts *p, uint32_t host)
{
    return is_near(p, AGENT_UNIT_SERVER, host);
}
