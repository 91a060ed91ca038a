#include "tests/interleave/explore.h"
#include "common/clock.h"
#include "tests/sim/coroutine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 4096u
#define STATES_FIRST (1u << 16)
#define STATES_MAX (1u << 25)
#define OPTIONS_MAX 64u
#define NOBODY MODEL_THREADS
#define SLEPT 1u /* an event */

enum option_kind { GO_ON, DIE };

struct option {
    enum option_kind kind;
    unsigned actor;
    unsigned choice; /* of stores */
};

enum actor_state { READY, ASLEEP, ENDED };

struct running_actor {
    struct coroutine *coroutine;
    enum actor_state state;
    struct model_op op; /* that it is about to do, or sleeps in */
    unsigned choice;
    unsigned lives;
};

static const struct program *program;
static struct running_actor actors[MODEL_THREADS];
static unsigned running = NOBODY;
static unsigned last; /* that ran */
static unsigned deaths;
static uint8_t *memory;
static size_t memory_size;
static struct state state; /* beside it */
static const char *wrong;
static bool tells;

/* the choices of this schedule, and how many there were each time */
static uint8_t taken[STEPS_MAX];
static uint8_t offered[STEPS_MAX];
static unsigned length; /* that are given */
static unsigned depth;
static uint64_t order; /* 0: each begins with the first option */

static uint64_t *states; /* a set of hashes; 0: free */
static size_t states_size;
static struct explored result;

void (*explore_meddle)(void *at, size_t size, bool writes);

/* --- a set ------------------------------------------------------------------------------------ */

static bool insert(uint64_t hash)
{
    size_t at = hash & (states_size - 1);

    while (states[at] && states[at] != hash)
        at = (at + 1) & (states_size - 1);
    if (states[at])
        return false;
    states[at] = hash;
    return true;
}

static void new_set(size_t size)
{
    states_size = size;
    states = calloc(size, sizeof(*states));
    if (!states)
        abort();
}

static void grow(void)
{
    uint64_t *old = states;
    size_t size = states_size;

    new_set(2 * size);
    for (size_t i = 0; i < size; i++)
        if (old[i])
            insert(old[i]);
    free(old);
}

/* False: it was seen before. */
static bool is_new(uint64_t hash)
{
    if (result.states >= states_size / 2)
        grow();
    if (!insert(hash | 1))
        return false;
    if (++result.states > STATES_MAX)
        wrong = "there are too many states";
    return true;
}

/* --- actors ----------------------------------------------------------------------------------- */

static void tell(const char *what, const struct running_actor *actor)
{
    static const char *const kinds[] = {"load",  "store", "exchange", "compare",
                                        "fence", "sleep", "wake",     "write"};
    const struct model_op *op = &actor->op;

    if (tells)
        printf("#   actor %zu %s%s %s at %zd, value %llx, expected %llx, order %d, store %u\n",
               (size_t)(actor - actors), actor->lives ? "again " : "", what, kinds[op->kind],
               op->at ? (uint8_t *)op->at - memory : -1, (unsigned long long)op->value,
               (unsigned long long)op->expected, op->order, actor->choice);
}

static void pause_actor(void)
{
    coroutine_yield(actors[running].coroutine);
}

static void run_actor(void *arg)
{
    struct running_actor *self = arg;

    program->actors[self - actors].run();
    self->state = ENDED;
    for (;;)
        pause_actor();
}

static void resume(unsigned actor)
{
    running = last = actor;
    coroutine_resume(actors[actor].coroutine);
    running = NOBODY;
}

static void start_actor(unsigned actor)
{
    actors[actor].coroutine = coroutine_new(run_actor, &actors[actor]);
    actors[actor].state = READY;
    resume(actor);
}

static struct model_result directly(const struct model_op *op)
{
    struct model_result result = {.done = true};

    if (op->kind == MODEL_FENCE || op->kind == MODEL_WRITE || op->kind == MODEL_WAKE)
        return result;
    memcpy(&result.value, op->at, op->size);
    result.done = op->kind != MODEL_COMPARE || result.value == op->expected;
    if (op->kind != MODEL_LOAD && result.done)
        memcpy(op->at, &op->value, op->size);
    return result;
}

static void meddle(void *at, size_t size, bool writes)
{
    if (explore_meddle && model_covers(at))
        explore_meddle(at, size, writes);
}

static void wake_all(const void *futex)
{
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        if (actors[i].state == ASLEEP && actors[i].op.at == futex) {
            actors[i].state = READY;
            model_follow(i, running);
        }
}

static bool is_option_to_die(const struct running_actor *actor)
{
    return program->actors[actor - actors].mortal && actor->state != ENDED &&
           deaths < program->deaths;
}

struct model_result explore_do(const struct model_op *op)
{
    struct running_actor *self;
    struct model_result result;

    if (running == NOBODY) {
        meddle(op->at, op->size, op->kind == MODEL_STORE);
        return directly(op);
    }
    self = &actors[running];
    self->op = *op;
    pause_actor();
    tell("does", self);
    result = model_do(running, op, self->choice);
    if (op->kind == MODEL_WAKE)
        wake_all(op->at);
    if (op->kind == MODEL_SLEEP && result.done) {
        self->state = ASLEEP;
        pause_actor();
    }
    if (model_wrong())
        explore_check(false, model_wrong());
    return result;
}

void explore_access(const void *at, size_t size, bool writes)
{
    if (running == NOBODY)
        meddle((void *)at, size, writes);
    if (running == NOBODY || !model_covers(at))
        return;
    if (writes && program->torn && is_option_to_die(&actors[running]))
        explore_do(&(struct model_op){.kind = MODEL_WRITE, .at = (void *)at});
    model_access(running, at, size, writes);
    if (model_wrong())
        explore_check(false, model_wrong());
}

void explore_forget(unsigned where)
{
    model_forget(running, where);
}

void explore_check(bool good, const char *what)
{
    if (good)
        return;
    wrong = what;
    if (running != NOBODY)
        pause_actor(); /* for ever */
}

void explore_sleep(_Atomic uint32_t *futex, uint32_t value)
{
    explore_do(&(struct model_op){
        .kind = MODEL_SLEEP, .at = futex, .size = sizeof(*futex), .expected = value});
}

void explore_wake(_Atomic uint32_t *futex)
{
    explore_do(&(struct model_op){.kind = MODEL_WAKE, .at = futex});
}

unsigned explore_lives(void)
{
    return actors[running].lives;
}

unsigned explore_deaths(void)
{
    return deaths;
}

/* --- schedules -------------------------------------------------------------------------------- */

static unsigned add_actor(struct option *options, unsigned count, unsigned actor)
{
    unsigned choices;

    if (!program->actors[actor].run || actors[actor].state != READY)
        return count;
    choices = model_choices(actor, &actors[actor].op);
    for (unsigned i = 0; i < choices && count < OPTIONS_MAX; i++)
        options[count++] = (struct option){GO_ON, actor, i};
    return count;
}

/* Nobody wakes anybody any more: who would have has died, or the program has it so. */
static bool time_out(void)
{
    bool any = false;

    for (unsigned i = 0; i < MODEL_THREADS && (deaths > 0 || program->times_out); i++)
        if (actors[i].state == ASLEEP) {
            tell("has slept for long enough in", &actors[i]);
            model_note(i, SLEPT);
            actors[i].state = READY;
            resume(i);
            any = true;
        }
    return any;
}

/* Nobody sees what is half written, so nobody else goes on meanwhile. */
static unsigned add_deaths(struct option *options, unsigned count, bool only_last)
{
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        if (program->actors[i].run && is_option_to_die(&actors[i]) && (i == last || !only_last))
            options[count++] = (struct option){DIE, i, 0};
    return count;
}

/* First those with which the one that ran goes on. */
static unsigned find_options(struct option *options)
{
    bool torn = actors[last].state == READY && actors[last].op.kind == MODEL_WRITE;
    unsigned count = add_actor(options, 0, last);

    for (unsigned i = 0; i < MODEL_THREADS && !torn; i++)
        if (i != last)
            count = add_actor(options, count, i);
    return add_deaths(options, count, torn);
}

static void take(const struct option *option)
{
    struct running_actor *actor = &actors[option->actor];

    actor->choice = option->choice;
    if (option->kind == DIE) {
        tell("dies, and does not", actor);
        deaths++;
        actor->lives++;
        coroutine_drop(actor->coroutine);
        model_forget(option->actor, actor->lives);
        model_succeed(option->actor);
        start_actor(option->actor);
        return;
    }
    resume(option->actor);
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, size_t size)
{
    uint64_t word;

    for (; size >= sizeof(word); size -= sizeof(word), bytes += sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    for (; size > 0; size--)
        hash = (hash ^ *bytes++) * 0x100000001b3ull;
    return hash;
}

/* All that decides how it can go on. */
static uint64_t hash_all(void)
{
    bool ended[MODEL_THREADS];
    uint64_t hash = 1 + deaths;

    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        ended[i] = !actors[i].coroutine || actors[i].state == ENDED;
        hash = hash * 4 + (actors[i].coroutine ? actors[i].state : 3);
    }
    if (actors[last].op.kind == MODEL_WRITE)
        hash += last << 16;
    hash = mix_bytes(hash, memory, memory_size);
    hash = mix_bytes(hash, state.at, state.size);
    return hash ^ model_hash(ended);
}

/* Which of the options this schedule takes; false: another went on from here in all ways. */
static bool choose(unsigned options, unsigned *option)
{
    *option = 0;
    if (options == 1)
        return true;
    if (depth == length) {
        if (length == STEPS_MAX)
            wrong = "it does not end";
        if (wrong || !is_new(hash_all()))
            return false;
        taken[length] = 0;
        offered[length++] = (uint8_t)options;
    }
    *option = (taken[depth] + (unsigned)(order * (depth + 1) >> 32)) % options;
    depth++;
    return true;
}

static bool have_ended(void)
{
    bool all = true;

    for (unsigned i = 0; i < MODEL_THREADS; i++)
        all &= !program->actors[i].run || actors[i].state == ENDED;
    return all;
}

/* Returns whether it came to its end. */
static bool run_on(void)
{
    struct option options[OPTIONS_MAX + MODEL_THREADS];
    unsigned count, option;

    while (!wrong && !have_ended()) {
        count = find_options(options);
        if (count == 0 || options[0].kind == DIE) {
            if (!time_out())
                wrong = "all sleep, and nobody wakes anybody";
            continue;
        }
        if (wrong || !choose(count, &option))
            return false;
        take(&options[option]);
    }
    return !wrong;
}

static void run_schedule(const uint8_t *memory_before, const void *state_before)
{
    memcpy(memory, memory_before, memory_size);
    memcpy(state.at, state_before, state.size);
    model_begin();
    memset(actors, 0, sizeof(actors));
    wrong = NULL;
    depth = deaths = 0;
    for (unsigned i = MODEL_THREADS; i-- > 0;)
        if (program->actors[i].run)
            start_actor(i);
    result.schedules++;
    if (run_on()) {
        result.whole++;
        program->end();
    }
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        if (actors[i].coroutine)
            coroutine_drop(actors[i].coroutine);
}

/* The next one in the order of all; false: there is none. */
static bool next_schedule(void)
{
    while (length > 0 && taken[length - 1] + 1 == offered[length - 1])
        length--;
    if (length > 0)
        taken[length - 1]++;
    return length > 0;
}

static uint8_t *copy_of(const void *from, size_t size)
{
    uint8_t *copy = malloc(size);

    if (!copy)
        abort();
    return memcpy(copy, from, size);
}

struct explored explore(const struct program *run, void *use, size_t size, struct state beside,
                        uint64_t seed, unsigned seconds)
{
    uint64_t end = cw_clock_ns() + seconds * 1000000000ull;
    uint8_t *memory_before, *state_before;

    program = run;
    memory = use;
    memory_size = size;
    state = beside;
    model_use(use, size);
    program->start();
    memory_before = copy_of(use, size);
    state_before = copy_of(state.at, state.size);
    result = (struct explored){0};
    length = 0;
    order = seed * 0x9e3779b97f4a7c15ull;
    new_set(STATES_FIRST);
    do {
        run_schedule(memory_before, state_before);
        result.stopped = seconds && cw_clock_ns() >= end;
    } while (!wrong && next_schedule() && !result.stopped);
    result.wrong = wrong;
    if (wrong) {
        tells = true;
        run_schedule(memory_before, state_before);
        tells = false;
    }
    free(states);
    free(memory_before);
    free(state_before);
    return result;
}
