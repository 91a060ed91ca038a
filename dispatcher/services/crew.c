#include "dispatcher/services/crew.h"
#include "common/together.h"
#include "dispatcher/grid/grid_state.h"
#include "dispatcher/grid/ssh_config.h"
#include "dispatcher/remote/agents.h"
#include "dispatcher/services/host_talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef CAUSEWAY_VERSION
#define CAUSEWAY_VERSION "unknown"
#endif

/* A host that is asked, for the rows of its services. */
struct unit {
    const struct crew_config *config;
    uint32_t site, host;
    struct crew_row *row[PLAN_SERVICES]; /* `rows` of them, in the order in which they are asked */
    uint32_t rows;
    struct host_talk talk;
};

/* --- where it went wrong --- */

static const char *name_of(const struct unit *u)
{
    return u->config->plan.grid->site[u->site].host[u->host].name;
}

static bool is_here(const struct unit *u)
{
    return u->site == u->config->here && strcasecmp(name_of(u), u->config->own_host) == 0;
}

/* The one at which no login succeeded. */
static void describe_hop(const struct unit *u, char *text, size_t size)
{
    const struct grid *grid = u->config->plan.grid;
    struct route ways[ROUTES_MAX];
    uint32_t hops = 0, at = u->talk.logins;

    if (routes_find(grid, u->config->here, u->site, ways) > 0)
        hops = ways[0].hops;
    if (is_here(u))
        snprintf(text, size, "on this machine");
    else if (at < hops)
        snprintf(text, size, "at gateway %s:%u of site %s (%u of %u on the way)",
                 ways[0].hop[at].host, ways[0].hop[at].port, grid->site[ways[0].site[at]].name,
                 at + 1, hops);
    else if (at == hops)
        snprintf(text, size, "at the host itself");
    else
        snprintf(text, size, "after the login");
}

/* Nobody gets to a site that lets nothing in, before somebody has been there. */
static void advise(const struct unit *u, char *text, size_t size)
{
    const struct grid_site *site = &u->config->plan.grid->site[u->site];

    if (site->published_at == GRID_OUTSIDE || u->talk.logins > 1 || u->site == u->config->here)
        return;
    snprintf(text, size,
             "; the site lets nothing in: 'causeway up -f %s --site %s' on %s publishes it",
             u->config->file, site->name, site->host[site->relay.host].name);
}

static void explain(struct unit *u, const struct cw_err *err, char why[CREW_WHY_MAX])
{
    char said[CW_ERR_TEXT_MAX] = "", hop[2 * SSH_HOST_MAX], advice[CW_ERR_TEXT_MAX] = "";

    if (err->code == CW_ECLOSED)
        host_talk_why(&u->talk, said, sizeof(said));
    describe_hop(u, hop, sizeof(hop));
    advise(u, advice, sizeof(advice));
    snprintf(why, CREW_WHY_MAX, "%s: %s%s", hop, said[0] ? said : err->text, advice);
}

/* --- asking --- */

static bool is_of_our_version(const struct unit *u, char why[CREW_WHY_MAX])
{
    const struct service_hello *hello = &u->talk.hello;

    if (hello->protocol == SERVICE_PROTOCOL && strcmp(hello->version, CAUSEWAY_VERSION) == 0)
        return true;
    snprintf(why, CREW_WHY_MAX,
             "Causeway %s is there (services %u), and here is Causeway %s (services %u); install "
             "the same version at all sites, or set `causeway` in the grid file",
             hello->version, (unsigned)hello->protocol, CAUSEWAY_VERSION, SERVICE_PROTOCOL);
    return false;
}

static int begin(struct unit *u, struct cw_err *err)
{
    static const char *const words[] = {"service", NULL};
    const struct grid_site *site = &u->config->plan.grid->site[u->site];
    char name[SSH_CONFIG_NAME_MAX + 1], args[GRID_SSH_ARGS_BYTES + 4];

    snprintf(name, sizeof(name), SSH_CONFIG_HOST, name_of(u), site->name);
    snprintf(args, sizeof(args), "%s -v", u->config->ssh_args);
    return host_talk_begin(
        &u->talk,
        &(struct launch_command_config){
            .launcher = "ssh",
            .args = args,
            .host = name,
            .own_host = is_here(u) ? name : NULL,
            .causeway = site->causeway[0] && !is_here(u) ? site->causeway : u->config->causeway,
            .words = words,
            .connect_s = AGENTS_CONNECT_MAX_S},
        err);
}

/* Who ends the way on which it came hears no answer. */
static bool was_the_way(const struct unit *u, const struct crew_row *row, const struct cw_err *err)
{
    return err->code == CW_ECLOSED && row->service == PLAN_PUBLISH && !is_here(u) &&
           strcmp(u->config->op, "stop") == 0;
}

static int ask(struct unit *u, struct crew_row *row, struct cw_err *err)
{
    json_t *request = plan_request(&u->config->plan, u->config->op, row->site, row->service);

    if (!request)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    if (host_talk_ask(&u->talk, request, err) == CW_OK) {
        row->reached = true;
        row->answer = u->talk.answer;
    } else if (was_the_way(u, row, err)) {
        row->reached = true;
        row->answer = (struct service_answer){.state = SERVICE_STOPPED, .well = true};
        strcpy(row->answer.note, "stopped: it was the way there");
        err->code = CW_OK;
    }
    json_decref(request);
    return err->code;
}

static void fail_rest(const struct unit *u, uint32_t from, const char *why)
{
    for (uint32_t i = from; i < u->rows; i++)
        snprintf(u->row[i]->why, CREW_WHY_MAX, "%s", why);
}

static void ask_all(struct unit *u)
{
    struct cw_err err = {0};
    char why[CREW_WHY_MAX] = "";
    uint32_t done = 0;

    if (begin(u, &err) == CW_OK && is_of_our_version(u, why))
        while (done < u->rows && ask(u, u->row[done], &err) == CW_OK)
            done++;
    if (err.code)
        explain(u, &err, why);
    fail_rest(u, done, why);
    host_talk_free(&u->talk);
}

/* --- all of them --- */

static struct unit *unit_of(struct unit *units, uint32_t *count, const struct crew_config *config,
                            const struct crew_row *row)
{
    for (uint32_t i = 0; i < *count; i++)
        if (units[i].site == row->site && units[i].host == row->host)
            return &units[i];
    units[*count] = (struct unit){
        .config = config, .site = row->site, .host = row->host, .talk = HOST_TALK_NONE};
    return &units[(*count)++];
}

/* They are ended in the other order than they are started. */
static void add_to_unit(struct unit *u, struct crew_row *row)
{
    bool reverse = strcmp(u->config->op, "stop") == 0;

    if (reverse)
        memmove(u->row + 1, u->row, u->rows * sizeof(*u->row));
    u->row[reverse ? 0 : u->rows] = row;
    u->rows++;
}

static bool is_meant(const struct crew_config *config, uint32_t site, enum plan_service service)
{
    return (config->site == GRID_OUTSIDE || config->site == site) &&
           (service == PLAN_PUBLISH || !config->publish_only) &&
           plan_host(&config->plan, site, service) != HOSTS_NONE;
}

static uint32_t make_rows(const struct crew_config *config, struct crew_row *rows)
{
    uint32_t count = 0;

    for (uint32_t site = 0; site < config->plan.grid->sites; site++)
        for (enum plan_service service = 0; service < PLAN_SERVICES; service++)
            if (is_meant(config, site, service))
                rows[count++] = (struct crew_row){.site = site,
                                                  .host = plan_host(&config->plan, site, service),
                                                  .service = service};
    return count;
}

/* It ends the way to its site, after the other hosts there have been asked. */
static bool ends_way(const struct unit *u)
{
    return strcmp(u->config->op, "stop") == 0 && u->row[u->rows - 1]->service == PLAN_PUBLISH;
}

static void ask_unit(void *ctx, uint32_t number)
{
    struct unit *u = &((struct unit *)ctx)[number];

    if (!ends_way(u))
        ask_all(u);
}

static void ask_last_unit(void *ctx, uint32_t number)
{
    struct unit *u = &((struct unit *)ctx)[number];

    if (ends_way(u))
        ask_all(u);
}

int crew_run(const struct crew_config *config, struct crew_row *rows, struct cw_err *err)
{
    struct unit *units = calloc(CREW_HOSTS_MAX, sizeof(*units));
    uint32_t rows_count, count = 0;

    if (!units)
        return cw_err_set(err, CW_ENOMEM, "no memory for the services of a grid");
    rows_count = make_rows(config, rows);
    for (uint32_t i = 0; i < rows_count; i++)
        add_to_unit(unit_of(units, &count, config, &rows[i]), &rows[i]);
    cw_together(count, count, ask_unit, units);
    cw_together(count, count, ask_last_unit, units);
    free(units);
    return (int)rows_count;
}
