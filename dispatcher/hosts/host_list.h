/* The hosts of a job, with their slots: places for ranks. From --host, or from a hostfile in the
 * format of Hydra ("node1:4") or of Open MPI ("node1 slots=4 max_slots=8"). Pure: no I/O.
 *
 * A host that is named again stays where it was first, and its slots add up, as with Open MPI; also
 * where it was named by other capitals. Each time that it is named without a number counts as one.
 */
#ifndef DISPATCHER_HOST_LIST_H
#define DISPATCHER_HOST_LIST_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTS_MAX 1024
#define HOST_NAME_MAX_BYTES 255
#define HOST_SLOTS_MAX 4096 /* of a host */
#define HOSTS_NONE UINT32_MAX

struct host {
    char name[HOST_NAME_MAX_BYTES + 1];
    uint32_t slots;       /* 0: not said; placement.h has how many that are */
    uint32_t slots_max;   /* ranks at a time, when they share slots; 0: not said */
    uint32_t site;        /* of a grid; 0 without one */
    const char *causeway; /* path of causeway there; borrowed; NULL: as for all hosts */
    bool spare;           /* no rank is there at first */
    bool without_ranks;   /* nor ever: it has no slots */
};

/* Zeroed: no hosts. `host` is owned. */
struct host_list {
    struct host *host;
    uint32_t count;
};

void host_list_free(struct host_list *list);

/* The host's index, or HOSTS_NONE. */
uint32_t host_list_find(const struct host_list *list, const char *name);

/* Adds a host, or slots to the host of that name. Errors: CW_EINVAL, CW_ENOMEM. */
int host_list_add(struct host_list *list, const struct host *host, struct cw_err *err);

/* Sets `name` to the first `size` bytes of `text`, which are to be a host's name, as ssh(1) takes
 * it: "node1", "alice@node1", an address. Error: CW_EINVAL. */
int host_name_take(struct host *host, const char *text, size_t size, struct cw_err *err);

/* --host: "NAME[:SLOTS],...". Errors: CW_EINVAL, naming the text and what was expected; CW_ENOMEM.
 */
int host_list_add_option(struct host_list *list, const char *text, struct cw_err *err);

/* The bytes of a hostfile. `file` is its name, for messages. Errors: CW_EINVAL, naming file, line,
 * value and what was expected; CW_ENOMEM. */
int host_list_parse(struct host_list *list, const char *file, const char *text, size_t size,
                    struct cw_err *err);

/* Finds a host that is to serve the job, or adds it, without slots for ranks; `*at` is its index.
 * Errors: CW_EINVAL, CW_ENOMEM. */
int host_list_add_service(struct host_list *list, const char *name, uint32_t *at,
                          struct cw_err *err);

/* The last `spares` hosts get no ranks at first. Error: CW_EINVAL: none would be left. */
int host_list_set_spares(struct host_list *list, uint32_t spares, struct cw_err *err);

#endif
