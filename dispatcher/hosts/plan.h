/* The services of a grid: which a site has, where they run, and what is to be asked of
 * hosts there. Pure: no I/O. */
#ifndef DISPATCHER_PLAN_H
#define DISPATCHER_PLAN_H

#include "dispatcher/hosts/routes.h"

#include <jansson.h>

/* In the order in which they are started. */
enum plan_service {
    PLAN_PUBLISH, /* of a site without a gateway: keeps its SSH server published */
    PLAN_RELAY,
    PLAN_CKPTSRV,
    PLAN_DOORS, /* to the relays and checkpoint servers of the other sites */
    PLAN_SERVICES
};

extern const char *const plan_names[PLAN_SERVICES];

struct plan {
    const struct grid *grid; /* names of keys are for the machines of the sites; borrowed */
    const char *key; /* of the grid, as the text of a key file; NULL: not to start anything */
};

/* The host of the site that has this service; HOSTS_NONE: the site has none. */
uint32_t plan_host(const struct plan *plan, uint32_t site, enum plan_service service);

/* Where others find it, for people. */
void plan_address(const struct plan *plan, uint32_t site, enum plan_service service,
                  char text[CW_ADDRESS_MAX]);

/* A request (service_format.h) of a service that the site has; `op` is "start", "stop" or "look".
 * The caller's; NULL: no memory. */
json_t *plan_request(const struct plan *plan, const char *op, uint32_t site,
                     enum plan_service service);

#endif
