#include "dispatcher/agent/agent_tell.h"

#include <string.h>

void agent_tell(struct mux *mux, uint32_t type, uint32_t of, uint32_t value, const char *text)
{
    struct agent_event event = {.of = of, .value = value};
    uint8_t body[AGENT_EVENT_MAX];
    struct cw_err err;

    strncpy(event.text, text, sizeof(event.text) - 1);
    mux_send(mux, type, body, agent_event_put(body, &event), &err);
}
