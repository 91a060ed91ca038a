/* Where the ranks of a job, its relays and its checkpoint servers stand: chosen from its options
 * once its hosts have said what they have. Pure: no I/O. */
#ifndef DISPATCHER_LAYOUT_H
#define DISPATCHER_LAYOUT_H

#include "dispatcher/options/options.h"

/* What is not owned is the options'. */
struct layout {
    struct placement placement;         /* of the ranks on hosts; owned, empty without hosts */
    uint8_t *homes;                     /* each rank's relay; NULL: there is one relay. Owned */
    uint32_t relays;                    /* at least 1 */
    bool at_hosts;                      /* they are the job's own, each on a host: */
    uint32_t relay_host[CW_RELAYS_MAX]; /* on which */
    bool running;                       /* they run already, there: */
    const char *relay_address[CW_RELAYS_MAX];
    const char *key_file;
    const char **links; /* as of struct relays_config; owned */
    bool channel;       /* ranks of a host exchange messages through channel memory */
    bool images;        /* are taken */
    const char *server_address[CKPT_SERVERS_MAX];
    uint32_t servers; /* 0: the job has one of its own */
    const char *server_key_file;
};

/* `cores`: of each host of the options; `limited`: one of them limits what its ranks may map, as of
 * cw_machine_limits_memory. Errors: CW_EINVAL: the ranks do not fit there, as of
 * placement_make and grid_job_place; CW_ENOMEM. layout_free is to be called also then. */
int layout_make(struct layout *layout, const struct run_options *options, const uint32_t *cores,
                bool limited, struct cw_err *err);
void layout_free(struct layout *layout); /* zeroed is allowed */

#endif
