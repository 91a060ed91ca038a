#include "relay/core/route.h"
#include "relay/core/copy_in.h"
#include "relay/core/copy_out.h"
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
    struct relay_dial dial = {.self = job->self, .incarnation = job->set->incarnation};
    struct cw_link link;
    int failed;

    if (size < CW_LINK_SIZE || !cw_link_get(body, size, &link) || link.peer >= job->relays ||
        link.peer == job->self || cw_cred_open(dial.key, link.sealed, job->key) < 0)
        return CW_EPROTO;
    job->settled = true;
    dial.peer = link.peer;
    memcpy(dial.job, job->id, CW_ID_SIZE);
    snprintf(dial.address, sizeof(dial.address), "%s", link.address);
    failed = link_told(job, &dial, link.incarnation, !(link.flags & CW_LINK_COPIES));
    explicit_bzero(dial.key, sizeof(dial.key));
    return failed;
}

/* One for another process in our place is void. */
static int tell_copy(struct relay_job *job, const uint8_t *body, size_t size, bool returns)
{
    struct cw_copy copy;

    if (size != CW_COPY_SIZE || !cw_copy_get(body, &copy) || !job->set->shared->store.commit.copies)
        return CW_EPROTO;
    for (uint32_t i = 0; i < copy.count; i++)
        if (copy.peer[i] >= job->relays || !job->copies[copy.peer[i]].dial)
            return CW_EPROTO;
    if (copy.incarnation == job->set->incarnation)
        copy_out_told(job, &copy, returns);
    return CW_OK;
}

static int tell_close(struct relay_job *job, const uint8_t *body, size_t size)
{
    struct cw_copy_close close;

    if (size != CW_COPY_CLOSE_SIZE || !cw_copy_close_get(body, &close) ||
        close.relay >= job->relays || close.relay == job->self)
        return CW_EPROTO;
    copy_in_close(job, &close);
    return CW_OK;
}

/* `returns`: it came to the relay whose place we take. */
static int take(struct relay_job *job, uint8_t type, const uint8_t *body, size_t size, bool returns)
{
    switch (type) {
    case CW_FRAME_LINK:
        return tell_link(job, body, size);
    case CW_FRAME_COPY:
        return tell_copy(job, body, size, returns);
    case CW_FRAME_COPY_CLOSE:
        return tell_close(job, body, size);
    case CW_FRAME_ROUTE:
        return size == CW_ROUTE_SIZE ? tell_route(job, body) : CW_EPROTO;
    default:
        return CW_EPROTO;
    }
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
    int failed = take(job, type, body, size, false);

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
        failed = take(job, (uint8_t)type, bytes.at + TOLD_HEAD, size, true);
        position += TOLD_HEAD + size;
    }
    return failed || found == CHAIN_END ? failed : CW_EPROTO;
}
