#include "dispatcher/wire/node_states.h"
#include "dispatcher/wire/node_frames.h"

#define IN(state) (1u << NODE_IS_##state)
#define ALIVE_IN (IN(STARTED) | IN(LISTENING))

static const struct rule {
    uint32_t type;
    const char *name;
    uint32_t in; /* states */
    enum node_state then;
} rules[] = {
    {NODE_STARTED, "STARTED", IN(ORDERED), NODE_IS_STARTED},
    {NODE_FAILED, "FAILED", IN(ORDERED), NODE_IS_NOT},
    {NODE_ALIVE, "ALIVE", IN(STARTED), NODE_IS_STARTED},
    {NODE_ENDED, "ENDED", IN(STARTED), NODE_IS_NOT},
    {NODE_LOST, "LOST", IN(STARTED), NODE_IS_NOT},
    {NODE_UNIT_STARTED, "UNIT_STARTED", IN(ORDERED) | IN(ENDED), NODE_IS_STARTED},
    {NODE_UNIT_LISTENS, "UNIT_LISTENS", IN(STARTED), NODE_IS_LISTENING},
    {NODE_UNIT_ENDED, "UNIT_ENDED", ALIVE_IN, NODE_IS_ENDED},
    {NODE_UNIT_FAILED, "UNIT_FAILED", IN(ORDERED) | ALIVE_IN | IN(ENDED), NODE_IS_NOT},
    {NODE_STAGE_WANTED, "STAGE_WANTED", IN(ORDERED) | IN(WANTED), NODE_IS_WANTED},
    {NODE_STAGED, "STAGED", IN(ORDERED) | IN(WANTED), NODE_IS_NOT},
    {NODE_STAGE_FAILED, "STAGE_FAILED", IN(ORDERED) | IN(WANTED), NODE_IS_NOT},
    {NODE_ANSWER, "ANSWER", IN(ORDERED), NODE_IS_NOT},
};

static const struct rule *rule_of(uint32_t type)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        if (rules[i].type == type)
            return &rules[i];
    return NULL;
}

static const char *name_of(enum node_state state)
{
    static const char *const names[] = {
        [NODE_IS_NOT] = "of which there is nothing to be said",
        [NODE_IS_ORDERED] = "that was ordered, and has not started",
        [NODE_IS_WANTED] = "whose bytes are on their way",
        [NODE_IS_STARTED] = "that has started",
        [NODE_IS_LISTENING] = "that listens",
        [NODE_IS_ENDED] = "that has ended, and is to be started again",
    };

    return names[state];
}

int node_state_take(enum node_state *state, uint32_t type, struct cw_err *err)
{
    const struct rule *rule = rule_of(type);

    if (!rule)
        return cw_err_set(err, CW_EPROTO,
                          "its node sends a frame of the type %u, which no node "
                          "sends",
                          type);
    if (!(rule->in >> *state & 1))
        return cw_err_set(err, CW_EPROTO, "its node sends %s about something %s", rule->name,
                          name_of(*state));
    *state = rule->then;
    return CW_OK;
}
