/* The options of `causeway run` that say on which hosts a job runs, and how. */
#ifndef DISPATCHER_HOST_OPTIONS_H
#define DISPATCHER_HOST_OPTIONS_H

#include "common/options.h"
#include "common/setup.h"
#include "dispatcher/hosts/placement.h"

#define HOST_TIMEOUT_NS 10000000000ull      /* unless the user says otherwise */
#define HOST_TIMEOUT_GRID_NS 60000000000ull /* likewise, of a grid: the way to it may be cut */
#define HOST_TIMEOUT_NS_MIN 100000000ull    /* a shorter one is refused */
#define HOST_TIMEOUT_NS_MAX 3600000000000ull

enum relay_at {
    RELAY_AT_HOST,    /* one on each host with ranks */
    RELAY_AT_CLUSTER, /* on the dispatcher's host, for all */
};

struct host_options {
    struct host_list list; /* owned; empty: the job runs on this machine alone, without nodes */
    struct placement_options placing; /* of the job's ranks on them */
    struct rankfile rankfile_read;    /* of these; owned */
    bool of_slurm;                    /* the hosts are those of Slurm's allocation */
    const char *hostfile;
    const char *rankfile;
    uint32_t spares;           /* hosts at the end of the list, without ranks at first */
    const char *launcher;      /* "ssh", "srun" or a command */
    const char *launcher_args; /* words for it, between spaces; NULL: none */
    const char *causeway;      /* path of causeway on the hosts; NULL: that of our own */
    uint64_t timeout_ns;       /* a host that is silent for this time is lost; 0: not said */
    const char *relay_where;   /* what --relay-at says; NULL: nothing, or it is taken */
    enum relay_at relay_at;
    bool stage;             /* programs are sent to hosts, to the default of: */
    const char *stage_dir;  /* where they are kept there; NULL: none are sent */
    const char *ckptsrv;    /* hosts of the job's own checkpoint servers; NULL: this machine */
    uint32_t ckptsrv_hosts; /* so many: */
    uint32_t ckptsrv_host[CW_IMAGE_SERVERS_MAX]; /* their indexes in the list */
};

/* Of a struct host_options: which hosts, how nodes are started there, and the rest. */
extern const struct cw_option host_list_options[];
extern const struct cw_option host_launch_options[];
extern const struct cw_option host_options[];

void host_options_init(struct host_options *options);
void host_options_free(struct host_options *options);

/* After all options: reads the files, or what Slurm says by `get` (as getenv(3)). Errors:
 * CW_EINVAL, CW_ENOTFOUND, CW_ESYS, CW_ENOMEM. */
int host_options_complete(struct host_options *options, uint32_t ranks,
                          char *(*get)(const char *name), struct cw_err *err);

#endif
