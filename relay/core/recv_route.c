/* ROUTE and LINK: the dispatcher says which relay is the home of which ranks, and where the others
 * are. */
#include "relay/core/state.h"

#include <stdio.h>
#include <string.h>

void recv_route(struct relay_conn *conn, const uint8_t *body)
{
    struct relay_job *job = conn->job;
    struct cw_route route;

    if (!cw_route_get(body, &route) || route.first >= job->ranks || job->linking || job->links_up ||
        (route.count - 1) > (job->ranks - 1 - route.first) / route.step) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "ROUTE frame that does not add up");
        return;
    }
    if (!job->homes) {
        job->homes = relay_pool_alloc(&conn->core->pool, job->ranks);
        if (!job->homes) {
            conn_out_of_memory(conn, "keeping where ranks are at home");
            return;
        }
        memset(job->homes, 0, job->ranks);
    }
    job->self = route.self;
    job->relays = route.relays;
    for (uint32_t i = 0; i < route.count; i++)
        job->homes[route.first + i * route.step] = (uint8_t)route.home;
}

void recv_link(struct relay_conn *conn, const uint8_t *body)
{
    const struct relay_dialler *dialler = &conn->core->config.dialler;
    struct relay_job *job = conn->job;
    struct relay_dial dial = {.self = job->self};
    uint32_t size = conn->payload_left;
    struct cw_link link;

    conn->start += size;
    conn->payload_left = 0;
    if (!cw_link_get(body, size, &link) || link.peer >= job->relays || link.peer == job->self ||
        cw_cred_open(dial.key, link.sealed, job->key) < 0) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "LINK frame that does not add up");
        return;
    }
    job->linking = true;
    dial.peer = link.peer;
    memcpy(dial.job, job->id, CW_ID_SIZE);
    snprintf(dial.address, sizeof(dial.address), "%s", link.address);
    if (!dialler->dial || !dialler->dial(dialler->ctx, &dial))
        job_notice(job, CW_NOTICE_FATAL, UINT32_MAX,
                   "no link to relay %u of the job: too many links are being opened", link.peer);
}
