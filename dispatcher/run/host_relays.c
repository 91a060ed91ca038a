#include "dispatcher/run/host_relays.h"
#include "common/machine.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_this_machine(const struct greeting_hello *facts)
{
    char own[CW_MACHINE_MAX];

    cw_machine_read(own);
    return cw_machine_is_same(facts->system, own);
}

/* Whether a process on that host is on this machine. Without hosts every one is. */
static bool is_here(const struct parts *p, uint32_t host)
{
    return agents_are_here(p->agents) || is_this_machine(agents_facts(p->agents, host));
}

/* Launchers but ssh do not tell: then it is our name. What is told by a host that is on this
 * machine, in other namespaces, may be a loopback address, of use to nobody else. */
void host_relays_own_address(const struct parts *p, char text[CW_ADDRESS_MAX])
{
    char own[CW_MACHINE_MAX];

    cw_machine_read(own);
    text[0] = '\0';
    for (uint32_t host = 0; host < agents_count(p->agents); host++) {
        const struct greeting_hello *facts = agents_facts(p->agents, host);
        bool elsewhere = !cw_machine_is_one_kernel(facts->system, own);

        if (cw_machine_is_same(facts->system, own) || (text[0] && !elsewhere))
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
    bool is_near = p->layout.at_hosts ? p->layout.relay_host[relay] == host : is_here(p, host);

    if (o->grid)
        grid_job_relay_at(o->grid, relay, o->hosts.list.host[host].site, text);
    else
        snprintf(text, CW_ADDRESS_MAX, "%s", relays_address_for(p->relays, relay, is_near));
}

/* By the name that the user gave it, unless ssh knows its address. Of this machine "". */
void host_relays_listen_address(const struct parts *p, uint32_t host, char text[CW_ADDRESS_MAX])
{
    const struct greeting_hello *facts = agents_facts(p->agents, host);
    const char *name = strchr(agents_name(p->agents, host), '@');

    name = name ? name + 1 : agents_name(p->agents, host);
    text[0] = '\0';
    if (!is_this_machine(facts))
        snprintf(text, CW_ADDRESS_MAX, "tcp:%.255s:0", facts->own[0] ? facts->own : name);
}

void host_relays_server_address(const struct parts *p, char text[CW_ADDRESS_MAX])
{
    host_relays_listen_address(p, p->options->hosts.ckptsrv_host, text);
    if (!text[0] && p->host[0])
        snprintf(text, CW_ADDRESS_MAX, "tcp:%.255s:0", p->host);
}

bool host_relays_is_near_server(const struct parts *p, uint32_t host)
{
    uint32_t of_server = p->options->hosts.ckptsrv_host;

    return of_server == HOSTS_NONE ? is_here(p, host) : host == of_server;
}
