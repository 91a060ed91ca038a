#include "dispatcher/run/unit_news.h"
#include "ckptsrv/imgdir.h"
#include "dispatcher/run/copies.h"
#include "dispatcher/run/host_relays.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- orders --- */

static struct node_unit *new_order(uint32_t number, const uint8_t key[CW_KEY_SIZE],
                                   struct cw_err *err)
{
    struct node_unit *order = calloc(1, sizeof(*order));

    err->code = CW_OK;
    if (!order) {
        cw_err_set(err, CW_ENOMEM, "no memory to start a relay or checkpoint server");
        return NULL;
    }
    order->number = number;
    memcpy(order->key, key, sizeof(order->key));
    return order;
}

/* What it listens at for others is chosen by its host, unless it was said. */
static int carry_out(const struct parts *p, struct node_unit *order, struct cw_err *err)
{
    uint32_t host = host_relays_of(p, order->number);

    if (!order->listen[0])
        host_relays_listen_address(p, host, order->listen);
    if (err->code == CW_OK && far_units_start(p->far_units, host, order, err) < 0)
        cw_err_wrap(err, "starting a relay or checkpoint server on host %s",
                    nodes_name(p->nodes, host));
    sodium_memzero(order->key, sizeof(order->key));
    free(order);
    return err->code;
}

static int add_option(struct node_unit *order, const char *name, const char *value,
                      struct cw_err *err)
{
    char option[48];

    snprintf(option, sizeof(option), "--%s", name);
    if (node_unit_option(order, option, value))
        return CW_OK;
    return cw_err_set(err, CW_ELIMIT, "%s %s: the options of a relay take more than %u bytes",
                      option, value, NODE_WORDS_BYTES);
}

/* What the user has said of them. The log of a job that is kept has its place. */
static int add_options(const struct parts *p, struct node_unit *order, struct cw_err *err)
{
    char spin[32];

    snprintf(spin, sizeof(spin), "%fms", (double)p->spin_ns / 1e6);
    add_option(order, "spin", spin, err);
    if (err->code == CW_OK && p->options->job_dir)
        add_option(order, "log-dir", p->relay_dir, err);
    for (const struct cw_option *s = relay_setting_options; err->code == CW_OK && s->name; s++) {
        const char *value = p->options->values[cw_option_number(&run_option_list, s->name)];

        if (value)
            add_option(order, s->name, value, err);
    }
    return err->code;
}

static int start_relay(void *ctx, uint32_t relay, const uint8_t key[CW_KEY_SIZE],
                       struct cw_err *err)
{
    const struct parts *p = ((struct unit_news *)ctx)->parts;
    const struct relay_settings *settings = &p->options->relay_settings;
    const char *disk = relay_settings_disk_dir(settings);
    struct node_unit *order = new_order(relay, key, err);

    if (!order)
        return err->code;
    if (settings->log_safety != RELAY_LOG_IN_MEMORY)
        order->flags = NODE_UNIT_RETURNS;
    if (order->flags && disk)
        snprintf(order->dir, sizeof(order->dir), "%s", disk);
    if (p->options->job_dir && settings->log_safety != RELAY_LOG_SYNCED)
        order->flags |= NODE_UNIT_KEPT;
    if (!copies_order(p->copies, order))
        cw_err_set(err, CW_ELIMIT, "too many options of a relay");
    if (err->code == CW_OK)
        add_options(p, order, err);
    return carry_out(p, order, err);
}

static void kill_relay(void *ctx, uint32_t relay)
{
    far_units_kill(((struct unit_news *)ctx)->parts->far_units, relay);
}

const struct relays_own unit_news_relays = {start_relay, kill_relay};

/* What waits for all to be settled hears why; later on nothing is heard of that one any more. */
static void server_failed(struct unit_news *n, uint32_t server, const struct cw_err *err)
{
    bool awaited = n->parts->options->hosts.ckptsrv_hosts > 0 && !n->servers_settled;

    n->servers_settled = true;
    if (awaited)
        n->server_why = *err;
    else if (!n->server_why.code) /* else the job does not begin */
        image_servers_gone(imaging_servers(n->parts->imaging), server, err);
}

static void server_listens(struct unit_news *n, uint32_t server, const char *local, const char *tcp,
                           bool in_memory)
{
    uint32_t all = (1u << n->parts->options->hosts.ckptsrv_hosts) - 1;

    image_servers_listens(imaging_servers(n->parts->imaging), server, local, tcp, in_memory);
    n->settled |= 1u << server;
    n->servers_settled |= (n->settled & all) == all;
}

void unit_news_start_server(void *ctx, uint32_t server, const char *listen,
                            const uint8_t key[CW_KEY_SIZE])
{
    struct unit_news *n = ctx;
    const struct parts *p = n->parts;
    bool kept = p->options->job_dir;
    const char *dir = kept ? p->image_dir : p->options->images.dir;
    struct cw_err err;
    struct node_unit *order = new_order(NODE_UNIT_SERVER + server, key, &err);
    char job[IMGDIR_JOB_TEXT];

    if (!order) {
        server_failed(n, server, &err);
        return;
    }
    order->kind = NODE_UNIT_IS_SERVER;
    order->flags = NODE_UNIT_RETURNS | (kept ? NODE_UNIT_KEPT : 0);
    order->bytes_max = p->options->images.bytes_max;
    snprintf(order->dir, sizeof(order->dir), "%s", dir ? dir : "");
    snprintf(order->listen, sizeof(order->listen), "%s", listen);
    imgdir_job_text(job, p->job_id);
    if (!kept)
        node_unit_option(order, "--ephemeral-job", job);
    if (carry_out(p, order, &err) < 0)
        server_failed(n, server, &err);
}

/* --- what is heard of them --- */

/* The name of the host that it is on; NULL: this machine. */
static const char *host_of(const struct unit_news *n, uint32_t number)
{
    uint32_t host = host_relays_of(n->parts, number);

    return host == nodes_here(n->parts->nodes) ? NULL : nodes_name(n->parts->nodes, host);
}

static void on_started(void *ctx, uint32_t number, pid_t pid, const char *place)
{
    const struct unit_news *n = ctx;
    const char *host = host_of(n, number);

    if (number >= NODE_UNIT_SERVER)
        image_servers_started(imaging_servers(n->parts->imaging), number - NODE_UNIT_SERVER, pid,
                              place);
    else if (host)
        log_verbose(&n->parts->log, "host %s: relay started (pid %d)", host, (int)pid);
    else
        log_verbose(&n->parts->log, "relay started (pid %d, %s)", (int)pid, place);
}

static void on_listens(void *ctx, uint32_t number, const char *local, const char *tcp,
                       bool in_memory)
{
    struct unit_news *n = ctx;

    if (number >= NODE_UNIT_SERVER)
        server_listens(n, number - NODE_UNIT_SERVER, local, tcp, in_memory);
    else
        relays_own_listens(n->parts->relays, number, local, tcp, !host_of(n, number));
}

static void on_ended(void *ctx, uint32_t number, int status, const char *why)
{
    struct unit_news *n = ctx;

    if (number >= NODE_UNIT_SERVER)
        image_servers_ended(imaging_servers(n->parts->imaging), number - NODE_UNIT_SERVER, status,
                            why);
    else
        relay_news_ended(n->relay_news, number, status);
}

static void on_failed(void *ctx, uint32_t number, int status, const struct cw_err *err)
{
    struct unit_news *n = ctx;

    if (number >= NODE_UNIT_SERVER)
        server_failed(n, number - NODE_UNIT_SERVER, err);
    else
        relay_news_failed(n->relay_news, number, status, err);
}

static void on_lost(void *ctx, uint32_t number, const struct cw_err *err)
{
    struct unit_news *n = ctx;
    struct cw_err why;

    if (number < NODE_UNIT_SERVER) {
        if (!copies_relay_lost(n->parts->copies, number))
            relay_news_failed(n->relay_news, number, UNIT_NO_STATUS, err);
        return;
    }
    cw_err_set(&why, err->code, "%s, and with it %s checkpoint server", err->text,
               n->parts->options->hosts.ckptsrv_hosts > 1 ? "its" : "the job's own");
    server_failed(n, number - NODE_UNIT_SERVER, &why);
}

const struct units_events unit_news_events = {on_started, on_listens, on_ended, on_failed, on_lost};
