#include "relay/core/route.h"
#include "relay/core/link.h"

#include <stdio.h>
#include <string.h>

#define TOLD_HEAD 8u /* type and size, before the body */

static int tell_route(struct relay_job *job, const uint8_t *body)
{
    struct cw_route route;

    if (!cw_route_get(body, &route) || route.first >= job->ranks || job->settled ||
        (route.count - 1) > (job->ranks - 1 - route.first) / route.step)
        return CW_EPROTO;
    if (!job->homes) {
        job->homes = relay_pool_alloc(job->pool, job->ranks);
        if (!job->homes)
            return CW_ENOMEM;
        memset(job->homes, 0, job->ranks);
    }
    job->self = route.self;
    job->relays = route.relays;
    job->routed += job->routed < job->ranks ? route.count : 0;
    for (uint32_t i = 0; i < route.count; i++)
        job->homes[route.first + i * route.step] = (uint8_t)route.home;
    return CW_OK;
}

static int tell_link(struct relay_job *job, const uint8_t *body, size_t size)
{
    struct relay_dial *dial =
        size < CW_LINK_SIZE ? NULL : relay_pool_alloc(job->pool, sizeof(*dial));
    struct cw_link link;

    if (size < CW_LINK_SIZE)
        return CW_EPROTO;
    if (!dial)
        return CW_ENOMEM;
    *dial = (struct relay_dial){.self = job->self};
    if (!cw_link_get(body, size, &link) || link.peer >= job->relays || link.peer == job->self ||
        cw_cred_open(dial->key, link.sealed, job->key) < 0) {
        relay_pool_free(job->pool, dial, sizeof(*dial));
        return CW_EPROTO;
    }
    job->settled = true;
    dial->peer = link.peer;
    memcpy(dial->job, job->id, CW_ID_SIZE);
    snprintf(dial->address, sizeof(dial->address), "%s", link.address);
    link_want(job, dial);
    return CW_OK;
}

static int take(struct relay_job *job, uint8_t type, const uint8_t *body, size_t size)
{
    if (type == CW_FRAME_LINK)
        return tell_link(job, body, size);
    return type == CW_FRAME_ROUTE && size == CW_ROUTE_SIZE ? tell_route(job, body) : CW_EPROTO;
}

static int keep(struct relay_job *job, uint8_t type, const uint8_t *body, size_t size)
{
    struct cw_writer w;
    uint64_t position;
    uint64_t held = 0;
    uint8_t *to;

    if (!job->told.entry)
        return CW_OK;
    to = chain_append(&job->told, (uint32_t)(TOLD_HEAD + size), &position, &held);
    if (!to)
        return CW_ENOMEM;
    w = cw_writer(to, TOLD_HEAD);
    cw_put_u32(&w, type);
    cw_put_u32(&w, (uint32_t)size);
    memcpy(to + TOLD_HEAD, body, size);
    return CW_OK;
}

int route_tell(struct relay_job *job, uint8_t type, const uint8_t *body, size_t size)
{
    int failed = take(job, type, body, size);

    return failed ? failed : keep(job, type, body, size);
}

int route_return(struct relay_job *job, struct chain_end end)
{
    int failed = chain_return(&job->told, &job->entry, 0, end);
    uint64_t position = (uint64_t)end.first << CHAIN_SHIFT;
    enum chain_found found = CHAIN_END;
    struct chain_bytes bytes;

    while (!failed && (found = chain_read(&job->told, &position, &bytes)) == CHAIN_HERE) {
        struct cw_reader r = cw_reader(bytes.at, bytes.size);
        uint32_t type = cw_get_u32(&r);
        uint32_t size = cw_get_u32(&r);

        if (r.bad || size > r.left || type > UINT8_MAX)
            return CW_EPROTO;
        failed = take(job, (uint8_t)type, bytes.at + TOLD_HEAD, size);
        position += TOLD_HEAD + size;
    }
    return failed || found == CHAIN_END ? failed : CW_EPROTO;
}
