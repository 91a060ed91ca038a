/* ROUTE and LINK: the dispatcher says which relay is the home of which ranks, and where the others
 * are. */
#include "relay/core/link.h"
#include "relay/core/recv.h"

#include <stdio.h>
#include <string.h>

void recv_route(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;
    struct cw_route route;

    if (!cw_route_get(body, &route) || route.first >= job->ranks || job->settled ||
        (route.count - 1) > (job->ranks - 1 - route.first) / route.step) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "ROUTE frame that does not add up");
        return;
    }
    if (!job->homes) {
        job->homes = relay_pool_alloc(job->pool, job->ranks);
        if (!job->homes) {
            conn_out_of_memory(conn, "keeping where ranks are at home");
            return;
        }
        memset(job->homes, 0, job->ranks);
    }
    job->self = route.self;
    job->relays = route.relays;
    job->routed += job->routed < job->ranks ? route.count : 0;
    for (uint32_t i = 0; i < route.count; i++)
        job->homes[route.first + i * route.step] = (uint8_t)route.home;
}

void recv_link(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;
    uint32_t size = conn->payload_left;
    struct relay_dial *dial;
    struct cw_link link;

    conn->start += size;
    conn->payload_left = 0;
    dial = relay_pool_alloc(job->pool, sizeof(*dial));
    if (!dial) {
        conn_out_of_memory(conn, "keeping where another relay is");
        return;
    }
    *dial = (struct relay_dial){.self = job->self};
    if (!cw_link_get(body, size, &link) || link.peer >= job->relays || link.peer == job->self ||
        cw_cred_open(dial->key, link.sealed, job->key) < 0) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "LINK frame that does not add up");
        relay_pool_free(job->pool, dial, sizeof(*dial));
        return;
    }
    job->settled = true;
    dial->peer = link.peer;
    memcpy(dial->job, job->id, CW_ID_SIZE);
    snprintf(dial->address, sizeof(dial->address), "%s", link.address);
    link_want(job, dial);
}
