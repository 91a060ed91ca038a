/* What a grid means for a job: its hosts, a relay and a checkpoint server of each site that has
 * ranks, or of one site for all, and how each is reached from where. Filled in the order of the
 * functions below; after that it does not change. Not thread-safe. */
#ifndef DISPATCHER_GRID_JOB_H
#define DISPATCHER_GRID_JOB_H

#include "dispatcher/hosts/grid_state.h"
#include "dispatcher/hosts/placement.h"

struct grid_job_address {
    char text[CW_ADDRESS_MAX];
};

/* Owned, all of it. Relays and servers have the numbers that they have in the job. */
struct grid_job {
    struct grid grid;
    uint32_t here;                      /* the site of this machine, or GRID_OUTSIDE */
    char ssh_args[GRID_SSH_ARGS_BYTES]; /* for the launcher, by what each command writes anew */
    char key_file[PATH_MAX];            /* of relays and servers */
    uint32_t logs_at;                   /* the site whose relay has all ranks; GRID_OUTSIDE: each
                                           has that of its own */
    uint32_t relays;                    /* one of each such site: */
    uint32_t relay_site[CW_RELAYS_MAX]; /* at which */
    struct grid_job_address *relay;     /* of each, for us */
    struct grid_job_address
        *link;        /* [from * relays + to]: for that relay; "": the other connects */
    uint32_t servers; /* 0: there are none */
    uint32_t server_site[CW_RELAYS_MAX];
    struct grid_job_address *server; /* of each, for us */
    uint8_t *rank_relay;             /* of each rank */
    uint8_t *rank_server;            /* likewise, where there are any */
};

/* Reads the file, and what this machine keeps of the grid: the round trips, the key, which must be
 * there; writes the configuration of ssh. `here`: the site of this machine, "-": none, NULL: by
 * its host name. Errors: of grid_file_read and grid_state_path; CW_ENOTFOUND: there is no key. */
int grid_job_open(struct grid_job *job, const char *file, const char *here, struct cw_err *err);
void grid_job_free(struct grid_job *job); /* zeroed is allowed */

/* The relay and the checkpoint server of the site of that name are those of all ranks. Errors:
 * CW_EINVAL: there is no such site; which there are. */
int grid_job_keep_logs_at(struct grid_job *job, const char *site, struct cw_err *err);

/* Adds the hosts that have slots: HOST.SITE. Errors: CW_EINVAL, CW_ENOMEM. */
int grid_job_add_hosts(struct grid_job *job, struct host_list *list, struct cw_err *err);

/* The ranks have their places: chooses relays and servers. Errors: CW_EINVAL: a relay cannot be
 * reached from here, or that of all ranks from a site with ranks; CW_ENOMEM. */
int grid_job_place(struct grid_job *job, const struct host_list *list,
                   const struct placement *placement, struct cw_err *err);

/* Where a rank on a machine of that site reaches the relay or server: of another site through a
 * door (grid.h). */
void grid_job_relay_at(const struct grid_job *job, uint32_t relay, uint32_t site,
                       char text[CW_ADDRESS_MAX]);
void grid_job_server_at(const struct grid_job *job, uint32_t server, uint32_t site,
                        char text[CW_ADDRESS_MAX]);

#endif
