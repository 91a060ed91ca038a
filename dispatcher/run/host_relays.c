#include "dispatcher/run/host_relays.h"
#include "common/machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether a process on that host is on this machine. */
static bool is_here(const struct parts *p, uint32_t host)
{
    return host == nodes_here(p->nodes) ||
           cw_machine_is_same(nodes_facts(p->nodes, host)->system,
                              nodes_facts(p->nodes, nodes_here(p->nodes))->system);
}

uint32_t host_relays_of(const struct parts *p, uint32_t unit)
{
    const struct host_options *hosts = &p->options->hosts;

    if (unit >= NODE_UNIT_SERVER)
        return hosts->ckptsrv_hosts ? hosts->ckptsrv_host[unit - NODE_UNIT_SERVER]
                                    : nodes_here(p->nodes);
    return p->layout.at_hosts ? p->layout.relay_host[unit] : nodes_here(p->nodes);
}

bool host_relays_is_near(const struct parts *p, uint32_t unit, uint32_t host)
{
    uint32_t of_unit = host_relays_of(p, unit);

    return of_unit == host || (of_unit == nodes_here(p->nodes) && is_here(p, host));
}

/* Launchers but ssh do not tell: then it is our name. What is told by a host that is on this
 * machine, in other namespaces, may be a loopback address, of use to nobody else. */
void host_relays_own_address(const struct parts *p, char text[CW_ADDRESS_MAX])
{
    const char *own = nodes_facts(p->nodes, nodes_here(p->nodes))->system;

    text[0] = '\0';
    for (uint32_t host = 0; host < nodes_here(p->nodes); host++) {
        const struct greeting_hello *facts = nodes_facts(p->nodes, host);
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
                 relays_address_for(p->relays, relay, host_relays_is_near(p, relay, host)));
}

/* By the name that the user gave it, unless ssh knows its address. */
void host_relays_listen_address(const struct parts *p, uint32_t host, char text[CW_ADDRESS_MAX])
{
    const struct greeting_hello *facts = nodes_facts(p->nodes, host);
    const char *name = strchr(nodes_name(p->nodes, host), '@');

    name = name ? name + 1 : nodes_name(p->nodes, host);
    if (is_here(p, host))
        name = p->host;
    else if (facts->own[0])
        name = facts->own;
    text[0] = '\0';
    if (name[0])
        snprintf(text, CW_ADDRESS_MAX, "tcp:%.255s:0", name);
}
