#include "dispatcher/mux/agent_states.h"
#include "dispatcher/mux/agent_frames.h"

#define IN(state) (1u << AGENT_IS_##state)
#define ALIVE_IN (IN(STARTED) | IN(LISTENING))

static const struct rule {
    uint32_t type;
    const char *name;
    uint32_t in; /* states */
    enum agent_state then;
} rules[] = {
    {AGENT_STARTED, "STARTED", IN(ORDERED), AGENT_IS_STARTED},
    {AGENT_FAILED, "FAILED", IN(ORDERED), AGENT_IS_NOT},
    {AGENT_ALIVE, "ALIVE", IN(STARTED), AGENT_IS_STARTED},
    {AGENT_ENDED, "ENDED", IN(STARTED), AGENT_IS_NOT},
    {AGENT_LOST, "LOST", IN(STARTED), AGENT_IS_NOT},
    {AGENT_UNIT_STARTED, "UNIT_STARTED", IN(ORDERED) | IN(ENDED), AGENT_IS_STARTED},
    {AGENT_UNIT_LISTENS, "UNIT_LISTENS", IN(STARTED), AGENT_IS_LISTENING},
    {AGENT_UNIT_ENDED, "UNIT_ENDED", ALIVE_IN, AGENT_IS_ENDED},
    {AGENT_UNIT_FAILED, "UNIT_FAILED", IN(ORDERED) | ALIVE_IN | IN(ENDED), AGENT_IS_NOT},
    {AGENT_STAGE_WANTED, "STAGE_WANTED", IN(ORDERED) | IN(WANTED), AGENT_IS_WANTED},
    {AGENT_STAGED, "STAGED", IN(ORDERED) | IN(WANTED), AGENT_IS_NOT},
    {AGENT_STAGE_FAILED, "STAGE_FAILED", IN(ORDERED) | IN(WANTED), AGENT_IS_NOT},
    {AGENT_ANSWER, "ANSWER", IN(ORDERED), AGENT_IS_NOT},
};

static const struct rule *rule_of(uint32_t type)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        if (rules[i].type == type)
            return &rules[i];
    return NULL;
}

static const char *name_of(enum agent_state state)
{
    static const char *const names[] = {
        [AGENT_IS_NOT] = "of which there is nothing to be said",
        [AGENT_IS_ORDERED] = "that was ordered, and has not started",
        [AGENT_IS_WANTED] = "whose bytes are on their way",
        [AGENT_IS_STARTED] = "that has started",
        [AGENT_IS_LISTENING] = "that listens",
        [AGENT_IS_ENDED] = "that has ended, and is to be started again",
    };

    return names[state];
}

int agent_state_take(enum agent_state *state, uint32_t type, struct cw_err *err)
{
    const struct rule *rule = rule_of(type);

    if (!rule)
        return cw_err_set(err, CW_EPROTO,
                          "its agent sends a frame of the type %u, which no agent "
                          "sends",
                          type);
    if (!(rule->in >> *state & 1))
        return cw_err_set(err, CW_EPROTO, "its agent sends %s about something %s", rule->name,
                          name_of(*state));
    *state = rule->then;
    return CW_OK;
}
