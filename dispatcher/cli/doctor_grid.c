#include "dispatcher/cli/doctor_grid.h"
#include "common/home.h"
#include "common/keyfile.h"
#include "common/together.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/doctor/gate_check.h"
#include "dispatcher/doctor/grid_probe.h"
#include "dispatcher/grid/grid_file.h"
#include "dispatcher/grid/grid_state.h"
#include "dispatcher/grid/ssh_config.h"
#include "dispatcher/services/plan.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull

struct grid_host_name {
    char text[SSH_CONFIG_NAME_MAX + 1];
};

struct examination {
    struct grid grid;
    uint32_t here;
    uint64_t time_ns;
    char ssh_args[GRID_SSH_ARGS_BYTES];
    uint8_t key[CW_KEY_SIZE];
    char keys[GRID_KEYS_BYTES]; /* for tunnels */
    struct gate_check gates;
    struct host_checks hosts; /* of all sites, with each of the next ones */
    struct grid_host_name *name;
    uint32_t *site;
    uint32_t first[GRID_SITES_MAX]; /* host of each site */
    bool open[GRID_SITES_MAX];      /* its gateways let us in */
    struct findings of_site[GRID_SITES_MAX];
    struct grid_ways ways;
};

/* --- its begin --- */

static int read_grid(struct examination *e, const char *file, const char *here, struct cw_err *err)
{
    char machine[HOST_NAME_MAX_BYTES + 1] = "";

    gethostname(machine, sizeof(machine) - 1);
    if (grid_file_read(&e->grid, file, err) < 0 ||
        grid_here(&e->grid, here, machine, &e->here, err) < 0 ||
        grid_state_ssh_args(&e->grid, e->here, NULL, e->ssh_args, err) < 0)
        return err->code;
    return CW_OK;
}

/* For our tunnels, and those of hosts, whose home directories may be others. */
static void take_login_keys(struct examination *e)
{
    for (uint32_t i = 0; i < e->grid.sites; i++)
        plan_at_home(e->grid.site[i].key, cw_home());
    grid_keys(&e->grid, e->keys);
    if (e->keys[0])
        setenv(SSH_KEYS_VARIABLE, e->keys, 1);
}

/* The grid's key; it may be that none was made yet. */
static int read_key(struct examination *e, struct cw_err *err)
{
    char path[PATH_MAX];

    if (grid_state_path(&e->grid, GRID_STATE_KEY, path, err) < 0)
        return err->code;
    if (cw_key_load(path, e->key, err) == CW_OK)
        e->gates.key = e->key;
    return e->gates.key || err->code == CW_ENOTFOUND ? CW_OK : err->code;
}

static int list_hosts(struct examination *e, struct cw_err *err)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < e->grid.sites; i++)
        count += e->grid.site[i].hosts;
    if (host_checks_init(&e->hosts, count, err) < 0)
        return err->code;
    e->name = calloc(count, sizeof(*e->name));
    e->site = calloc(count, sizeof(*e->site));
    if (!e->name || !e->site)
        return cw_err_set(err, CW_ENOMEM, "no memory for %u hosts", count);
    for (uint32_t i = 0, at = 0; i < e->grid.sites; i++) {
        e->first[i] = at;
        for (uint32_t j = 0; j < e->grid.site[i].hosts; j++, at++) {
            snprintf(e->name[at].text, sizeof(e->name[at].text), SSH_CONFIG_HOST,
                     e->grid.site[i].host[j].name, e->grid.site[i].name);
            e->hosts.check[at].name = e->name[at].text;
            if (e->grid.site[i].causeway[0])
                e->hosts.check[at].causeway = e->grid.site[i].causeway;
            e->site[at] = i;
        }
    }
    return CW_OK;
}

static int begin(struct examination *e, const char *file, struct cw_err *err)
{
    take_login_keys(e);
    if (read_key(e, err) < 0 || list_hosts(e, err) < 0)
        return err->code;
    e->hosts.config.launcher = "ssh";
    e->hosts.config.launcher_args = e->ssh_args;
    e->hosts.config.time_ns = e->time_ns;
    e->hosts.config.ssh_keys = e->keys[0] ? e->keys : NULL;
    e->gates.grid = &e->grid;
    e->gates.here = e->here;
    e->gates.file = file;
    e->gates.ssh_config = e->ssh_args + strlen("-F ");
    e->gates.time_ms = (uint32_t)((e->time_ns ? e->time_ns : DOCTOR_GRID_OPEN_NS) / NS_IN_MS);
    return CW_OK;
}

/* --- what is done for each, several at a time --- */

static void check_gate(void *ctx, uint32_t site)
{
    struct examination *e = ctx;

    e->open[site] = gate_check(&e->gates, site, &e->of_site[site]);
}

static void check_host(void *ctx, uint32_t host)
{
    struct examination *e = ctx;

    if (e->open[e->site[host]])
        host_check_begin(&e->hosts.check[host]);
}

static void probe_within(void *ctx, uint32_t host)
{
    grid_probe_within(ctx, host);
}

/* --- all of it --- */

static void check_all(struct examination *e)
{
    struct grid_probe probe = {.grid = &e->grid,
                               .here = e->here,
                               .check = e->hosts.check,
                               .site = e->site,
                               .first = e->first,
                               .time_ms = e->gates.time_ms,
                               .ways = &e->ways,
                               .of_site = e->of_site,
                               .of_machine = &e->hosts.findings};

    cw_together(e->grid.sites, e->grid.sites, check_gate, e);
    cw_together(e->hosts.count, DOCTOR_GRID_HOSTS_MAX, check_host, e);
    cw_together(e->hosts.count, DOCTOR_GRID_HOSTS_MAX, probe_within, &probe);
    grid_probe_between(&probe);
    host_checks_compare(&e->hosts);
}

/* Returns whether something is missing. */
static bool print_all(struct examination *e)
{
    bool missing = false;

    for (uint32_t i = 0; i < e->grid.sites; i++) {
        missing |= doctor_print(e->grid.site[i].name, &e->of_site[i]);
        for (uint32_t j = 0; j < e->grid.site[i].hosts; j++)
            missing |= doctor_print_host(&e->hosts.check[e->first[i] + j]);
    }
    missing |= doctor_print("this machine", &e->hosts.findings);
    putchar('\n');
    grid_ways_draw(&e->ways, &e->grid, e->here, stdout);
    return missing;
}

static void release(struct examination *e)
{
    host_checks_end(&e->hosts, DOCTOR_GRID_HOSTS_MAX);
    for (uint32_t i = 0; i < e->grid.sites; i++)
        findings_free(&e->of_site[i]);
    sodium_memzero(e->key, sizeof(e->key));
    grid_free(&e->grid);
    free(e->name);
    free(e->site);
    free(e);
}

int doctor_grid(const char *file, const char *here, uint64_t time_ns)
{
    struct examination *e = calloc(1, sizeof(*e));
    struct cw_err err;
    int code = 1;

    if (!e) {
        fputs("causeway doctor: no memory\n", stderr);
        return 1;
    }
    e->time_ns = time_ns;
    if (read_grid(e, file, here, &err) < 0 || begin(e, file, &err) < 0) {
        fprintf(stderr, "causeway doctor: %s\n", err.text);
        code = err.code == CW_EINVAL ? 2 : 1;
    } else {
        check_all(e);
        code = print_all(e);
    }
    release(e);
    return code;
}
