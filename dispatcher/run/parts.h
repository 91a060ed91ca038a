/* The parts of a running job. Each emits events to the one that opened them all, and knows of no
 * other. */
#ifndef DISPATCHER_PARTS_H
#define DISPATCHER_PARTS_H

#include "common/signals.h"
#include "dispatcher/launch/far_units.h"
#include "dispatcher/launch/nodes.h"
#include "dispatcher/launch/remote.h"
#include "dispatcher/ranks/rank_input.h"
#include "dispatcher/ranks/rank_io.h"
#include "dispatcher/run/gates.h"
#include "dispatcher/run/imaging.h"
#include "dispatcher/run/job_log.h"
#include "dispatcher/run/layout.h"
#include "dispatcher/run/programs.h"
#include "dispatcher/run/status_source.h"
#include "dispatcher/servers/relays.h"
#include "dispatcher/state/state_file.h"
#include "dispatcher/status/rundir.h"
#include "relay/process.h"

struct copies;

struct parts {
    const struct run_options *options; /* borrowed */
    uint8_t job_id[CW_ID_SIZE];
    struct state_file *state; /* where the job is kept: in options->job_dir, with its relay and
                                 images, or copied to hosts (--orphan-timeout); NULL: it is not */
    struct state_copies *state_copies; /* on hosts; NULL: there are none */
    char *taken[HOSTS_MAX]; /* directories of nodes that a dispatcher before us had; owned */
    bool resumed;           /* `state` is that of a dispatcher before us ... */
    bool begun;             /* it can be gone on with from there */
    bool over;              /* ... but there is nothing left to be done */
    bool hurried;           /* by a signal, or the end of its time: outputs are not waited for */
    uint8_t relay_key[CW_KEY_SIZE]; /* of a job that is kept */
    char relay_dir[PATH_MAX];       /* of one in a directory */
    struct relay_kept relay_kept;   /* likewise, with --log-safety file */
    char image_dir[PATH_MAX];       /* likewise */
    uint64_t spin_ns;               /* of ranks and relays, before they sleep */
    struct programs programs;
    struct layout layout; /* zeroed until the hosts have said what they have */
    struct rundir dir;
    bool dir_made;
    char ssh_args[GRID_SSH_ARGS_BYTES]; /* of a job on a grid */
    struct channels channels;           /* what ranks say */
    struct loop *loop;
    struct signals signals;
    struct outputs *outputs;
    struct job_log log;
    struct nodes *nodes;
    struct far_units *far_units;
    struct staging *staging;   /* NULL: no programs are sent to hosts */
    char host[CW_ADDRESS_MAX]; /* by which other hosts reach this machine; "": there are none */
    struct relays *relays;
    struct copies *copies; /* of their logs; borrowed */
    struct rank_input *input;
    struct gates *gates;   /* NULL: what ranks say waits for nothing */
    struct remote *remote; /* the processes of ranks; NULL: none is left */
    struct rank_io *rank_io;
    struct places *places; /* of images, of each rank; owned */
    struct status_source *status;
    struct imaging *imaging; /* NULL: no images are taken */
};

/* What is heard of them, with the `ctx` of parts_open. */
struct parts_events {
    const struct remote_events *remote;
    const struct rank_io_events *rank_io;
    const struct relays_events *relays;
    void *relays_ctx; /* theirs */
    const struct units_events *units;
    const struct relays_own *own_relays;
    void *units_ctx; /* of these two */
    const struct nodes_events *nodes;
    const struct staging_events *staging;
    void *nodes_ctx; /* of these */
    const struct imaging_events *imaging;
    void (*signalled)(void *ctx, int signal_number);
    void (*output_failed)(void *ctx, const struct cw_err *err);
    void (*input_overrun)(void *ctx);
};

/* All but the ranks' processes, in four steps: the programs, which says what the exit code is when
 * that fails; what hosts need, whose nodes are started; once these are ready, the relays; and,
 * once these are ready, what ranks need, for a job that `job` describes. `host`: by which other
 * hosts reach our relays; NULL: there are none. Errors: of every kind; parts_close is to be called
 * also then. */
int parts_open_programs(struct parts *parts, const struct run_options *options, int *exit_code,
                        struct cw_err *err);
int parts_open_hosts(struct parts *parts, const struct parts_events *events, void *ctx,
                     struct cw_err *err);
int parts_open_relays(struct parts *parts, const struct parts_events *events, struct cw_err *err);
int parts_open_ranks(struct parts *parts, const struct job *job, const struct parts_events *events,
                     void *ctx, struct cw_err *err);

/* The directory of this process, which parts_open_hosts makes where it is not there. Errors: as of
 * rundir_make. */
int parts_make_dir(struct parts *parts, struct cw_err *err);

/* Ends the processes of the ranks, and what they started and left behind. */
void parts_end_processes(struct parts *parts);
void parts_close(struct parts *parts);

#endif
