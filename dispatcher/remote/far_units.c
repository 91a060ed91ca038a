#include "dispatcher/remote/far_units.h"
#include "dispatcher/mux/agent_states.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct far_units {
    struct agents *agents;
    const struct units_events *events;
    void *ctx;
    struct {
        uint32_t host;
        enum agent_state state;
    } unit[AGENT_UNITS_MAX];
};

/* Both addresses, with a blank between. */
static int tell_listens(const struct far_units *f, struct agent_event *event, struct cw_err *err)
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
    struct agent_event event;
    struct cw_err why;

    if (!agent_event_get(body, size, &event) || event.of >= AGENT_UNITS_MAX)
        return cw_err_set(err, CW_EPROTO, "an event of a unit that makes no sense");
    if (f->unit[event.of].state != AGENT_IS_NOT && f->unit[event.of].host != host)
        return cw_err_set(err, CW_EPROTO, "an event of unit %u, which it does not have", event.of);
    if (agent_state_take(&f->unit[event.of].state, type, err) < 0)
        return err->code;
    switch (type) {
    case AGENT_UNIT_STARTED:
        f->events->started(f->ctx, event.of, (pid_t)event.value, event.text);
        return CW_OK;
    case AGENT_UNIT_LISTENS:
        return tell_listens(f, &event, err);
    case AGENT_UNIT_ENDED:
        f->events->ended(f->ctx, event.of, (int)event.value, event.text);
        return CW_OK;
    default:
        cw_err_set(&why, CW_ESYS, "%.400s", event.text);
        if (host != agents_here(f->agents))
            cw_err_wrap(&why, "host %s", agents_name(f->agents, host));
        f->events->failed(f->ctx, event.of, (int)event.value, &why);
        return CW_OK;
    }
}

static void on_lost(void *ctx, uint32_t host)
{
    struct far_units *f = ctx;
    struct cw_err why;

    for (uint32_t i = 0; i < AGENT_UNITS_MAX; i++) {
        if (f->unit[i].state == AGENT_IS_NOT || f->unit[i].host != host)
            continue;
        f->unit[i].state = AGENT_IS_NOT;
        cw_err_set(&why, CW_ECLOSED, "host %s: it is lost", agents_name(f->agents, host));
        f->events->lost(f->ctx, i, &why);
    }
}

static const struct agents_user agents_user = {
    .first = AGENT_UNIT_STARTED, .last = AGENT_UNIT_FAILED, .frame = on_frame, .lost = on_lost};

struct far_units *far_units_new(struct agents *agents, const struct units_events *events, void *ctx,
                                struct cw_err *err)
{
    struct far_units *f = calloc(1, sizeof(*f));

    if (!f) {
        cw_err_set(err, CW_ENOMEM, "no memory for the relays of hosts");
        return NULL;
    }
    f->agents = agents;
    f->events = events;
    f->ctx = ctx;
    agents_add_user(agents, &agents_user, f);
    return f;
}

void far_units_free(struct far_units *f)
{
    free(f);
}

int far_units_start(struct far_units *f, uint32_t host, const struct agent_unit *order,
                    struct cw_err *err)
{
    uint8_t body[AGENT_UNIT_MAX];

    err->code = CW_OK;
    agents_tell(f->agents, host, AGENT_UNIT_START, body, agent_unit_put(body, order), err);
    sodium_memzero(body, sizeof(body));
    if (err->code)
        return err->code;
    f->unit[order->number].state = AGENT_IS_ORDERED;
    f->unit[order->number].host = host;
    return CW_OK;
}

void far_units_kill(struct far_units *f, uint32_t number)
{
    struct cw_err err;

    agents_tell_event(f->agents, f->unit[number].host, AGENT_UNIT_KILL, number, 0, &err);
}
