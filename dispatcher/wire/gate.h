/* What ranks of one relay say, and others would see, waits until that relay's log has copies of all
 * that led to it (docs/protocol.md, "COVER"): the relay is sent a token once it was said, and sends
 * it back when all that it had then is safe. One token is under way at a time, for all that came
 * before it was sent. What comes at one moment passes at one moment, whichever way it came: so what
 * a rank says to several descriptors keeps its order. Pure. */
#ifndef DISPATCHER_GATE_H
#define DISPATCHER_GATE_H

#include <stdbool.h>
#include <stdint.h>

/* Tokens are 1, 2, 3, ...; 0 has always come back. */
struct gate {
    bool open;        /* nothing waits any more */
    bool under_way;   /* a token is, ... */
    uint64_t asked;   /* ... this one, which was sent last */
    uint64_t covered; /* the last one that came back */
    uint64_t wanted;  /* the one that what came last waits for */
    void (*wants)(void *ctx);
    void *ctx;
};

/* Things wait from now on. wants(ctx) is called by gate_enter when gate_next will have a token. */
void gate_init(struct gate *gate, void (*wants)(void *ctx), void *ctx);
/* All that waits may pass, and what comes passes at once. */
void gate_open(struct gate *gate);

/* Something has come: it waits for this token. */
uint64_t gate_enter(struct gate *gate);
bool gate_passes(const struct gate *gate, uint64_t token);

/* Whether a token is to be sent now, *token, which is under way then. */
bool gate_next(struct gate *gate, uint64_t *token);
/* It came back. Returns whether something may pass that could not before. */
bool gate_covered(struct gate *gate, uint64_t token);
/* The token under way may never come back: another one is to be sent. */
void gate_again(struct gate *gate);

/* What waits of one stream: its bytes up to a position, for each token. More than two tokens are
 * possible only after gate_again(); then the later bytes wait for the last one together. */
#define GATE_WAITS_MAX 2

struct gate_line {
    struct {
        uint64_t token;
        uint64_t until;
    } wait[GATE_WAITS_MAX];
    unsigned waits;
    uint64_t passed;
};

/* The stream's bytes up to this position have come. */
void gate_line_enter(struct gate_line *line, struct gate *gate, uint64_t until);
/* The position up to which they may pass. */
uint64_t gate_line_passed(const struct gate_line *line, const struct gate *gate);

#endif
