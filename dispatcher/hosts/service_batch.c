#include "dispatcher/hosts/service_batch.h"
#include "common/together.h"
#include "dispatcher/hosts/ssh_config.h"
#include "dispatcher/launch/nodes.h"
#include "dispatcher/wire/ssh_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A host that is asked, for the rows of its services. */
struct unit {
    const struct service_batch *batch;
    uint32_t site, host;
    struct service_row *row[PLAN_SERVICES]; /* `rows` of them, in the order in which it is asked */
    uint32_t rows;
    struct ssh_session session;
};

/* --- where it went wrong --- */

static const char *name_of(const struct unit *u)
{
    return u->batch->place.grid.site[u->site].host[u->host].name;
}

static bool is_here(const struct unit *u)
{
    return u->site == u->batch->place.here && strcasecmp(name_of(u), u->batch->place.own_host) == 0;
}

/* The one at which no login succeeded. */
static void describe_hop(const struct unit *u, char *text, size_t size)
{
    const struct grid *grid = &u->batch->place.grid;
    struct route ways[ROUTES_MAX];
    uint32_t hops = 0, at = u->session.logins;

    if (routes_find(grid, u->batch->place.here, u->site, ways) > 0)
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
    const struct grid_site *site = &u->batch->place.grid.site[u->site];

    if (site->published_at == GRID_OUTSIDE || u->session.logins > 1 ||
        u->site == u->batch->place.here)
        return;
    snprintf(text, size,
             "; the site lets nothing in: 'causeway up -f %s --site %s' on %s publishes it",
             u->batch->file, site->name, site->host[site->relay.host].name);
}

static void explain(struct unit *u, const struct cw_err *err, char why[BATCH_WHY_MAX])
{
    char said[CW_ERR_TEXT_MAX] = "", hop[2 * SSH_HOST_MAX], advice[CW_ERR_TEXT_MAX] = "";

    if (err->code == CW_ECLOSED)
        ssh_session_why(&u->session, said, sizeof(said));
    describe_hop(u, hop, sizeof(hop));
    advise(u, advice, sizeof(advice));
    snprintf(why, BATCH_WHY_MAX, "%s: %s%s", hop, said[0] ? said : err->text, advice);
}

/* --- asking --- */

static bool is_of_our_version(const struct unit *u, char why[BATCH_WHY_MAX])
{
    const struct greeting_hello *facts = &u->session.facts;

    if (greeting_is_ours(&u->session.facts))
        return true;
    snprintf(why, BATCH_WHY_MAX,
             "Causeway %s is there (protocol %u), and here is Causeway %s (protocol %u); install "
             "the same version at all sites, or set `causeway` in the grid file",
             facts->version, facts->protocol, CAUSEWAY_VERSION, GREETING_PROTOCOL);
    return false;
}

/* -v: to know how far it came. */
static int begin(struct unit *u, struct cw_err *err)
{
    const struct grid_site *site = &u->batch->place.grid.site[u->site];
    char name[SSH_CONFIG_NAME_MAX + 1], args[GRID_SSH_ARGS_BYTES + 4];

    snprintf(name, sizeof(name), SSH_CONFIG_HOST, name_of(u), site->name);
    snprintf(args, sizeof(args), "%s -v", u->batch->place.ssh_args);
    return ssh_session_begin(
        &u->session,
        &(struct launch_command_config){
            .launcher = "ssh",
            .args = args,
            .host = name,
            .own_host = is_here(u) ? name : NULL,
            .causeway = site->causeway[0] && !is_here(u) ? site->causeway : u->batch->causeway,
            .connect_s = NODES_CONNECT_MAX_S},
        BATCH_HELLO_NS, err);
}

/* Who ends the way on which it came hears no answer. */
static bool was_the_way(const struct unit *u, const struct service_row *row,
                        const struct cw_err *err)
{
    return err->code == CW_ECLOSED && row->service == PLAN_PUBLISH && !is_here(u) &&
           strcmp(u->batch->op, "stop") == 0;
}

static int ask(struct unit *u, struct service_row *row, struct cw_err *err)
{
    json_t *request = plan_request(&u->batch->plan, u->batch->op, row->site, row->service);

    if (ssh_session_ask(&u->session, request, BATCH_ANSWER_NS, err) == CW_OK) {
        service_answer_get(&row->answer, u->session.answer, err);
    } else if (was_the_way(u, row, err)) {
        row->answer = (struct service_answer){.state = SERVICE_STOPPED, .well = true};
        strcpy(row->answer.note, "stopped: it was the way there");
        err->code = CW_OK;
    }
    row->reached = err->code == CW_OK;
    return err->code;
}

static void ask_all(struct unit *u)
{
    struct cw_err err = {0};
    char why[BATCH_WHY_MAX] = "";
    uint32_t done = 0;

    if (begin(u, &err) == CW_OK && is_of_our_version(u, why))
        while (done < u->rows && ask(u, u->row[done], &err) == CW_OK)
            done++;
    if (err.code)
        explain(u, &err, why);
    for (; done < u->rows; done++)
        strcpy(u->row[done]->why, why);
    ssh_session_free(&u->session);
}

/* --- all of them --- */

static struct unit *unit_of(struct unit *units, uint32_t *count, const struct service_batch *batch,
                            const struct service_row *row)
{
    for (uint32_t i = 0; i < *count; i++)
        if (units[i].site == row->site && units[i].host == row->host)
            return &units[i];
    units[*count] = (struct unit){.batch = batch, .site = row->site, .host = row->host};
    return &units[(*count)++];
}

/* They are ended in the other order than they are started. */
static void add_to_unit(struct unit *u, struct service_row *row)
{
    bool reverse = strcmp(u->batch->op, "stop") == 0;

    if (reverse)
        memmove(u->row + 1, u->row, u->rows * sizeof(*u->row));
    u->row[reverse ? 0 : u->rows] = row;
    u->rows++;
}

static bool is_meant(const struct service_batch *batch, uint32_t site, enum plan_service service)
{
    return (batch->site == GRID_OUTSIDE || batch->site == site) &&
           (service == PLAN_PUBLISH || !batch->publish_only) &&
           plan_host(&batch->plan, site, service) != HOSTS_NONE;
}

static uint32_t make_rows(const struct service_batch *batch, struct service_row *rows)
{
    uint32_t count = 0;

    for (uint32_t site = 0; site < batch->place.grid.sites; site++)
        for (enum plan_service service = 0; service < PLAN_SERVICES; service++)
            if (is_meant(batch, site, service))
                rows[count++] = (struct service_row){.site = site,
                                                     .host = plan_host(&batch->plan, site, service),
                                                     .service = service};
    return count;
}

struct round {
    struct unit *units;
    bool last;
};

/* Who ends the way to its site is asked after the other hosts there. */
static void ask_unit(void *ctx, uint32_t number)
{
    const struct round *r = ctx;
    struct unit *u = &r->units[number];
    bool ends_way =
        strcmp(u->batch->op, "stop") == 0 && u->row[u->rows - 1]->service == PLAN_PUBLISH;

    if (ends_way == r->last)
        ask_all(u);
}

int service_batch_run(const struct service_batch *batch, struct service_row *rows,
                      struct cw_err *err)
{
    struct unit *units = calloc(BATCH_HOSTS_MAX, sizeof(*units));
    uint32_t rows_count, count = 0;

    if (!units)
        return cw_err_set(err, CW_ENOMEM, "no memory for the services of a grid");
    rows_count = make_rows(batch, rows);
    for (uint32_t i = 0; i < rows_count; i++)
        add_to_unit(unit_of(units, &count, batch, &rows[i]), &rows[i]);
    for (int last = 0; last < 2; last++)
        cw_together(count, count, ask_unit, &(struct round){units, last});
    free(units);
    return (int)rows_count;
}
