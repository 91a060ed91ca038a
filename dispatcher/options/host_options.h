/* The options of `causeway run` that say on which hosts a job runs, and how. */
#ifndef DISPATCHER_HOST_OPTIONS_H
#define DISPATCHER_HOST_OPTIONS_H

#include "dispatcher/hosts/placement.h"

#include <getopt.h>

#define HOST_TIMEOUT_NS 10000000000ull      /* unless the user says otherwise */
#define HOST_TIMEOUT_GRID_NS 60000000000ull /* likewise, of a grid: the way to it may be cut */
#define HOST_TIMEOUT_NS_MIN 100000000ull    /* a shorter one is refused */
#define HOST_TIMEOUT_NS_MAX 3600000000000ull

enum host_option {
    HOST_OPTION_HOST,
    HOST_OPTION_HOSTFILE,
    HOST_OPTION_RANKFILE,
    HOST_OPTION_PPN,
    HOST_OPTION_MAP_BY,
    HOST_OPTION_OVERSUBSCRIBE,
    HOST_OPTION_SPARES,
    HOST_OPTION_LAUNCHER,
    HOST_OPTION_LAUNCHER_ARGS,
    HOST_OPTION_AGENT,
    HOST_OPTION_TIMEOUT,
    HOST_OPTION_RELAY_AT,
    HOST_OPTION_STAGE,
    HOST_OPTION_STAGE_DIR,
    HOST_OPTION_CKPTSRV,
    HOST_OPTIONS
};

enum relay_at {
    RELAY_AT_HOST,    /* one on each host with ranks */
    RELAY_AT_CLUSTER, /* on the dispatcher's host, for all */
};

struct host_options {
    struct host_list list; /* owned; empty: the job runs on this machine alone, without agents */
    struct placement_options placing; /* of the job's ranks on them */
    struct rankfile rankfile_read;    /* of these; owned */
    bool of_slurm;                    /* the hosts are those of Slurm's allocation */
    const char *hostfile;
    const char *rankfile;
    uint32_t spares;           /* hosts at the end of the list, without ranks at first */
    const char *launcher;      /* "ssh", "srun" or a command */
    const char *launcher_args; /* words for it, between spaces; NULL: none */
    const char *agent;         /* path of causeway on the hosts; NULL: that of our own */
    uint64_t timeout_ns;       /* a host that is silent for this time is lost */
    const char *relay_where;   /* what --relay-at says; NULL: nothing, or it is taken */
    enum relay_at relay_at;
    const char *stage_dir; /* where programs are kept that are sent to hosts; NULL: none are */
    const char *ckptsrv;   /* host of the job's own checkpoint server; NULL: this machine */
    uint32_t ckptsrv_host; /* its index in the list, or HOSTS_NONE */
    uint32_t given;        /* options, one bit each */
};

/* With the two dashes. */
const char *host_option_name(enum host_option option);

void host_options_init(struct host_options *options);
void host_options_free(struct host_options *options);

/* All of them, for getopt_long: HOST_OPTIONS. The value of each is `first` + its number. */
void host_options_list(struct option *list, int first);

/* Errors: CW_EINVAL, naming the option, the value and what was expected; CW_ENOMEM. */
int host_options_take(struct host_options *options, enum host_option option, const char *value,
                      struct cw_err *err);

/* After all options: reads the files, or what Slurm says by `get` (as getenv(3)). Errors:
 * CW_EINVAL, CW_ENOTFOUND, CW_ESYS, CW_ENOMEM. */
int host_options_complete(struct host_options *options, uint32_t ranks,
                          char *(*get)(const char *name), struct cw_err *err);

#endif
