#include "dispatcher/launch/far_units.h"
#include "dispatcher/wire/node_states.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct far_units {
    struct nodes *nodes;
    const struct units_events *events;
    void *ctx;
    struct {
        uint32_t host;
        enum node_state state;
    } unit[NODE_UNITS_MAX];
};

/* Both addresses, with a blank between. */
static int tell_listens(const struct far_units *f, struct node_event *event, struct cw_err *err)
{
    char *blank = strchr(event->text, ' ');

    if (!blank || blank - event->text >= CW_ADDRESS_MAX || strlen(blank + 1) >= CW_ADDRESS_MAX)
        return cw_err_set(err, CW_EPROTO, "addresses of unit %u that make no sense", event->of);
    *blank = '\0';
    f->events->listens(f->ctx, event->of, event->text, blank + 1, event->value);
    return CW_OK;
}

static int on_frame(void *ctx, uint32_t host, uint32_t type, const uint8_t *body, size_t size,
                    struct cw_err *err)
{
    struct far_units *f = ctx;
    struct node_event event;
    struct cw_err why;

    if (!node_event_get(body, size, &event) || event.of >= NODE_UNITS_MAX)
        return cw_err_set(err, CW_EPROTO, "an event of a unit that makes no sense");
    if (f->unit[event.of].state != NODE_IS_NOT && f->unit[event.of].host != host)
        return cw_err_set(err, CW_EPROTO, "an event of unit %u, which it does not have", event.of);
    if (node_state_take(&f->unit[event.of].state, type, err) < 0)
        return err->code;
    switch (type) {
    case NODE_UNIT_STARTED:
        f->events->started(f->ctx, event.of, (pid_t)event.value, event.text);
        return CW_OK;
    case NODE_UNIT_LISTENS:
        return tell_listens(f, &event, err);
    case NODE_UNIT_ENDED:
        f->events->ended(f->ctx, event.of, (int)event.value, event.text);
        return CW_OK;
    default:
        cw_err_set(&why, CW_ESYS, "%.400s", event.text);
        if (host != nodes_here(f->nodes))
            cw_err_wrap(&why, "host %s", nodes_name(f->nodes, host));
        f->events->failed(f->ctx, event.of, (int)event.value, &why);
        return CW_OK;
    }
}

static void on_lost(void *ctx, uint32_t host)
{
    struct far_units *f = ctx;
    struct cw_err why;

    for (uint32_t i = 0; i < NODE_UNITS_MAX; i++) {
        if (f->unit[i].state == NODE_IS_NOT || f->unit[i].host != host)
            continue;
        f->unit[i].state = NODE_IS_NOT;
        cw_err_set(&why, CW_ECLOSED, "host %s: it is lost", nodes_name(f->nodes, host));
        f->events->lost(f->ctx, i, &why);
    }
}

static const struct nodes_user nodes_user = {
    .first = NODE_UNIT_STARTED, .last = NODE_UNIT_FAILED, .frame = on_frame, .lost = on_lost};

struct far_units *far_units_new(struct nodes *nodes, const struct units_events *events, void *ctx,
                                struct cw_err *err)
{
    struct far_units *f = calloc(1, sizeof(*f));

    if (!f) {
        cw_err_set(err, CW_ENOMEM, "no memory for the relays of hosts");
        return NULL;
    }
    f->nodes = nodes;
    f->events = events;
    f->ctx = ctx;
    nodes_add_user(nodes, &nodes_user, f);
    return f;
}

void far_units_free(struct far_units *f)
{
    free(f);
}

int far_units_start(struct far_units *f, uint32_t host, const struct node_unit *order,
                    struct cw_err *err)
{
    uint8_t body[NODE_UNIT_MAX];

    err->code = CW_OK;
    nodes_tell(f->nodes, host, NODE_UNIT_START, body, node_unit_put(body, order), err);
    sodium_memzero(body, sizeof(body));
    if (err->code)
        return err->code;
    f->unit[order->number].state = NODE_IS_ORDERED;
    f->unit[order->number].host = host;
    return CW_OK;
}

void far_units_kill(struct far_units *f, uint32_t number)
{
    struct cw_err err;

    nodes_tell_event(f->nodes, f->unit[number].host, NODE_UNIT_KILL, number, 0, &err);
}
