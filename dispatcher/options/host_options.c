#include "dispatcher/options/host_options.h"
#include "dispatcher/hosts/host_files.h"
#include "dispatcher/hosts/slurm.h"
#include "dispatcher/wire/stage_program.h"

#include <stdio.h>
#include <string.h>

static int add_hosts(void *list, const char *value, struct cw_err *err)
{
    return host_list_add_option(list, value, err);
}

#define AT(field) offsetof(struct host_options, field)

const struct cw_option host_list_options[] = {
    {"host", .argument = "HOST[:SLOTS],...", CW_OPTION_CALL, AT(list), .take = add_hosts,
     .help = "run on these hosts, with so many slots for ranks (default: one, or their cores where "
             "the job has more ranks); may be given again (default: the hosts of a Slurm "
             "allocation, if it has more than one; otherwise "
             "this machine alone)"},
    {"hostfile", .argument = "FILE", CW_OPTION_TEXT, AT(hostfile),
     .help = "the same from a file: a line HOST[:SLOTS], or HOST slots=N max_slots=N, for each"},
    {0}};

const struct cw_option host_launch_options[] = {
    {"launcher", .argument = "ssh|srun|COMMAND", CW_OPTION_TEXT, AT(launcher),
     .help = "starts the nodes (default ssh)"},
    {"launcher-args", .argument = "TEXT", CW_OPTION_TEXT, AT(launcher_args),
     .help = "words for it"},
    {"agent", .argument = "PATH", CW_OPTION_TEXT, AT(causeway),
     .help = "causeway on the hosts (default: the path that it has here)"},
    {0}};

const struct cw_option host_options[] = {
    {"rankfile", .argument = "FILE", CW_OPTION_TEXT, AT(rankfile),
     .help = "the slot of each rank: lines rank R=HOST slot=S"},
    {"ppn", .argument = "N", CW_OPTION_NUMBER, AT(placing.ppn), 1, HOST_SLOTS_MAX,
     .help = "ranks on each host (default: as many as it has slots)"},
    {"map-by", .argument = "slot|node|site", CW_OPTION_WORD, AT(placing.map),
     .help =
         "fill one host after the other, or take hosts in turn, or give each site of a grid its "
         "part (default slot)"},
    {"oversubscribe", .at = AT(placing.oversubscribe),
     .help = "ranks may share slots when there are too few"},
    {"spares", .argument = "N", CW_OPTION_NUMBER, AT(spares), 0, HOSTS_MAX - 1,
     .help = "the last N hosts get no ranks before others are lost"},
    {"host-timeout", .argument = "TIME", CW_OPTION_TIME, AT(timeout_ns), HOST_TIMEOUT_NS_MIN,
     HOST_TIMEOUT_NS_MAX, "100ms to 1h",
     .help = "a host that is silent for this time is lost, and its ranks are started on others; "
             "without hosts, of this machine's own node, with which the job ends (default 10s; of "
             "a grid 60s)"},
    {"relay-at", .argument = "host|cluster", CW_OPTION_TEXT, AT(relay_where),
     .help = "a relay on each host with ranks, or one here for all (default host)"},
    {"ckptsrv", .argument = "HOST,...|all", CW_OPTION_TEXT, AT(ckptsrv),
     .help = "the job's own checkpoint servers stand there, also where no ranks are, or on all "
             "hosts; images of ranks go to one on another host (default: one on this machine)"},
    {"stage", .at = AT(stage), .help = "send the programs to the hosts"},
    {"stage-dir", .argument = "DIR", CW_OPTION_TEXT, AT(stage_dir),
     .help = "... below DIR there (default " STAGE_DIR ")"},
    {0}};

void host_options_init(struct host_options *o)
{
    *o = (struct host_options){.launcher = "ssh"};
}

void host_options_free(struct host_options *o)
{
    host_list_free(&o->list);
    rankfile_free(&o->rankfile_read);
}

/* --- all of them --- */

static int check(const struct host_options *o, struct cw_err *err)
{
    if (o->list.count && o->hostfile)
        return cw_err_set(err, CW_EINVAL,
                          "--host and --hostfile both say the hosts: give one of them");
    if (o->rankfile && (o->placing.ppn || o->placing.map))
        return cw_err_set(err, CW_EINVAL, "%s: --rankfile says already which rank is where",
                          o->placing.ppn ? "--ppn" : "--map-by");
    if (o->stage_dir && o->stage_dir[0] != '/')
        return cw_err_set(err, CW_EINVAL, "--stage-dir '%s': expected a path from / on",
                          o->stage_dir);
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

/* An allocation of one host is this machine: no node is needed. */
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

/* Each once; they may be hosts that have no ranks. */
static int add_server(struct host_options *o, const char *name, struct cw_err *err)
{
    uint32_t at;

    if (host_list_add_service(&o->list, name, &at, err) < 0)
        return err->code;
    for (uint32_t i = 0; i < o->ckptsrv_hosts; i++)
        if (o->ckptsrv_host[i] == at)
            return CW_OK;
    if (o->ckptsrv_hosts == CW_IMAGE_SERVERS_MAX)
        return cw_err_set(err, CW_EINVAL, "more than %u hosts", CW_IMAGE_SERVERS_MAX);
    o->ckptsrv_host[o->ckptsrv_hosts++] = at;
    return CW_OK;
}

static int take_servers(struct host_options *o, struct cw_err *err)
{
    char name[HOST_NAME_MAX_BYTES + 2];
    const char *text = o->ckptsrv;

    err->code = CW_OK;
    if (strcmp(text, "all") == 0) {
        for (uint32_t i = 0; i < o->list.count && i < CW_IMAGE_SERVERS_MAX; i++)
            o->ckptsrv_host[o->ckptsrv_hosts++] = i;
        return CW_OK;
    }
    while (err->code == CW_OK && text) {
        const char *comma = strchrnul(text, ',');

        snprintf(name, sizeof(name), "%.*s", (int)(comma - text), text);
        add_server(o, name, err);
        text = *comma ? comma + 1 : NULL;
    }
    return err->code ? cw_err_wrap(err, "--ckptsrv %s", o->ckptsrv) : CW_OK;
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
    return o->ckptsrv ? take_servers(o, err) : CW_OK;
}

int host_options_complete(struct host_options *o, uint32_t ranks, char *(*get)(const char *name),
                          struct cw_err *err)
{
    if (take_relay_at(o, err) < 0 || check(o, err) < 0 || find_hosts(o, get, err) < 0)
        return err->code;
    if (o->stage && !o->stage_dir)
        o->stage_dir = STAGE_DIR;
    if (!o->timeout_ns)
        o->timeout_ns = HOST_TIMEOUT_NS;
    return o->list.count || o->rankfile ? arrange(o, ranks, err) : CW_OK;
}
