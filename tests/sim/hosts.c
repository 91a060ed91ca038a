#include "tests/sim/hosts.h"
#include "tests/sim/sim.h"

#include <signal.h>
#include <sys/wait.h>

#define KNOWN_MAX_NS 20000000ull /* until a loss is known, or much longer: */
#define KNOWN_LATE_NS 400000000ull
#define LATE_ONE_IN 4
#define RUNS_ON_NS 200000000ull /* a host that was cut off, after it is taken for lost */

enum loss { LOSS_DIES, LOSS_IS_CUT_OFF, LOSS_IS_CUT_FROM_SOME, LOSSES };

bool hosts_reach(uint32_t from, uint32_t to)
{
    const struct sim_host *a = &sim.host[from];
    const struct sim_host *b = &sim.host[to];

    if (from == to)
        return true;
    return !a->dead && !b->dead && !(a->cut >> to & 1 && sim.now_ns < a->cut_ns) &&
           !(b->cut >> from & 1 && sim.now_ns < b->cut_ns);
}

void hosts_connect(struct connection *connection, uint32_t from, uint32_t to)
{
    connection->host[0] = from;
    connection->host[1] = to;
}

static bool is_between(const struct connection *c, uint32_t host, uint32_t others)
{
    return (c->host[0] == host && others >> c->host[1] & 1) ||
           (c->host[1] == host && others >> c->host[0] & 1);
}

static void cut_off(uint32_t host, uint32_t others)
{
    sim.host[host].cut = others & ~(1u << host);
    for (struct connection *c = sim.connections; c; c = c->next)
        if (is_between(c, host, sim.host[host].cut))
            connection_break(c);
}

static void die(uint32_t host)
{
    sim_trace("host %u is gone", host);
    sim.host[host].dead = true;
    for (struct sim_process *p = sim.processes; p; p = p->next)
        if (p->host == host)
            process_kill(p, W_EXITCODE(0, SIGKILL));
    for (each_core(relay))
        if (relay->host == host)
            core_lose(relay);
}

bool hosts_lose(uint32_t host)
{
    static const char *const names[] = {"loses its power", "is cut off", "is cut off from some"};
    struct sim_host *h = &sim.host[host];
    uint64_t late_ns = sim_one_in(LATE_ONE_IN) ? KNOWN_LATE_NS : KNOWN_MAX_NS;
    enum loss what = (enum loss)sim_below(LOSSES);
    uint32_t all = (1u << SIM_HOSTS) - 1;

    if (h->known_ns)
        return false;
    sim.lost++;
    h->known_ns = sim.now_ns + sim_below(late_ns);
    h->dies_ns = what == LOSS_DIES ? sim.now_ns : h->known_ns + sim_below(RUNS_ON_NS);
    h->cut_ns = sim.now_ns + sim_below(2 * late_ns);
    sim_trace("host %u %s, for %llu ms; it is known in %llu ms", host, names[what],
              (unsigned long long)(h->cut_ns - sim.now_ns) / 1000000,
              (unsigned long long)(h->known_ns - sim.now_ns) / 1000000);
    if (what == LOSS_DIES)
        die(host);
    else
        cut_off(host, what == LOSS_IS_CUT_OFF ? all : (uint32_t)sim_below(all + 1));
    return true;
}

void hosts_step(void)
{
    for (uint32_t host = 0; host < sim.plan.relays; host++)
        if (sim.host[host].dies_ns && !sim.host[host].dead && sim.now_ns >= sim.host[host].dies_ns)
            die(host);
}

static bool is_due(const struct sim_host *h)
{
    return h->known_ns && !h->known && sim.now_ns >= h->known_ns;
}

bool hosts_has_known(void)
{
    for (uint32_t host = 0; host < sim.plan.relays; host++)
        if (is_due(&sim.host[host]))
            return true;
    return false;
}

bool hosts_next_known(uint32_t *host)
{
    for (*host = 0; *host < sim.plan.relays; (*host)++)
        if (is_due(&sim.host[*host])) {
            sim.host[*host].known = true;
            return true;
        }
    return false;
}

uint64_t hosts_deadline_ns(void)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t host = 0; host < sim.plan.relays; host++) {
        const struct sim_host *h = &sim.host[host];
        uint64_t at = h->known_ns && !h->known ? h->known_ns : UINT64_MAX;

        if (h->dies_ns && !h->dead && h->dies_ns < at)
            at = h->dies_ns;
        if (at > sim.now_ns && at < first)
            first = at;
        if (h->cut && h->cut_ns > sim.now_ns && h->cut_ns < first)
            first = h->cut_ns;
    }
    return first;
}
