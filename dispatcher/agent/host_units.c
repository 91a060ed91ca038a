#include "dispatcher/agent/host_units.h"

#include <sodium.h>
#include <stdio.h>

static void on_started(void *ctx, uint32_t number, pid_t pid, const char *place)
{
    agent_event_send(ctx, AGENT_UNIT_STARTED, number, (uint32_t)pid, place);
}

/* Both addresses, with a blank between. */
static void on_listens(void *ctx, uint32_t number, const char *local, const char *tcp,
                       bool in_memory)
{
    char text[2 * CW_ADDRESS_MAX];

    snprintf(text, sizeof(text), "%s %s", local, tcp);
    agent_event_send(ctx, AGENT_UNIT_LISTENS, number, in_memory, text);
}

static void on_ended(void *ctx, uint32_t number, int status, const char *why)
{
    agent_event_send(ctx, AGENT_UNIT_ENDED, number, (uint32_t)status, why);
}

static void on_failed(void *ctx, uint32_t number, int status, const struct cw_err *err)
{
    agent_event_send(ctx, AGENT_UNIT_FAILED, number, (uint32_t)status, err->text);
}

const struct units_events host_units_events = {
    .started = on_started, .listens = on_listens, .ended = on_ended, .failed = on_failed};

int host_units_start(struct units *units, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct agent_unit order;

    if (!agent_unit_get(body, size, &order))
        return cw_err_set(err, CW_EPROTO, "an order to start a unit that makes no sense");
    units_start(units, &order, NULL, err);
    sodium_memzero(order.key, sizeof(order.key));
    return err->code;
}

int host_units_kill(struct units *units, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct agent_event event;

    if (!agent_event_get(body, size, &event) || event.of >= AGENT_UNITS_MAX)
        return cw_err_set(err, CW_EPROTO, "an order to kill a unit that makes no sense");
    units_kill(units, event.of);
    return CW_OK;
}
