#include "dispatcher/grid/grid_file.h"
#include "common/home.h"
#include "common/whole_file.h"
#include "dispatcher/grid/grid_check.h"
#include "dispatcher/grid/settings.h"
#include "tunnels/stripe_cut.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define FORBIDDEN "\"'\\%$" /* in names of files */
#define INCLUDE "@include"

struct reader {
    struct settings s; /* has the error */
    const char *home;
    struct grid *grid;
};

/* --- names --- */

static int read_name(const struct reader *r, const config_setting_t *group, char *name)
{
    config_setting_t *at;

    if (settings_need(&r->s, group, "name", SETTINGS_TEXT, &at) < 0 ||
        settings_text(&r->s, group, "name", name, GRID_NAME_MAX) < 0)
        return r->s.err->code;
    if (name[0] == '-' || name[strspn(name, LETTERS "-_")])
        return settings_fail(&r->s, at, "expected letters, digits, '-' and '_', no '-' first");
    return CW_OK;
}

/* Names of files go into commands and configurations, where some letters mean something else. */
static int check_path(const struct reader *r, const config_setting_t *at, const char *path)
{
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f || strchr(FORBIDDEN, *c))
            return settings_fail(
                &r->s, at, "expected a file's name without control characters and %s", FORBIDDEN);
    if (path[0] != '/')
        return settings_fail(&r->s, at, "expected a name that begins with '/'");
    return CW_OK;
}

/* A file on the machines of the site, whose home directory is not known here. */
static int read_far_path(const struct reader *r, const config_setting_t *group, const char *name,
                         char *path)
{
    if (settings_text(&r->s, group, name, path, GRID_PATH_MAX) < 0)
        return r->s.err->code;
    return path[0] ? check_path(r, config_setting_get_member(group, name), path) : CW_OK;
}

static int read_key(const struct reader *r, const config_setting_t *site, char *path)
{
    const config_setting_t *at = config_setting_get_member(site, "key");
    char text[GRID_PATH_MAX + 1];

    if (settings_text(&r->s, site, "key", text, GRID_PATH_MAX) < 0)
        return r->s.err->code;
    if (strncmp(text, "~/", 2) != 0)
        strcpy(path, text);
    else if (strlen(r->home) + strlen(text + 1) <= GRID_PATH_MAX)
        strcpy(stpcpy(path, r->home), text + 1);
    else
        return settings_fail(&r->s, at, "with the home directory %.64s... it is too long", r->home);
    return path[0] ? check_path(r, at, path) : CW_OK;
}

/* --- hosts --- */

static int read_host(const struct reader *r, const config_setting_t *group, struct grid_host *host)
{
    static const char *const known[] = {"name", "slots", NULL};
    struct host checked;
    config_setting_t *at;

    if (settings_only(&r->s, group, known) < 0 ||
        settings_need(&r->s, group, "name", SETTINGS_TEXT, &at) < 0 ||
        settings_text(&r->s, group, "name", host->name, HOST_NAME_MAX_BYTES) < 0)
        return r->s.err->code;
    if (host_name_take(&checked, host->name, strlen(host->name), r->s.err) < 0 ||
        strchr(host->name, '@'))
        return settings_fail(&r->s, at,
                             "expected a name, like node1; no user in it: that is the "
                             "site's 'user'");
    if (strcasecmp(host->name, "gateway") == 0)
        return settings_fail(&r->s, at, "so the gateway of the site is called; expected another");
    host->line = config_setting_source_line(at);
    host->slots = 1;
    return settings_number(&r->s, group, "slots", 0, HOST_SLOTS_MAX, &host->slots);
}

static uint32_t find_host(const struct grid_site *site, const char *name)
{
    for (uint32_t i = 0; i < site->hosts; i++)
        if (strcasecmp(site->host[i].name, name) == 0)
            return i;
    return HOSTS_NONE;
}

static int read_hosts(const struct reader *r, const config_setting_t *group, struct grid_site *site)
{
    config_setting_t *list;
    uint32_t count;

    if (settings_need(&r->s, group, "hosts", SETTINGS_GROUPS, &list) < 0)
        return r->s.err->code;
    count = (uint32_t)config_setting_length(list);
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
            return settings_fail(&r->s, config_setting_get_member(at, "name"),
                                 "that is also the host of line %u; expected another name",
                                 site->host[same].line);
        site->hosts++;
    }
    return CW_OK;
}

/* --- services --- */

static int read_service(const struct reader *r, const config_setting_t *group,
                        const struct grid_site *site, uint32_t port_max,
                        struct grid_service *service)
{
    char name[HOST_NAME_MAX_BYTES + 1];
    config_setting_t *at, *number;
    uint32_t port = 0;

    if (settings_need(&r->s, group, "host", SETTINGS_TEXT, &at) < 0 ||
        settings_need(&r->s, group, "port", SETTINGS_NUMBER, &number) < 0 ||
        settings_text(&r->s, group, "host", name, HOST_NAME_MAX_BYTES) < 0 ||
        settings_number(&r->s, group, "port", 1, port_max, &port) < 0 ||
        settings_text(&r->s, group, "options", service->options, GRID_OPTIONS_MAX) < 0)
        return r->s.err->code;
    service->port = (uint16_t)port;
    service->host = find_host(site, name);
    if (service->host == HOSTS_NONE)
        return settings_fail(&r->s, at, "site %s has no such host; expected one of its 'hosts'",
                             site->name);
    return CW_OK;
}

static int read_relay(const struct reader *r, const config_setting_t *group, struct grid_site *site)
{
    static const char *const known[] = {"host", "port", "options", NULL};
    config_setting_t *relay;

    if (settings_need(&r->s, group, "relay", SETTINGS_GROUP, &relay) < 0 ||
        settings_only(&r->s, relay, known) < 0)
        return r->s.err->code;
    return read_service(r, relay, site, UINT16_MAX - GRID_DOORS_MAX, &site->relay);
}

static int read_ckptsrv(const struct reader *r, const config_setting_t *group,
                        struct grid_site *site)
{
    static const char *const known[] = {"host", "port", "dir", "options", NULL};
    struct grid_service *server = &site->ckptsrv;
    config_setting_t *at;

    server->host = HOSTS_NONE;
    if (settings_find(&r->s, group, "ckptsrv", SETTINGS_GROUP, &at) < 0)
        return r->s.err->code;
    if (!at)
        return CW_OK;
    if (settings_only(&r->s, at, known) < 0 || read_service(r, at, site, UINT16_MAX, server) < 0 ||
        read_far_path(r, at, "dir", server->dir) < 0)
        return r->s.err->code;
    if (server->host == site->relay.host && server->port >= site->relay.port &&
        server->port <= site->relay.port + GRID_DOORS_MAX)
        return settings_fail(&r->s, config_setting_get_member(at, "port"),
                             "the relay uses the ports %u to %u of this host; expected another",
                             site->relay.port, site->relay.port + GRID_DOORS_MAX);
    return CW_OK;
}

/* --- sites --- */

static int read_user(const struct reader *r, const config_setting_t *group, char *user)
{
    if (settings_text(&r->s, group, "user", user, SSH_USER_MAX) < 0)
        return r->s.err->code;
    if (user[0] && !ssh_is_user(user))
        return settings_fail(&r->s, config_setting_get_member(group, "user"),
                             "expected a user's name: letters, digits, '.', '_', '-'");
    return CW_OK;
}

static int read_gateway(const struct reader *r, const config_setting_t *group,
                        struct grid_site *site)
{
    char text[SSH_USER_MAX + SSH_HOST_MAX + 16];
    config_setting_t *gateway, *published;
    struct cw_err why;

    if (settings_find(&r->s, group, "published", SETTINGS_GROUP, &published) < 0 ||
        settings_find(&r->s, group, "gateway", SETTINGS_TEXT, &gateway) < 0 ||
        settings_text(&r->s, group, "gateway", text, sizeof(text) - 1) < 0)
        return r->s.err->code;
    if (!gateway && !published)
        return settings_fail(&r->s, group,
                             "'gateway' is missing, or 'published' of a site that "
                             "lets nothing in");
    if (gateway && published)
        return settings_fail(&r->s, published,
                             "the site has a 'gateway', too; expected one of the two");
    if (!gateway)
        return CW_OK;
    if (ssh_hop_parse(&site->gateway, text, &why) < 0)
        return settings_fail(&r->s, gateway, "expected [USER@]HOST[:PORT]");
    if (!site->gateway.user[0])
        strcpy(site->gateway.user, site->user);
    return CW_OK;
}

/* All but the names of other sites. */
static int read_site(const struct reader *r, const config_setting_t *group, struct grid_site *site)
{
    static const char *const known[] = {"name",      "user",    "key",   "gateway",
                                        "published", "hosts",   "relay", "ckptsrv",
                                        "causeway",  "reaches", NULL};
    site->published_at = GRID_OUTSIDE;
    if (settings_only(&r->s, group, known) < 0 || read_name(r, group, site->name) < 0)
        return r->s.err->code;
    site->line = config_setting_source_line(config_setting_get_member(group, "name"));
    if (read_user(r, group, site->user) < 0 || read_key(r, group, site->key) < 0 ||
        read_gateway(r, group, site) < 0 || read_hosts(r, group, site) < 0 ||
        read_relay(r, group, site) < 0 || read_ckptsrv(r, group, site) < 0)
        return r->s.err->code;
    return read_far_path(r, group, "causeway", site->causeway);
}

static uint32_t find_site(const struct grid *grid, const char *name)
{
    for (uint32_t i = 0; i < grid->sites; i++)
        if (strcasecmp(grid->site[i].name, name) == 0)
            return i;
    return GRID_OUTSIDE;
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
    for (uint32_t i = 0; i < count; i++) {
        const config_setting_t *at = config_setting_get_elem(list, i);
        char name[GRID_NAME_MAX + 1];
        uint32_t same;

        if (read_name(r, at, name) < 0)
            return r->s.err->code;
        same = find_site(grid, name);
        if (same != GRID_OUTSIDE)
            return settings_fail(&r->s, config_setting_get_member(at, "name"),
                                 "that is also the site of line %u; expected another name",
                                 grid->site[same].line);
        grid->sites++;
        if (read_site(r, at, &grid->site[i]) < 0)
            return r->s.err->code;
    }
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
    config_setting_t *list;

    if (settings_find(&r->s, group, "reaches", SETTINGS_NAMES, &list) < 0)
        return r->s.err->code;
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
        return settings_fail(&r->s, config_setting_get_member(at, "at"),
                             "%s: one of them needs a gateway",
                             there == own ? "a site cannot be published at itself"
                                          : "these sites are published at each other in a circle");
    if (!there->gateway.host[0])
        return settings_fail(&r->s, config_setting_get_member(at, "at"),
                             "that site has no gateway, and is published itself at %s; expected a "
                             "site with a gateway",
                             grid->site[there->published_at].name);
    for (uint32_t i = 0; i < site; i++)
        if (grid->site[i].published_at == own->published_at &&
            grid->site[i].published_port == own->published_port)
            return settings_fail(&r->s, config_setting_get_member(at, "port"),
                                 "site %s is published at this port of %s; expected another",
                                 grid->site[i].name, there->name);
    return CW_OK;
}

static int read_published(const struct reader *r, const config_setting_t *at,
                          struct grid_site *site)
{
    static const char *const known[] = {"at", "port", NULL};
    config_setting_t *name, *number;
    uint32_t port = 0;

    if (settings_only(&r->s, at, known) < 0 ||
        settings_need(&r->s, at, "at", SETTINGS_TEXT, &name) < 0 ||
        settings_need(&r->s, at, "port", SETTINGS_NUMBER, &number) < 0 ||
        settings_number(&r->s, at, "port", 1, UINT16_MAX, &port) < 0 ||
        find_named(r, name, &site->published_at) < 0)
        return r->s.err->code;
    site->published_port = (uint16_t)port;
    return CW_OK;
}

static int read_others(const struct reader *r, const config_setting_t *list)
{
    struct grid *grid = r->grid;

    for (uint32_t i = 0; i < grid->sites; i++) {
        const config_setting_t *site = config_setting_get_elem(list, i);
        const config_setting_t *at = config_setting_get_member(site, "published");

        if (read_reaches(r, site, grid->site[i].reaches) < 0 ||
            (at && read_published(r, at, &grid->site[i]) < 0))
            return r->s.err->code;
    }
    for (uint32_t i = 0; i < grid->sites; i++)
        if (grid->site[i].published_at != GRID_OUTSIDE &&
            check_published(
                r, config_setting_get_member(config_setting_get_elem(list, i), "published"), i) < 0)
            return r->s.err->code;
    return CW_OK;
}

/* --- the file --- */

static int read_grid(const struct reader *r, const config_setting_t *root)
{
    static const char *const known[] = {"name", "sites", "reaches", "connections", NULL};
    config_setting_t *list;

    if (settings_only(&r->s, root, known) < 0 || read_name(r, root, r->grid->name) < 0 ||
        settings_need(&r->s, root, "sites", SETTINGS_GROUPS, &list) < 0 ||
        read_sites(r, list) < 0 || read_others(r, list) < 0 ||
        read_reaches(r, root, r->grid->reaches) < 0 ||
        settings_number(&r->s, root, "connections", 1, STRIPES_MAX, &r->grid->connections) < 0)
        return r->s.err->code;
    if (grid_check(r->grid, r->s.err) < 0)
        return cw_err_wrap(r->s.err, "%s", r->s.file);
    return CW_OK;
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
