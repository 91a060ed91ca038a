#include "dispatcher/hosts/plan.h"
#include "dispatcher/hosts/ssh_config.h"
#include "tunnels/tunnel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const plan_names[PLAN_SERVICES] = {"publish", "relay", "ckptsrv", "doors"};

#define KEY_FILE "key"
#define SSH_CONFIG_FILE "ssh_config"

/* --- doors --- */

/* Where a door of site `at` leads: to the relay, or the checkpoint server, of site `to`. Returns
 * false where there is none. */
static bool door_leads(const struct plan *plan, uint32_t at, uint32_t to, bool server,
                       char text[CW_ADDRESS_MAX])
{
    const struct grid_site *site = &plan->grid->site[to];
    const struct grid_service *service = server ? &site->ckptsrv : &site->relay;

    return at != to && service->host != HOSTS_NONE &&
           routes_address(plan->grid, at, to, site->host[service->host].name, service->port, text) >
               0;
}

static uint32_t door_port(const struct plan *plan, uint32_t at, uint32_t to, bool server)
{
    return server ? grid_door_of_ckptsrv(plan->grid, at, to)
                  : grid_door_of_relay(plan->grid, at, to);
}

static bool has_doors(const struct plan *plan, uint32_t site)
{
    char text[CW_ADDRESS_MAX];

    for (uint32_t to = 0; to < plan->grid->sites; to++)
        if (door_leads(plan, site, to, false, text))
            return true;
    return false;
}

/* --- what a site has --- */

uint32_t plan_host(const struct plan *plan, uint32_t site, enum plan_service service)
{
    const struct grid_site *s = &plan->grid->site[site];

    switch (service) {
    case PLAN_PUBLISH:
        return s->published_at == GRID_OUTSIDE ? HOSTS_NONE : s->relay.host;
    case PLAN_CKPTSRV:
        return s->ckptsrv.host;
    case PLAN_DOORS:
        return has_doors(plan, site) ? s->relay.host : HOSTS_NONE;
    default:
        return s->relay.host;
    }
}

static void doors_address(const struct plan *plan, uint32_t site, char text[CW_ADDRESS_MAX])
{
    const struct grid_site *s = &plan->grid->site[site];
    char to_address[CW_ADDRESS_MAX];
    int used = snprintf(text, CW_ADDRESS_MAX, "tcp:%s:", s->host[s->relay.host].name);

    for (int server = 0; server < 2; server++)
        for (uint32_t to = 0; to < plan->grid->sites; to++)
            if (used < CW_ADDRESS_MAX && door_leads(plan, site, to, server, to_address))
                used +=
                    snprintf(text + used, (size_t)(CW_ADDRESS_MAX - used), "%s%u",
                             text[used - 1] == ':' ? "" : ",", door_port(plan, site, to, server));
}

void plan_address(const struct plan *plan, uint32_t site, enum plan_service service,
                  char text[CW_ADDRESS_MAX])
{
    const struct grid_site *s = &plan->grid->site[site];

    if (service == PLAN_PUBLISH)
        snprintf(text, CW_ADDRESS_MAX, "127.0.0.1:%u at %s", s->published_port,
                 plan->grid->site[s->published_at].gateway.host);
    else if (service == PLAN_DOORS)
        doors_address(plan, site, text);
    else if (service == PLAN_CKPTSRV)
        grid_tcp_address(plan->grid, site, s->ckptsrv.host, s->ckptsrv.port, text);
    else
        grid_tcp_address(plan->grid, site, s->relay.host, s->relay.port, text);
}

/* --- requests --- */

__attribute__((format(printf, 2, 3))) static void add(json_t *argv, const char *fmt, ...)
{
    char word[GRID_PATH_MAX + CW_ADDRESS_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(word, sizeof(word), fmt, ap);
    va_end(ap);
    json_array_append_new(argv, json_string(word));
}

static void add_words(json_t *argv, const char *words)
{
    while (*(words += strspn(words, " "))) {
        int size = (int)strcspn(words, " ");

        add(argv, "%.*s", size, words);
        words += size;
    }
}

/* -v: to know when the port is forwarded. */
#define PUBLISH_WORDS                                                                              \
    "-N -T -v -F " SSH_CONFIG_FILE " -oBatchMode=yes -oExitOnForwardFailure=yes "                  \
    "-oServerAliveInterval=5 -oServerAliveCountMax=3 -oConnectTimeout=15 "                         \
    "-oStrictHostKeyChecking=yes -oControlMaster=no -oControlPath=none "                           \
    "-oPermitLocalCommand=no -R"

static void add_doors(json_t *argv, const struct plan *plan, uint32_t site)
{
    char at[CW_ADDRESS_MAX], to_address[CW_ADDRESS_MAX];

    for (uint32_t to = 0; to < plan->grid->sites; to++)
        for (int server = 0; server < 2; server++)
            if (door_leads(plan, site, to, server, to_address)) {
                grid_tcp_address(plan->grid, site, plan->grid->site[site].relay.host,
                                 door_port(plan, site, to, server), at);
                add(argv, "--listen");
                add(argv, "%s", at);
                add(argv, "%s", to_address);
            }
}

/* Programs begin in the directory of their service. What the grid file says comes last, and so
 * counts. */
static json_t *words(const struct plan *plan, uint32_t site, enum plan_service service,
                     const char *address)
{
    const struct grid_site *s = &plan->grid->site[site];
    json_t *argv = json_array();

    switch (service) {
    case PLAN_PUBLISH:
        add_words(argv, PUBLISH_WORDS);
        add(argv, "127.0.0.1:%u:localhost:%u", s->published_port, SSH_PORT);
        add(argv, "--");
        add(argv, SSH_CONFIG_GATEWAY, plan->grid->site[s->published_at].name);
        break;
    case PLAN_DOORS:
        add(argv, "tunnel");
        add_doors(argv, plan, site);
        break;
    default:
        add(argv, "%s", plan_names[service]);
        add(argv, "--listen");
        add(argv, "%s", address);
        add_words(argv, service == PLAN_RELAY ? "--key-file " KEY_FILE " --log-safety file"
                                              : "--key-file " KEY_FILE " --dir");
        if (service == PLAN_CKPTSRV)
            add(argv, s->ckptsrv.dir[0] ? "%s" : "../%s.images",
                s->ckptsrv.dir[0] ? s->ckptsrv.dir : s->name);
        add_words(argv, service == PLAN_RELAY ? s->relay.options : s->ckptsrv.options);
    }
    return argv;
}

static json_t *environment(const struct plan *plan)
{
    char keys[GRID_KEYS_BYTES], connections[16];

    grid_keys(plan->grid, keys);
    snprintf(connections, sizeof(connections), "%u", plan->grid->connections);
    return json_pack("{s:s*, s:s*, s:s*}", TUNNEL_PROGRAM_VARIABLE, getenv(TUNNEL_PROGRAM_VARIABLE),
                     SSH_KEYS_VARIABLE, keys[0] ? keys : NULL, TUNNEL_CONNECTIONS_VARIABLE,
                     plan->grid->connections ? connections : NULL);
}

static json_t *files(const struct plan *plan, uint32_t site, enum plan_service service)
{
    char *config;
    json_t *files;

    if (service == PLAN_DOORS)
        return json_object();
    if (service != PLAN_PUBLISH)
        return json_pack("{s:s}", KEY_FILE, plan->key);
    config = ssh_config_make(plan->grid, site);
    files = json_pack("{s:s}", SSH_CONFIG_FILE, config);
    free(config);
    return files;
}

json_t *plan_request(const struct plan *plan, const char *op, uint32_t site,
                     enum plan_service service)
{
    json_t *request = json_pack("{s:s, s:s, s:s, s:s}", "op", op, "grid", plan->grid->name, "site",
                                plan->grid->site[site].name, "service", plan_names[service]);
    bool publish = service == PLAN_PUBLISH;
    char address[CW_ADDRESS_MAX];

    if (strcmp(op, "start") != 0)
        return request;
    plan_address(plan, site, service, address);
    if (json_object_update_new(
            request,
            json_pack("{s:s, s:o, s:o, s:o, s:s, s:s, s:b}", "program",
                      publish ? "ssh" : "causeway", "argv", words(plan, site, service, address),
                      "env", environment(plan), "files", files(plan, site, service), "address",
                      address, "ready", publish ? "forward" : "descriptor", "again", publish)) == 0)
        return request;
    json_decref(request);
    return NULL;
}
