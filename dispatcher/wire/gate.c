#include "dispatcher/wire/gate.h"

#include <string.h>

void gate_init(struct gate *gate, void (*wants)(void *ctx), void *ctx)
{
    *gate = (struct gate){.wants = wants, .ctx = ctx};
}

void gate_open(struct gate *gate)
{
    gate->open = true;
}

/* What is under way was sent before, and says nothing of what comes now. */
uint64_t gate_enter(struct gate *gate)
{
    if (gate->open)
        return 0;
    if (gate->wanted <= gate->asked) {
        gate->wanted = gate->asked + 1;
        if (!gate->under_way)
            gate->wants(gate->ctx);
    }
    return gate->wanted;
}

bool gate_passes(const struct gate *gate, uint64_t token)
{
    return gate->open || token <= gate->covered;
}

bool gate_next(struct gate *gate, uint64_t *token)
{
    if (gate->open || gate->under_way || gate->wanted <= gate->covered)
        return false;
    gate->under_way = true;
    *token = ++gate->asked;
    return true;
}

bool gate_covered(struct gate *gate, uint64_t token)
{
    if (token <= gate->covered || token > gate->asked)
        return false;
    gate->covered = token;
    if (token == gate->asked)
        gate->under_way = false;
    return true;
}

void gate_again(struct gate *gate)
{
    gate->under_way = false;
}

/* --- streams --- */

static void let_pass(struct gate_line *line, const struct gate *gate)
{
    unsigned done = 0;

    while (done < line->waits && gate_passes(gate, line->wait[done].token))
        line->passed = line->wait[done++].until;
    line->waits -= done;
    memmove(line->wait, line->wait + done, line->waits * sizeof(*line->wait));
}

void gate_line_enter(struct gate_line *line, struct gate *gate, uint64_t until)
{
    uint64_t token = gate_enter(gate);

    let_pass(line, gate);
    if (line->waits == 0 && gate_passes(gate, token)) {
        line->passed = until;
        return;
    }
    if (line->waits == 0 ||
        (line->wait[line->waits - 1].token < token && line->waits < GATE_WAITS_MAX))
        line->waits++;
    line->wait[line->waits - 1].token = token;
    line->wait[line->waits - 1].until = until;
}

uint64_t gate_line_passed(const struct gate_line *line, const struct gate *gate)
{
    struct gate_line now = *line;

    let_pass(&now, gate);
    return now.passed;
}
