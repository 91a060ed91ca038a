/* A rankfile, in the format of Open MPI: which slot of which host each rank gets. Pure: no I/O. */
#ifndef DISPATCHER_RANKFILE_H
#define DISPATCHER_RANKFILE_H

#include "dispatcher/hosts/host_list.h"

/* Of one rank. */
struct rank_place {
    uint32_t host;
    uint32_t slot; /* of the host, from 0 on */
    uint32_t line; /* of the file; 0: the rank has none */
};

/* Zeroed: empty. `place` is owned, one for each rank. */
struct rankfile {
    const char *file; /* its name, for messages; borrowed */
    struct rank_place *place;
    uint32_t ranks;
};

/* The bytes of a rankfile of a job of `ranks`: "rank 0=node1 slot=0", or "rank 0-3=node1 slot=4-7".
 * `hosts` are those of the job; when it is empty, the hosts of the file are added, each with slots
 * up to the last one that a rank gets. `file` is its name, for messages; borrowed. Errors:
 * CW_EINVAL, naming file, line, value and what was expected; CW_ENOMEM. */
int rankfile_parse(struct rankfile *rankfile, const char *file, const char *text, size_t size,
                   uint32_t ranks, struct host_list *hosts, struct cw_err *err);
void rankfile_free(struct rankfile *rankfile);

#endif
