#include "dispatcher/hosts/grid_file.h"
#include "common/home.h"
#include "common/whole_file.h"
#include "dispatcher/hosts/routes.h"
#include "dispatcher/hosts/settings.h"
#include "tunnels/stripe_cut.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FORBIDDEN "\"'\\%$" /* in names of files */
#define INCLUDE "@include"

struct reader {
    struct settings s; /* has the error */
    const char *home;
    struct grid *grid;
};

/* --- what members there are --- */

#define TEXT(group, member, bytes)                                                                 \
    .kind = SETTINGS_TEXT, .max = (bytes), .at = offsetof(struct group, member)
#define NAME(group)                                                                                \
    .kind = SETTINGS_NAME, .needed = true, .max = GRID_NAME_MAX, .at = offsetof(struct group, name)

static const struct settings_member host_members[] = {
    {"name", TEXT(grid_host, name, HOST_NAME_MAX_BYTES), .needed = true},
    {"slots", .kind = SETTINGS_NUMBER, .max = HOST_SLOTS_MAX,
     .at = offsetof(struct grid_host, slots)},
    {0}};

#define PORT(group, member, last)                                                                  \
    .kind = SETTINGS_PORT, .needed = true, .min = 1, .max = (last),                                \
    .at = offsetof(struct group, member)

static const struct settings_member relay_members[] = {
    {"host", .kind = SETTINGS_TEXT, .needed = true},
    {"port", PORT(grid_service, port, UINT16_MAX - GRID_DOORS_MAX)},
    {"options", TEXT(grid_service, options, GRID_OPTIONS_MAX)},
    {0}};

static const struct settings_member ckptsrv_members[] = {
    {"host", .kind = SETTINGS_TEXT, .needed = true},
    {"port", PORT(grid_service, port, UINT16_MAX)},
    {"dir", TEXT(grid_service, dir, GRID_PATH_MAX)},
    {"options", TEXT(grid_service, options, GRID_OPTIONS_MAX)},
    {0}};

static const struct settings_member published_members[] = {
    {"at", .kind = SETTINGS_TEXT, .needed = true},
    {"port", PORT(grid_site, published_port, UINT16_MAX)},
    {0}};

static const struct settings_member site_members[] = {
    {"name", NAME(grid_site)},
    {"user", TEXT(grid_site, user, SSH_USER_MAX)},
    {"key", TEXT(grid_site, key, GRID_PATH_MAX)},
    {"gateway", .kind = SETTINGS_TEXT},
    {"published", .kind = SETTINGS_GROUP},
    {"hosts", .kind = SETTINGS_GROUPS, .needed = true},
    {"relay", .kind = SETTINGS_GROUP},
    {"ckptsrv", .kind = SETTINGS_GROUP},
    {"causeway", TEXT(grid_site, causeway, GRID_PATH_MAX)},
    {"reaches", .kind = SETTINGS_NAMES},
    {0}};

static const struct settings_member grid_members[] = {
    {"name", NAME(grid)},
    {"sites", .kind = SETTINGS_GROUPS, .needed = true},
    {"reaches", .kind = SETTINGS_NAMES},
    {"connections", .kind = SETTINGS_NUMBER, .min = 1, .max = STRIPES_MAX,
     .at = offsetof(struct grid, connections)},
    {0}};

static const config_setting_t *member(const config_setting_t *group, const char *name)
{
    return config_setting_get_member(group, name);
}

/* --- names --- */

/* Names of files go into commands and configurations, where some letters mean something else. */
static int check_path(const struct reader *r, const config_setting_t *at, const char *path)
{
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f || strchr(FORBIDDEN, *c))
            return settings_fail(
                &r->s, at, "expected a file's name without control characters and %s", FORBIDDEN);
    if (path[0] && path[0] != '/')
        return settings_fail(&r->s, at, "expected a name that begins with '/'");
    return CW_OK;
}

/* The home directory is that of this machine; that of machines of the site is not known here. */
static int check_key(const struct reader *r, const config_setting_t *at, char *path)
{
    char rest[GRID_PATH_MAX + 1];

    if (strncmp(path, "~/", 2) == 0) {
        strcpy(rest, path + 1);
        if (strlen(r->home) + strlen(rest) > GRID_PATH_MAX)
            return settings_fail(&r->s, at, "with the home directory %.64s... it is too long",
                                 r->home);
        strcpy(stpcpy(path, r->home), rest);
    }
    return check_path(r, at, path);
}

/* --- hosts --- */

static int read_host(const struct reader *r, const config_setting_t *group, struct grid_host *host)
{
    const config_setting_t *at = member(group, "name");
    struct host checked;

    host->slots = 1;
    if (settings_read(&r->s, group, host_members, host) < 0)
        return r->s.err->code;
    if (host_name_take(&checked, host->name, strlen(host->name), r->s.err) < 0 ||
        strchr(host->name, '@'))
        return settings_fail(&r->s, at,
                             "expected a name, like node1; no user in it: that is the "
                             "site's 'user'");
    if (strcasecmp(host->name, "gateway") == 0)
        return settings_fail(&r->s, at, "so the gateway of the site is called; expected another");
    host->line = config_setting_source_line(at);
    return CW_OK;
}

static uint32_t find_host(const struct grid_site *site, const char *name)
{
    for (uint32_t i = 0; i < site->hosts; i++)
        if (strcasecmp(site->host[i].name, name) == 0)
            return i;
    return HOSTS_NONE;
}

static int read_hosts(const struct reader *r, const config_setting_t *list, struct grid_site *site)
{
    uint32_t count = (uint32_t)config_setting_length(list);

    if (count == 0 || count > HOSTS_MAX)
        return settings_fail(&r->s, list, "%u hosts; expected 1 to %d", count, HOSTS_MAX);
    site->host = calloc(count, sizeof(*site->host));
    if (!site->host)
        return cw_err_set(r->s.err, CW_ENOMEM, "%s: no memory for it", r->s.file);
    for (uint32_t i = 0; i < count; i++) {
        const config_setting_t *at = config_setting_get_elem(list, i);
        uint32_t same;

        if (read_host(r, at, &site->host[i]) < 0)
            return r->s.err->code;
        same = find_host(site, site->host[i].name);
        if (same != HOSTS_NONE)
            return settings_fail(&r->s, member(at, "name"),
                                 "that is also the host of line %u; expected another name",
                                 site->host[same].line);
        site->hosts++;
    }
    return CW_OK;
}

/* --- services --- */

static int find_service_host(const struct reader *r, const config_setting_t *group,
                             const struct grid_site *site, struct grid_service *service)
{
    const config_setting_t *at = member(group, "host");

    service->host = find_host(site, config_setting_get_string(at));
    if (service->host == HOSTS_NONE)
        return settings_fail(&r->s, at, "site %s has no such host; expected one of its 'hosts'",
                             site->name);
    return CW_OK;
}

static int read_ckptsrv(const struct reader *r, const config_setting_t *at, struct grid_site *site)
{
    struct grid_service *server = &site->ckptsrv;

    server->host = HOSTS_NONE;
    if (!at)
        return CW_OK;
    if (settings_read(&r->s, at, ckptsrv_members, server) < 0 ||
        find_service_host(r, at, site, server) < 0 ||
        check_path(r, member(at, "dir"), server->dir) < 0)
        return r->s.err->code;
    if (server->host == site->relay.host && server->port >= site->relay.port &&
        server->port <= site->relay.port + GRID_DOORS_MAX)
        return settings_fail(&r->s, member(at, "port"),
                             "the relay uses the ports %u to %u of this host; expected another",
                             site->relay.port, site->relay.port + GRID_DOORS_MAX);
    return CW_OK;
}

/* --- sites --- */

static int read_gateway(const struct reader *r, const config_setting_t *group,
                        struct grid_site *site)
{
    const config_setting_t *gateway = member(group, "gateway");
    const config_setting_t *published = member(group, "published");
    struct cw_err why;

    if (!gateway && !published)
        return settings_fail(&r->s, group,
                             "'gateway' is missing, or 'published' of a site that "
                             "lets nothing in");
    if (gateway && published)
        return settings_fail(&r->s, published,
                             "the site has a 'gateway', too; expected one of the two");
    if (!gateway)
        return CW_OK;
    if (ssh_hop_parse(&site->gateway, config_setting_get_string(gateway), &why) < 0)
        return settings_fail(&r->s, gateway, "expected [USER@]HOST[:PORT]");
    if (!site->gateway.user[0])
        strcpy(site->gateway.user, site->user);
    return CW_OK;
}

static uint32_t find_site(const struct grid *grid, const char *name)
{
    for (uint32_t i = 0; i < grid->sites; i++)
        if (strcasecmp(grid->site[i].name, name) == 0)
            return i;
    return GRID_OUTSIDE;
}

/* All but the names of other sites. */
static int read_site(const struct reader *r, const config_setting_t *group, struct grid_site *site)
{
    const config_setting_t *name = member(group, "name"), *relay = member(group, "relay");
    uint32_t same;

    site->published_at = GRID_OUTSIDE;
    if (settings_read(&r->s, group, site_members, site) < 0)
        return r->s.err->code;
    same = find_site(r->grid, site->name);
    if (same != GRID_OUTSIDE)
        return settings_fail(&r->s, name, "that is also the site of line %u; expected another name",
                             r->grid->site[same].line);
    site->line = config_setting_source_line(name);
    r->grid->sites++;
    if (site->user[0] && !ssh_is_user(site->user))
        return settings_fail(&r->s, member(group, "user"),
                             "expected a user's name: letters, digits, '.', '_', '-'");
    if (check_key(r, member(group, "key"), site->key) < 0 || read_gateway(r, group, site) < 0 ||
        read_hosts(r, member(group, "hosts"), site) < 0)
        return r->s.err->code;
    if (!relay)
        return settings_fail(&r->s, group,
                             "'relay' is missing; expected a group, { name = value; ... }");
    if (settings_read(&r->s, relay, relay_members, &site->relay) < 0 ||
        find_service_host(r, relay, site, &site->relay) < 0 ||
        read_ckptsrv(r, member(group, "ckptsrv"), site) < 0)
        return r->s.err->code;
    return check_path(r, member(group, "causeway"), site->causeway);
}

static int read_sites(const struct reader *r, const config_setting_t *list)
{
    uint32_t count = (uint32_t)config_setting_length(list);
    struct grid *grid = r->grid;

    if (count == 0 || count > GRID_SITES_MAX)
        return settings_fail(&r->s, list, "%u sites; expected 1 to %u", count, GRID_SITES_MAX);
    grid->site = calloc(count, sizeof(*grid->site));
    if (!grid->site)
        return cw_err_set(r->s.err, CW_ENOMEM, "%s: no memory for it", r->s.file);
    for (uint32_t i = 0; i < count; i++)
        if (read_site(r, config_setting_get_elem(list, i), &grid->site[i]) < 0)
            return r->s.err->code;
    return CW_OK;
}

/* --- what sites say of others --- */

static int find_named(const struct reader *r, const config_setting_t *at, uint32_t *site)
{
    *site = grid_find(r->grid, config_setting_get_string(at));
    if (*site == GRID_OUTSIDE)
        return settings_fail(&r->s, at, "there is no such site; expected the name of one");
    return CW_OK;
}

static int read_reaches(const struct reader *r, const config_setting_t *group,
                        bool reaches[GRID_SITES_MAX])
{
    const config_setting_t *list = member(group, "reaches");

    for (uint32_t i = 0; i < r->grid->sites; i++)
        reaches[i] = !list && r->grid->site[i].gateway.host[0];
    for (int i = 0; list && i < config_setting_length(list); i++) {
        const config_setting_t *name = config_setting_get_elem(list, (unsigned)i);
        uint32_t site;

        if (find_named(r, name, &site) < 0)
            return r->s.err->code;
        if (!r->grid->site[site].gateway.host[0])
            return settings_fail(&r->s, name,
                                 "site %s has no gateway that could be reached; expected sites "
                                 "with one",
                                 r->grid->site[site].name);
        reaches[site] = true;
    }
    return CW_OK;
}

/* Sites that are published at each other, round. */
static bool is_circle(const struct grid *grid, uint32_t site)
{
    uint32_t at = grid->site[site].published_at;

    for (uint32_t i = 0; i < grid->sites && at != GRID_OUTSIDE && at != site; i++)
        at = grid->site[at].published_at;
    return at == site;
}

static int check_published(const struct reader *r, const config_setting_t *at, uint32_t site)
{
    const struct grid *grid = r->grid;
    const struct grid_site *own = &grid->site[site];
    const struct grid_site *there = &grid->site[own->published_at];

    if (is_circle(grid, site))
        return settings_fail(&r->s, member(at, "at"), "%s: one of them needs a gateway",
                             there == own ? "a site cannot be published at itself"
                                          : "these sites are published at each other in a circle");
    if (!there->gateway.host[0])
        return settings_fail(&r->s, member(at, "at"),
                             "that site has no gateway, and is published itself at %s; expected a "
                             "site with a gateway",
                             grid->site[there->published_at].name);
    for (uint32_t i = 0; i < site; i++)
        if (grid->site[i].published_at == own->published_at &&
            grid->site[i].published_port == own->published_port)
            return settings_fail(&r->s, member(at, "port"),
                                 "site %s is published at this port of %s; expected another",
                                 grid->site[i].name, there->name);
    return CW_OK;
}

static int read_others(const struct reader *r, const config_setting_t *list)
{
    struct grid *grid = r->grid;

    for (uint32_t i = 0; i < grid->sites; i++) {
        const config_setting_t *site = config_setting_get_elem(list, i);
        const config_setting_t *at = member(site, "published");

        if (read_reaches(r, site, grid->site[i].reaches) < 0 ||
            (at && (settings_read(&r->s, at, published_members, &grid->site[i]) < 0 ||
                    find_named(r, member(at, "at"), &grid->site[i].published_at) < 0)))
            return r->s.err->code;
    }
    for (uint32_t i = 0; i < grid->sites; i++)
        if (grid->site[i].published_at != GRID_OUTSIDE &&
            check_published(r, member(config_setting_get_elem(list, i), "published"), i) < 0)
            return r->s.err->code;
    return CW_OK;
}

/* --- as a whole --- */

static int check_hosts(const struct grid *grid, struct cw_err *err)
{
    uint32_t hosts = 0, slots = 0;

    for (uint32_t i = 0; i < grid->sites; i++) {
        hosts += grid->site[i].hosts;
        for (uint32_t j = 0; j < grid->site[i].hosts; j++)
            slots += grid->site[i].host[j].slots;
    }
    if (hosts > HOSTS_MAX)
        return cw_err_set(err, CW_EINVAL, "%u hosts at all sites; expected at most %d", hosts,
                          HOSTS_MAX);
    if (slots == 0)
        return cw_err_set(err, CW_EINVAL,
                          "no host has a slot for a rank: all 'slots' are 0; expected one host "
                          "with slots = 1, or more");
    return CW_OK;
}

static int check_grid(const struct grid *grid, struct cw_err *err)
{
    if (check_hosts(grid, err) < 0)
        return err->code;
    for (uint32_t a = 0; a < grid->sites; a++)
        for (uint32_t b = a + 1; b < grid->sites; b++)
            if (!routes_exist(grid, a, b) && !routes_exist(grid, b, a))
                return cw_err_set(
                    err, CW_EINVAL,
                    "the sites %.63s (line %u) and %.63s (line %u) cannot reach each other: no "
                    "way over at most %u gateways leads from one to the other, in either "
                    "direction; let one of them reach a gateway that leads there ('reaches'), or "
                    "publish one where the other can log in ('published')",
                    grid->site[a].name, grid->site[a].line, grid->site[b].name, grid->site[b].line,
                    SSH_HOPS_MAX);
    return CW_OK;
}

/* --- the file --- */

static int read_grid(const struct reader *r, const config_setting_t *root)
{
    const config_setting_t *list = member(root, "sites");

    if (settings_read(&r->s, root, grid_members, r->grid) < 0 || read_sites(r, list) < 0 ||
        read_others(r, list) < 0 || read_reaches(r, root, r->grid->reaches) < 0)
        return r->s.err->code;
    return check_grid(r->grid, r->s.err) < 0 ? cw_err_wrap(r->s.err, "%s", r->s.file) : CW_OK;
}

/* libconfig would open the file. It takes @include at the beginning of a line alone. */
static int refuse_include(const char *file, const char *text, struct cw_err *err)
{
    uint32_t line = 1;

    for (;; line++) {
        text += strspn(text, " \t");
        if (strncmp(text, INCLUDE, strlen(INCLUDE)) == 0)
            return cw_err_set(err, CW_EINVAL,
                              "%s, line %u: " INCLUDE ": a grid file is one file; expected "
                              "settings, like name = \"demo\";",
                              file, line);
        text = strchr(text, '\n');
        if (!text)
            return CW_OK;
        text++;
    }
}

int grid_file_parse(struct grid *grid, const char *file, const char *text, const char *home,
                    struct cw_err *err)
{
    struct reader r = {.s = {.file = file, .err = err}, .home = home, .grid = grid};
    config_t config;

    *grid = (struct grid){0};
    if (refuse_include(file, text, err) < 0)
        return err->code;
    config_init(&config);
    err->code = CW_OK;
    if (!config_read_string(&config, text))
        cw_err_set(
            err, CW_EINVAL,
            "%s, line %d: %s; expected settings as libconfig has them, like name = \"demo\";", file,
            config_error_line(&config), config_error_text(&config));
    else if (read_grid(&r, config_root_setting(&config)) < 0)
        grid_free(grid);
    config_destroy(&config);
    return err->code;
}

int grid_file_read(struct grid *grid, const char *file, struct cw_err *err)
{
    char *text;
    size_t size;

    *grid = (struct grid){0};
    if (cw_file_read(file, GRID_FILE_MAX, &text, &size, err) < 0)
        return cw_err_wrap(err, "grid file");
    if (strlen(text) != size)
        cw_err_set(err, CW_EINVAL, "%s: expected a text file, but it has a zero byte at byte %zu",
                   file, strlen(text));
    else
        grid_file_parse(grid, file, text, cw_home(), err);
    free(text);
    return err->code;
}
