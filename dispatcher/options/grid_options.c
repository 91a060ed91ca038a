#include "dispatcher/options/grid_options.h"
#include "dispatcher/stage/stage_program.h"
#include "tunnels/tunnel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int grid_options_take_restart_at(struct run_options *o, const char *value, struct cw_err *err)
{
    o->restart_at_any_site = strcmp(value, "grid") == 0;
    if (o->restart_at_any_site || strcmp(value, "site") == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--restart-at %s: expected site or grid", value);
}

/* What the grid file says, or what a grid cannot have. */
static const char *against_grid(const struct run_options *o)
{
    static const enum host_option said[] = {HOST_OPTION_HOST,     HOST_OPTION_HOSTFILE,
                                            HOST_OPTION_LAUNCHER, HOST_OPTION_LAUNCHER_ARGS,
                                            HOST_OPTION_AGENT,    HOST_OPTION_CKPTSRV};

    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
        if (o->hosts.given >> said[i] & 1)
            return host_option_name(said[i]);
    if (o->relay_count || o->relays || o->relay_map)
        return o->relay_count ? "--relay" : o->relays ? "--relays" : "--relay-map";
    if (o->key_file || o->image_key_file)
        return o->key_file ? "--key-file" : "--ckpt-key-file";
    if (o->image_server_count || o->image_dir || o->image_bytes_max)
        return o->image_server_count ? "--ckpt-server" : o->image_dir ? "--ckpt-dir" : "--ckpt-max";
    return o->job_dir ? "--job-dir" : NULL;
}

/* For our tunnels: what the user has said in the environment comes before. */
static void set_up_tunnels(const struct grid *grid)
{
    char keys[GRID_KEYS_BYTES], connections[16];

    grid_keys(grid, keys);
    if (keys[0])
        setenv(SSH_KEYS_VARIABLE, keys, 0);
    snprintf(connections, sizeof(connections), "%u", grid->connections);
    if (grid->connections)
        setenv(TUNNEL_CONNECTIONS_VARIABLE, connections, 0);
}

int grid_options_take(struct run_options *o, struct cw_err *err)
{
    const char *against = against_grid(o);

    if (against)
        return cw_err_set(err, CW_EINVAL, "%s: not with -f %s, which says where all is", against,
                          o->grid_file);
    o->grid = calloc(1, sizeof(*o->grid));
    if (!o->grid)
        return cw_err_set(err, CW_ENOMEM, "no memory for the grid");
    if (grid_job_open(o->grid, o->grid_file, o->here, err) < 0 ||
        grid_job_add_hosts(o->grid, &o->hosts.list, err) < 0)
        return err->code;
    if (o->hosts.relay_where && grid_job_keep_logs_at(o->grid, o->hosts.relay_where, err) < 0)
        return err->code;
    o->hosts.relay_where = NULL; /* no more to be taken for a word of host_options.h */
    set_up_tunnels(&o->grid->grid);
    o->hosts.launcher_args = o->grid->ssh_args;
    if (!(o->hosts.given >> HOST_OPTION_TIMEOUT & 1))
        o->hosts.timeout_ns = HOST_TIMEOUT_GRID_NS;
    if (!o->hosts.stage_dir)
        o->hosts.stage_dir = STAGE_DIR;
    return CW_OK;
}
