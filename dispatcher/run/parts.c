#include "dispatcher/run/parts.h"
#include "dispatcher/node/children.h"
#include "dispatcher/program/device_path.h"
#include "dispatcher/run/state_copies.h"
#include "dispatcher/servers/image_dir.h"
#include "tunnels/ssh_transport.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS_A_RANK 7 /* PMI, control, watcher, two pipes, two files */
#define DESCRIPTORS_A_HOST 3 /* and more for each rank: the far ends of what it has */
#define SPIN_NS 200000ull    /* where a core has at most SPIN_RANKS_A_CORE ranks; else none spins */
#define SPIN_RANKS_A_CORE 2

static uint64_t choose_spin(const struct run_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->spin_ns != UINT64_MAX)
        return options->spin_ns;
    return options->ranks <= SPIN_RANKS_A_CORE * cores ? SPIN_NS : 0;
}

static void raise_descriptor_limit(uint32_t ranks, uint32_t hosts)
{
    uint32_t a_rank = hosts ? 2 * DESCRIPTORS_A_RANK : DESCRIPTORS_A_RANK;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        limit.rlim_cur < ranks * a_rank + hosts * DESCRIPTORS_A_HOST + 64) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int open_outputs(struct parts *p, const struct parts_events *events, void *ctx,
                        struct cw_err *err)
{
    struct outputs_config config = {.loop = p->loop,
                                    .ranks = p->options->ranks,
                                    .dir = p->options->output_dir,
                                    .tag = p->options->tag_output,
                                    .state = p->state,
                                    .append = p->resumed,
                                    .failed = events->output_failed,
                                    .ctx = ctx};

    config.places = p->places = calloc(config.ranks, sizeof(*p->places));
    if (!p->places)
        return cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", config.ranks);
    p->outputs = outputs_new(&config, err);
    p->log.outputs = p->outputs;
    return p->outputs ? CW_OK : err->code;
}

int parts_make_dir(struct parts *p, struct cw_err *err)
{
    char *path = p->programs.device_path;
    char device[PATH_MAX];

    if (p->dir_made)
        return CW_OK;
    p->dir_made = rundir_make(&p->dir, err) == CW_OK;
    if (!p->dir_made)
        return err->code;
    if (device_path_is_plain(path))
        return CW_OK;
    memcpy(device, path, sizeof(device));
    return rundir_link(&p->dir, device, path, PATH_MAX, err);
}

int parts_open_relays(struct parts *p, const struct parts_events *events, struct cw_err *err)
{
    const struct run_options *o = p->options;
    const struct layout *l = &p->layout;
    struct relays_config config = {.loop = p->loop,
                                   .job_id = p->job_id,
                                   .key = p->state ? p->relay_key : NULL,
                                   .take = p->resumed,
                                   .ranks = o->ranks,
                                   .relays = l->relays,
                                   .addresses = l->running ? l->relay_address : NULL,
                                   .links = l->links,
                                   .key_file = l->key_file,
                                   .returns = o->relay_settings.log_safety != RELAY_LOG_IN_MEMORY,
                                   .copies = o->log_copies > 0,
                                   .homes = l->homes,
                                   .hello_flags = (o->no_log ? 0u : CW_HELLO_LOG) |
                                                  (l->channel ? CW_HELLO_CHANNEL : 0u) |
                                                  (l->images ? CW_HELLO_IMAGES : 0u),
                                   .resume_ms = o->resume_ms,
                                   .orphan_ms = (uint32_t)(o->orphan_ns / 1000000),
                                   .own = events->own_relays,
                                   .own_ctx = events->units_ctx,
                                   .events = events->relays,
                                   .ctx = events->relays_ctx};

    p->relays = relays_new(&config, err);
    return p->relays ? relays_open(p->relays, err) : err->code;
}

static int open_nodes(struct parts *p, const struct parts_events *events, struct cw_err *err)
{
    const struct host_options *o = &p->options->hosts;
    struct nodes_config config = {
        .loop = p->loop,
        .hosts = &o->list,
        .own = "/proc/self/exe",
        .kept_fds = {state_file_lock_fd(p->state), p->relay_kept.state_fd, p->relay_kept.disk_fd},
        .job_id = p->job_id,
        .ranks = p->options->ranks,
        .launcher = o->launcher,
        .launcher_args = o->launcher_args,
        .causeway = o->causeway,
        .timeout_ns = o->timeout_ns,
        .orphan_ns = p->options->orphan_ns,
        .relay_key = p->relay_key,
        .taken = p->resumed ? p->taken : NULL,
        .alive_period_ns = p->options->alive_period_ns,
        .events = events->nodes,
        .ctx = events->nodes_ctx};

    if (p->options->grid) {
        if (grid_state_ssh_args(&p->options->grid->grid, p->options->grid->here, p->dir.path,
                                p->ssh_args, err) < 0)
            return err->code;
        config.launcher_args = p->ssh_args;
    }
    p->nodes = nodes_new(&config, err);
    if (p->nodes)
        p->far_units = far_units_new(p->nodes, events->units, events->units_ctx, err);
    if (!p->nodes || !p->far_units)
        return err->code;
    if (p->programs.source_count) {
        p->staging = staging_new(p->nodes, p->programs.sources, p->programs.source_count,
                                 events->staging, events->nodes_ctx, err);
        if (!p->staging)
            return err->code;
    }
    nodes_open(p->nodes);
    return CW_OK;
}

static int open_ranks(struct parts *p, const struct parts_events *events, void *ctx,
                      struct cw_err *err)
{
    struct rank_io_config io = {.ranks = p->options->ranks,
                                .job_id = p->job_id,
                                .appnums = p->programs.segment_of,
                                .places = p->places,
                                .state = p->state,
                                .events = events->rank_io,
                                .ctx = ctx};
    struct remote_config remote = {.loop = p->loop,
                                   .ranks = p->options->ranks,
                                   .nodes = p->nodes,
                                   .channels = &p->channels,
                                   .events = events->remote,
                                   .ctx = ctx};
    struct rank_input_config input = {.loop = p->loop,
                                      .keep = !p->options->no_log,
                                      .overrun = events->input_overrun,
                                      .ctx = ctx,
                                      .state = p->state,
                                      .places = p->places};

    if (p->options->relay_settings.log_safety == RELAY_LOG_COPIED) {
        p->gates = gates_new(p, err);
        if (!p->gates)
            return err->code;
        remote.gates = gates_of_ranks(p->gates);
    }
    p->rank_io = rank_io_new(&io);
    if (!p->rank_io)
        return cw_err_set(err, CW_ENOMEM, "no memory for PMI");
    p->remote = remote_new(&remote, err);
    if (!p->remote)
        return err->code;
    p->input = rank_input_new(&input, err);
    return p->input ? CW_OK : err->code;
}

static int open_log(struct parts *p, const struct job *job, struct cw_err *err)
{
    char relays[CW_RELAYS_MAX * CW_ADDRESS_MAX];

    p->status = status_source_new(p, job, err);
    if (!p->status)
        return err->code;
    relays_addresses(p->relays, relays, sizeof(relays));
    return log_open_events(&p->log, p->options->events, loop_look(p->loop), p->job_id,
                           p->options->ranks, relays, err);
}

static int open_imaging(struct parts *p, const struct job *job, const struct parts_events *events,
                        void *ctx, struct cw_err *err)
{
    if (!p->layout.images)
        return CW_OK;
    if (p->programs.restorer.code) {
        /* an image of no use would let the log forget how the rank began */
        log_notice(&p->log, "no images of ranks are taken: %s", p->programs.restorer.text);
        return CW_OK;
    }
    p->imaging = imaging_new(p, job, events->imaging, ctx, err);
    if (!p->imaging)
        return err->code;
    for (uint32_t i = 0; i < p->options->hosts.ckptsrv_hosts; i++)
        image_servers_want(imaging_servers(p->imaging), i);
    return CW_OK;
}

int parts_open_programs(struct parts *p, const struct run_options *options, int *exit_code,
                        struct cw_err *err)
{
    *p = (struct parts){.options = options,
                        .spin_ns = choose_spin(options),
                        .relay_kept = {-1, -1},
                        .log = {.verbose = options->verbose, .events.fd = -1}};
    return programs_open(&p->programs, options, exit_code, err);
}

int parts_open_hosts(struct parts *p, const struct parts_events *events, void *ctx,
                     struct cw_err *err)
{
    raise_descriptor_limit(p->options->ranks, p->options->hosts.list.count);
    p->loop = loop_new(err);
    if (!p->loop || signals_open(&p->signals, p->loop, events->signalled, ctx, err) < 0)
        return err->code;
    channels_init(&p->channels, p->loop);
    children_adopt();
    if (open_outputs(p, events, ctx, err) < 0 || parts_make_dir(p, err) < 0)
        return err->code;
    return open_nodes(p, events, err);
}

int parts_open_ranks(struct parts *p, const struct job *job, const struct parts_events *events,
                     void *ctx, struct cw_err *err)
{
    if (open_ranks(p, events, ctx, err) < 0 || open_log(p, job, err) < 0)
        return err->code;
    return open_imaging(p, job, events, ctx, err);
}

static bool is_server(void *ctx, pid_t pid)
{
    const struct parts *p = ctx;

    return ssh_transport_is_tunnel(pid) || nodes_has_child(p->nodes, pid) ||
           state_copies_have_child(p->state_copies, pid);
}

void parts_end_processes(struct parts *p)
{
    if (p->remote)
        remote_close(p->remote);
    p->remote = NULL;
    children_kill(is_server, p);
}

/* Of the node of this machine, which was killed if its directory is there. Of images that are not
 * to be kept, what such a node had chosen is found as at a start. */
static void remove_left(struct parts *p)
{
    const char *dir = p->nodes ? nodes_facts(p->nodes, nodes_here(p->nodes))->dir : "";
    struct image_dir images;
    struct cw_err err;

    if (!dir[0] || access(dir, F_OK) < 0)
        return;
    rundir_remove_left(dir);
    if (!p->options->job_dir &&
        image_dir_choose(&images, p->options->images.dir, p->job_id, false, &err) == CW_OK)
        image_dir_remove(&images);
}

void parts_close(struct parts *p)
{
    bool kept = p->state && p->options->job_dir;

    if (p->relays && kept && p->begun && !p->over)
        relays_keep_job(p->relays);
    if (p->loop)
        nodes_end(p->nodes);
    parts_end_processes(p);
    remove_left(p);
    state_copies_free(p->state_copies);
    nodes_free(p->nodes);
    relays_free(p->relays);
    far_units_free(p->far_units);
    staging_free(p->staging);
    imaging_free(p->imaging);
    children_reap(NULL, NULL);
    rank_input_free(p->input);
    status_source_free(p->status);
    job_events_close(&p->log.events);
    rank_io_free(p->rank_io);
    outputs_free(p->outputs);
    relay_kept_close(&p->relay_kept);
    state_file_close(p->state, p->state && (p->over || !p->begun || !kept));
    if (p->dir_made)
        rundir_remove(&p->dir);
    for (uint32_t i = 0; i < HOSTS_MAX; i++)
        free(p->taken[i]);
    signals_close(&p->signals);
    channels_end(&p->channels);
    gates_free(p->gates);
    loop_free(p->loop);
    programs_close(&p->programs);
    layout_free(&p->layout);
    free(p->places);
}
