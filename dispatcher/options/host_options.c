#include "dispatcher/options/host_options.h"
#include "common/frame.h"
#include "common/parse.h"
#include "dispatcher/hosts/host_files.h"
#include "dispatcher/hosts/slurm.h"
#include "dispatcher/stage/stage_program.h"

#include <string.h>

static const struct {
    const char *name; /* with the two dashes */
    int has_arg;
} table[HOST_OPTIONS] = {
    [HOST_OPTION_HOST] = {"--host", required_argument},
    [HOST_OPTION_HOSTFILE] = {"--hostfile", required_argument},
    [HOST_OPTION_RANKFILE] = {"--rankfile", required_argument},
    [HOST_OPTION_PPN] = {"--ppn", required_argument},
    [HOST_OPTION_MAP_BY] = {"--map-by", required_argument},
    [HOST_OPTION_OVERSUBSCRIBE] = {"--oversubscribe", no_argument},
    [HOST_OPTION_SPARES] = {"--spares", required_argument},
    [HOST_OPTION_LAUNCHER] = {"--launcher", required_argument},
    [HOST_OPTION_LAUNCHER_ARGS] = {"--launcher-args", required_argument},
    [HOST_OPTION_AGENT] = {"--agent", required_argument},
    [HOST_OPTION_TIMEOUT] = {"--host-timeout", required_argument},
    [HOST_OPTION_RELAY_AT] = {"--relay-at", required_argument},
    [HOST_OPTION_STAGE] = {"--stage", no_argument},
    [HOST_OPTION_STAGE_DIR] = {"--stage-dir", required_argument},
    [HOST_OPTION_CKPTSRV] = {"--ckptsrv", required_argument},
};

const char *host_option_name(enum host_option option)
{
    return table[option].name;
}

void host_options_init(struct host_options *o)
{
    *o = (struct host_options){
        .launcher = "ssh", .timeout_ns = HOST_TIMEOUT_NS, .ckptsrv_host = HOSTS_NONE};
}

void host_options_free(struct host_options *o)
{
    host_list_free(&o->list);
    rankfile_free(&o->rankfile_read);
}

void host_options_list(struct option *list, int first)
{
    for (int i = 0; i < HOST_OPTIONS; i++)
        list[i] = (struct option){table[i].name + 2, table[i].has_arg, NULL, first + i};
}

/* --- one option --- */

static int take_count(uint32_t *count, const char *what, const char *value, uint64_t min,
                      uint64_t max, struct cw_err *err)
{
    uint64_t number;

    if (cw_parse_number(what, value, min, max, &number, err) < 0)
        return err->code;
    *count = (uint32_t)number;
    return CW_OK;
}

static int take_map(struct host_options *o, const char *value, struct cw_err *err)
{
    static const char *const words[] = {
        [PLACEMENT_BY_SLOT] = "slot", [PLACEMENT_BY_NODE] = "node", [PLACEMENT_BY_SITE] = "site"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcmp(value, words[i]) == 0) {
            o->placing.map = (enum placement_map)i;
            return CW_OK;
        }
    return cw_err_set(err, CW_EINVAL, "--map-by '%s': expected slot, node or site", value);
}

static int take_stage_dir(struct host_options *o, const char *value, struct cw_err *err)
{
    o->stage_dir = value;
    if (value[0] == '/')
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--stage-dir '%s': expected a path from / on", value);
}

static int take_timeout(struct host_options *o, const char *value, struct cw_err *err)
{
    if (cw_parse_duration("--host-timeout", value, &o->timeout_ns, err) < 0)
        return err->code;
    if (o->timeout_ns < HOST_TIMEOUT_NS_MIN || o->timeout_ns > HOST_TIMEOUT_NS_MAX)
        return cw_err_set(err, CW_EINVAL, "--host-timeout '%s': expected 100ms to 1h", value);
    return CW_OK;
}

int host_options_take(struct host_options *o, enum host_option option, const char *value,
                      struct cw_err *err)
{
    o->given |= 1u << option;
    if (value && !*value)
        return cw_err_set(err, CW_EINVAL, "%s: the value is empty", table[option].name);
    switch (option) {
    case HOST_OPTION_HOST:
        return host_list_add_option(&o->list, value, err);
    case HOST_OPTION_HOSTFILE:
        o->hostfile = value;
        break;
    case HOST_OPTION_RANKFILE:
        o->rankfile = value;
        break;
    case HOST_OPTION_PPN:
        return take_count(&o->placing.ppn, "--ppn", value, 1, HOST_SLOTS_MAX, err);
    case HOST_OPTION_MAP_BY:
        return take_map(o, value, err);
    case HOST_OPTION_OVERSUBSCRIBE:
        o->placing.oversubscribe = true;
        break;
    case HOST_OPTION_SPARES:
        return take_count(&o->spares, "--spares", value, 0, HOSTS_MAX - 1, err);
    case HOST_OPTION_LAUNCHER:
        o->launcher = value;
        break;
    case HOST_OPTION_LAUNCHER_ARGS:
        o->launcher_args = value;
        break;
    case HOST_OPTION_AGENT:
        o->agent = value;
        break;
    case HOST_OPTION_TIMEOUT:
        return take_timeout(o, value, err);
    case HOST_OPTION_RELAY_AT:
        o->relay_where = value;
        break;
    case HOST_OPTION_STAGE:
        o->stage_dir = o->stage_dir ? o->stage_dir : STAGE_DIR;
        break;
    case HOST_OPTION_STAGE_DIR:
        return take_stage_dir(o, value, err);
    case HOST_OPTION_CKPTSRV:
        o->ckptsrv = value;
        break;
    case HOST_OPTIONS:
        break;
    }
    return CW_OK;
}

/* --- all of them --- */

static bool has(const struct host_options *o, enum host_option option)
{
    return o->given >> option & 1;
}

static int against_each_other(const struct host_options *o, struct cw_err *err)
{
    if (has(o, HOST_OPTION_HOST) && o->hostfile)
        return cw_err_set(err, CW_EINVAL,
                          "--host and --hostfile both say the hosts: give one of them");
    for (int i = HOST_OPTION_PPN; i <= HOST_OPTION_MAP_BY; i++)
        if (o->rankfile && has(o, i))
            return cw_err_set(err, CW_EINVAL, "%s: --rankfile says already which rank is where",
                              table[i].name);
    return CW_OK;
}

/* With a grid it was the name of a site, which is taken already. */
static int take_relay_at(struct host_options *o, struct cw_err *err)
{
    if (!o->relay_where || strcmp(o->relay_where, "host") == 0)
        return CW_OK;
    o->relay_at = RELAY_AT_CLUSTER;
    if (strcmp(o->relay_where, "cluster") == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL,
                      "--relay-at '%s': expected host or cluster, or a site of the grid with -f "
                      "FILE",
                      o->relay_where);
}

/* An allocation of one host is this machine: no agent is needed. */
static int take_allocation(struct host_options *o, char *(*get)(const char *name),
                           struct cw_err *err)
{
    if (host_list_slurm(&o->list, get, err) < 0)
        return cw_err_wrap(err,
                           "the hosts of Slurm's allocation, as there is no --host or --hostfile");
    o->of_slurm = o->list.count > 1;
    if (o->list.count == 1)
        host_list_free(&o->list);
    return CW_OK;
}

static int find_hosts(struct host_options *o, char *(*get)(const char *name), struct cw_err *err)
{
    if (o->hostfile) {
        if (host_list_read(&o->list, o->hostfile, err) < 0)
            return cw_err_wrap(err, "--hostfile");
        if (o->list.count == 0)
            return cw_err_set(err, CW_EINVAL, "--hostfile %s: there is no host in it", o->hostfile);
    }
    return o->list.count ? CW_OK : take_allocation(o, get, err);
}

/* What each host is for. */
static int arrange(struct host_options *o, uint32_t ranks, struct cw_err *err)
{
    if (o->rankfile && rankfile_read(&o->rankfile_read, o->rankfile, ranks, &o->list, err) < 0)
        return cw_err_wrap(err, "--rankfile");
    if (o->rankfile)
        o->placing.rankfile = &o->rankfile_read;
    if (host_list_set_spares(&o->list, o->spares, err) < 0)
        return err->code;
    return o->ckptsrv ? host_list_add_service(&o->list, o->ckptsrv, &o->ckptsrv_host, err) : CW_OK;
}

int host_options_complete(struct host_options *o, uint32_t ranks, char *(*get)(const char *name),
                          struct cw_err *err)
{
    if (take_relay_at(o, err) < 0 || against_each_other(o, err) < 0 || find_hosts(o, get, err) < 0)
        return err->code;
    if (o->list.count || o->rankfile)
        return arrange(o, ranks, err);
    for (int i = 0; i < HOST_OPTIONS; i++)
        if (has(o, i) && !get("SLURM_JOB_NODELIST"))
            return cw_err_set(err, CW_EINVAL,
                              "%s is for a job on several machines: give --host or --hostfile",
                              table[i].name);
    return CW_OK;
}
