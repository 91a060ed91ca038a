/* The registry of services: which relay (later: which checkpoint server) serves which ranks, and
 * where it is.
 *
 * [MPICH-V] 3.1: "When scheduled, a service is registered in a Stable Service Registry, managed in
 * a centralized way. It records, for each service, the set of hosts providing this service and the
 * protocol information used to bind a service requester to a service host." */
#ifndef DISPATCHER_SERVICES_H
#define DISPATCHER_SERVICES_H

#include "common/transport.h"

#include <stdint.h>

#define SERVICES_MAX 64

enum service_kind { SERVICE_RELAY };

struct service {
    enum service_kind kind;
    uint32_t id;
    char address[CW_ADDRESS_MAX];
};

struct services {
    struct service table[SERVICES_MAX];
    uint32_t count;
    const uint8_t *homes; /* the id of each rank's relay; borrowed; NULL: all have relay 0 */
};

/* The id is the next of its kind, from 0. Errors: CW_ELIMIT. */
int job_service_add(struct services *services, enum service_kind kind, const char *address,
                    struct cw_err *err);

/* The home relay of a rank. NULL: it is not registered. */
const struct service *job_home_of(const struct services *services, uint32_t rank);

#endif
