#include "dispatcher/run/far_server.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

static void fail(struct far_server *f, struct cw_err *err)
{
    if (f->why.code)
        return; /* which was told */
    cw_err_wrap(err, "host %s", agents_name(f->agents, f->host));
    f->why = *err;
    if (f->settled)
        f->failed(f->ctx, err);
    f->settled = true;
}

static int listens(struct far_server *f, char *addresses, struct cw_err *err)
{
    char *far = strchr(addresses, ' ');

    if (!far || far - addresses >= CW_ADDRESS_MAX || strlen(far + 1) >= CW_ADDRESS_MAX)
        return cw_err_set(err, CW_EPROTO, "addresses of a checkpoint server that make no sense");
    *far = '\0';
    servers_own_listens(f->servers, addresses, far + 1);
    f->settled = true;
    return CW_OK;
}

static int on_frame(void *ctx, uint32_t host, uint32_t type, const uint8_t *body, size_t size,
                    struct cw_err *err)
{
    struct far_server *f = ctx;
    struct agent_event event;
    struct cw_err why;

    if (host != f->host || !agent_event_get(body, size, &event))
        return cw_err_set(err, CW_EPROTO, "an event of a checkpoint server that makes no sense");
    if (agent_state_take(&f->state, type, err) < 0)
        return err->code;
    switch (type) {
    case AGENT_SERVER_STARTED:
        server_news_own_started(f->news, (pid_t)event.value, agents_name(f->agents, host),
                                event.text);
        if (event.of)
            server_news_in_memory(f->news, event.text);
        return CW_OK;
    case AGENT_SERVER_LISTENS:
        return listens(f, event.text, err);
    case AGENT_SERVER_ENDED:
        server_news_own_ended(f->news, (int)event.value, event.text);
        return CW_OK;
    default:
        cw_err_set(&why, CW_ESYS, "%s", event.text);
        fail(f, &why);
        return CW_OK;
    }
}

static void on_lost(void *ctx, uint32_t host)
{
    struct far_server *f = ctx;
    struct cw_err why;

    if (host != f->host)
        return;
    f->state = AGENT_IS_NOT;
    cw_err_set(&why, CW_ECLOSED, "it is lost, and with it the job's own checkpoint server");
    fail(f, &why);
}

static const struct agents_user agents_user = {
    .first = AGENT_SERVER, .last = AGENT_SERVER_FAILED, .frame = on_frame, .lost = on_lost};

void far_server_open(struct far_server *f)
{
    agents_add_user(f->agents, &agents_user, f);
}

static void start(void *ctx, const uint8_t key[CW_KEY_SIZE])
{
    struct far_server *f = ctx;
    struct agent_server order = {.bytes_max = f->bytes_max};
    uint8_t body[AGENT_SERVER_MAX];
    struct cw_err err = {0};

    memcpy(order.key, key, CW_KEY_SIZE);
    snprintf(order.dir, sizeof(order.dir), "%s", f->dir ? f->dir : "");
    snprintf(order.listen, sizeof(order.listen), "%s", f->listen);
    if (agents_tell(f->agents, f->host, AGENT_SERVER, body, agent_server_put(body, &order), &err) <
        0)
        fail(f, &err);
    else
        f->state = AGENT_IS_ORDERED;
    sodium_memzero(&order, sizeof(order));
    sodium_memzero(body, sizeof(body));
}

const struct servers_elsewhere far_server_ops = {start};
