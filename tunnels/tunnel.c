#include "tunnels/tunnel.h"
#include "common/home.h"
#include "tunnels/ssh_carry.h"
#include "tunnels/ssh_chain.h"
#include "tunnels/ssh_channel.h"
#include "tunnels/ssh_merge.h"
#include "tunnels/tunnel_stripes.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tunnel {
    const struct tunnel_options *options;
    struct tunnel_ends *ends;
    char dir[PATH_MAX]; /* of the user's keys and known hosts, for all connections */
    struct ssh_chain chain;
    struct stripe_greeting greeting;
    uint32_t connections; /* of the tunnel, once it is open */
};

/* Of a few bytes: there is room. */
static void tell(const struct tunnel_ends *ends, char what, const char *text)
{
    char line[1 + CW_ERR_TEXT_MAX];

    if (ends->told)
        (void)!write(ends->out, line, (size_t)snprintf(line, sizeof(line), "%c%s", what, text));
}

static void remark(const struct tunnel *t, const char *what, const char *why)
{
    if (t->options->verbose)
        fprintf(stderr, "causeway tunnel: %s%s\n", what, why);
}

static void make_greeting(struct tunnel *t)
{
    t->greeting = (struct stripe_greeting){.kind = STRIPE_FIRST, .port = t->chain.address->port};
    snprintf(t->greeting.host, sizeof(t->greeting.host), "%s", t->chain.address->host);
    randombytes_buf(t->greeting.name, sizeof(t->greeting.name));
    randombytes_buf(t->greeting.token, sizeof(t->greeting.token));
}

/* On a session with the last gateway: how many connections there are to be, of which this one has
 * found the far end then; 1: it has not, and `why` says it. */
static uint32_t connections(struct tunnel *t, struct ssh_link *link, struct cw_err *why)
{
    uint32_t count = t->options->connections;

    if (count == 0 && ssh_channel_round_trip_ns(link, TUNNEL_NEAR_NS) < TUNNEL_NEAR_NS) {
        cw_err_set(why, CW_OK, "the gateway is near");
        return 1;
    }
    make_greeting(t);
    if (ssh_merge_open(link, &t->greeting, why) < 0)
        return 1;
    return count ? count : TUNNEL_CONNECTIONS;
}

/* The channel of the link is open then: to the far end of a striped tunnel, or to the address. */
static int choose(struct tunnel *t, struct cw_err *err)
{
    struct ssh_link *link = ssh_chain_last(&t->chain);
    const struct ssh_address *address = t->chain.address;
    struct cw_err why = {.text = "as it was asked for"};

    t->connections = 1;
    if (t->options->connections != 1 && ssh_channel_session(link, &why) == CW_OK) {
        t->connections = connections(t, link, &why);
        if (t->connections == 1)
            ssh_channel_drop(link);
    }
    if (t->connections == 1)
        remark(t, "one connection: ", why.text);
    else
        remark(t, "several connections", "");
    return t->connections > 1 ? CW_OK
                              : ssh_channel_forward(link, address->host, address->port, err);
}

/* The best way that leads there. Of several each has its part of the time. */
static int open_one_way(struct tunnel *t, const struct ssh_address *address, struct cw_err *err)
{
    uint32_t time_ms = TUNNEL_OPEN_MS / address->ways;

    snprintf(t->dir, sizeof(t->dir), "%s/.ssh", cw_home());
    for (uint32_t i = 0; i < address->ways; i++) {
        if (i > 0)
            ssh_chain_close(&t->chain);
        if (ssh_chain_open(&t->chain, address, &address->way[i], t->dir, time_ms, err) == CW_OK &&
            choose(t, err) == CW_OK)
            break;
    }
    return err->code;
}

static int open_and_carry(struct tunnel *t, const struct ssh_address *address, struct cw_err *err)
{
    if (open_one_way(t, address, err) < 0) {
        tell(t->ends, TUNNEL_FAILED, err->text);
        return err->code;
    }
    t->ends->opened = true;
    tell(t->ends, TUNNEL_OPENED, "");
    return t->connections == 1 ? ssh_carry(&t->chain, t->ends->in, t->ends->out, err)
                               : tunnel_stripes_run(&t->chain, &t->greeting, t->connections,
                                                    TUNNEL_OPEN_MS, t->ends->in, t->ends->out, err);
}

int tunnel_run(const struct ssh_address *address, const struct tunnel_options *options,
               struct tunnel_ends *ends, struct cw_err *err)
{
    struct tunnel t = {.options = options, .ends = ends};

    if (libssh2_init(0) != 0)
        return cw_err_set(err, CW_ENOMEM, "libssh2 cannot be used");
    err->code = CW_OK;
    open_and_carry(&t, address, err);
    ssh_chain_close(&t.chain);
    sodium_memzero(&t.greeting, sizeof(t.greeting));
    libssh2_exit();
    return err->code;
}
