#include "dispatcher/services.h"

#include <stdio.h>

int job_service_add(struct services *services, enum service_kind kind, const char *address,
                    struct cw_err *err)
{
    struct service *service = &services->table[services->count];
    uint32_t id = 0;

    if (services->count == SERVICES_MAX)
        return cw_err_set(err, CW_ELIMIT, "registering %s: more than %d services", address,
                          SERVICES_MAX);
    for (uint32_t i = 0; i < services->count; i++)
        id += services->table[i].kind == kind;
    *service = (struct service){.kind = kind, .id = id};
    snprintf(service->address, sizeof(service->address), "%s", address);
    services->count++;
    return CW_OK;
}

const struct service *job_home_of(const struct services *services, uint32_t rank)
{
    uint32_t home = services->homes ? services->homes[rank] : 0;

    for (uint32_t i = 0; i < services->count; i++) {
        const struct service *service = &services->table[i];

        if (service->kind == SERVICE_RELAY && service->id == home)
            return service;
    }
    return NULL;
}
