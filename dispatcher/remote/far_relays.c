#include "dispatcher/remote/far_relays.h"
#include "dispatcher/mux/agent_states.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct far_relays {
    struct agents *agents;
    const struct far_relays_events *events;
    void *ctx;
    enum agent_state *state; /* of each host's; owned */
};

/* Both addresses, with a blank between. */
static int tell_listens(struct far_relays *f, uint32_t host, char *addresses, struct cw_err *err)
{
    char *blank = strchr(addresses, ' ');

    if (!blank || blank - addresses >= CW_ADDRESS_MAX || strlen(blank + 1) >= CW_ADDRESS_MAX)
        return cw_err_set(err, CW_EPROTO, "addresses of its relay that make no sense");
    *blank = '\0';
    f->events->listens(f->ctx, host, addresses, blank + 1);
    return CW_OK;
}

static int on_frame(void *ctx, uint32_t host, uint32_t type, const uint8_t *body, size_t size,
                    struct cw_err *err)
{
    struct far_relays *f = ctx;
    struct agent_event event;
    struct cw_err why;

    if (!agent_event_get(body, size, &event))
        return cw_err_set(err, CW_EPROTO, "an event of its relay that makes no sense");
    if (agent_state_take(&f->state[host], type, err) < 0)
        return err->code;
    switch (type) {
    case AGENT_RELAY_STARTED:
        f->events->started(f->ctx, host, (pid_t)event.value);
        return CW_OK;
    case AGENT_RELAY_LISTENS:
        return tell_listens(f, host, event.text, err);
    case AGENT_RELAY_ENDED:
        if (!event.of)
            f->state[host] = AGENT_IS_NOT;
        f->events->ended(f->ctx, host, event.of != 0, (int)event.value);
        return CW_OK;
    default:
        cw_err_set(&why, CW_ESYS, "host %s: %.300s", agents_name(f->agents, host), event.text);
        f->events->failed(f->ctx, host, &why);
        return CW_OK;
    }
}

static void on_lost(void *ctx, uint32_t host)
{
    ((struct far_relays *)ctx)->state[host] = AGENT_IS_NOT;
}

static const struct agents_user agents_user = {
    .first = AGENT_RELAY_STARTED, .last = AGENT_RELAY_FAILED, .frame = on_frame, .lost = on_lost};

struct far_relays *far_relays_new(struct agents *agents, const struct far_relays_events *events,
                                  void *ctx, struct cw_err *err)
{
    struct far_relays *f = calloc(1, sizeof(*f));

    if (f)
        f->state = calloc(agents_count(agents), sizeof(*f->state));
    if (!f || !f->state) {
        free(f);
        cw_err_set(err, CW_ENOMEM, "no memory for the relays of hosts");
        return NULL;
    }
    f->agents = agents;
    f->events = events;
    f->ctx = ctx;
    agents_add_user(agents, &agents_user, f);
    return f;
}

void far_relays_free(struct far_relays *f)
{
    if (!f)
        return;
    free(f->state);
    free(f);
}

int far_relays_start(struct far_relays *f, uint32_t host, const struct agent_relay *relay,
                     struct cw_err *err)
{
    static uint8_t body[AGENT_RELAY_MAX];

    err->code = CW_OK;
    agents_tell(f->agents, host, AGENT_RELAY, body, agent_relay_put(body, relay), err);
    sodium_memzero(body, sizeof(body));
    if (err->code == CW_OK)
        f->state[host] = AGENT_IS_ORDERED;
    return err->code;
}

void far_relays_kill(struct far_relays *f, uint32_t host)
{
    struct cw_err err;

    agents_tell(f->agents, host, AGENT_RELAY_KILL, NULL, 0, &err);
}
