#include "dispatcher/fault.h"
#include "common/frame.h"
#include "common/parse.h"

#include <signal.h>
#include <string.h>

#define WHO_MAX 16 /* bytes of a rank, or "random" */

static const struct {
    const char *name;
    int signal_number;
} kinds[] = {[FAULT_KILL] = {"kill", SIGKILL}, [FAULT_STOP] = {"stop", SIGSTOP}};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

const char *fault_kind_name(enum fault_kind kind)
{
    return kinds[kind].name;
}

int fault_kind_signal(enum fault_kind kind)
{
    return kinds[kind].signal_number;
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* A number below `bound`, which is not 0. */
static uint64_t draw_below(uint64_t *state, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)draw(state) * bound >> 64);
}

/* "kill:" or "stop:"; what follows is at *rest. */
static int parse_kind(struct fault *fault, const char *text, const char **rest, struct cw_err *err)
{
    for (size_t i = 0; i < KINDS; i++) {
        size_t size = strlen(kinds[i].name);

        if (strncmp(text, kinds[i].name, size) == 0 && text[size] == ':') {
            fault->kind = (enum fault_kind)i;
            *rest = text + size + 1;
            return CW_OK;
        }
    }
    return cw_err_set(err, CW_EINVAL, "no such fault");
}

/* What stands before the '@'. */
static int parse_who(struct fault *fault, const char *text, const char *at, struct cw_err *err)
{
    char who[WHO_MAX];
    uint64_t rank;

    if ((size_t)(at - text) >= sizeof(who))
        return cw_err_set(err, CW_EINVAL, "no such rank");
    memcpy(who, text, (size_t)(at - text));
    who[at - text] = '\0';
    fault->rank = FAULT_RANDOM;
    if (strcmp(who, "random") == 0)
        return CW_OK;
    if (cw_parse_number("rank", who, 0, CW_RANKS_MAX - 1, &rank, err) < 0)
        return err->code;
    fault->rank = (uint32_t)rank;
    return CW_OK;
}

/* What stands behind the '@'. */
static int parse_when(struct fault *fault, const char *text, struct cw_err *err)
{
    static const char event[] = "event:";

    if (strncmp(text, event, strlen(event)) == 0) {
        fault->when = FAULT_EVENT;
        if (fault->kind != FAULT_KILL || fault->rank == FAULT_RANDOM)
            return cw_err_set(err, CW_EINVAL, "at an event a rank can only kill itself");
        return cw_parse_number("event", text + strlen(event), 1, UINT64_MAX, &fault->event, err);
    }
    fault->when = fault->rank == FAULT_RANDOM ? FAULT_EVERY : FAULT_AT;
    if (cw_parse_duration("time", text, &fault->time_ns, err) < 0)
        return err->code;
    if (fault->when == FAULT_EVERY && fault->time_ns < FAULT_EVERY_NS_MIN)
        return cw_err_set(err, CW_EINVAL, "time '%s': at least %llums", text,
                          FAULT_EVERY_NS_MIN / 1000000);
    return CW_OK;
}

int fault_parse(struct fault *fault, const char *text, struct cw_err *err)
{
    const char *who = text;
    const char *at;

    *fault = (struct fault){.text = text};
    if (parse_kind(fault, text, &who, err) == CW_OK) {
        at = strchr(who, '@');
        if (!at)
            cw_err_set(err, CW_EINVAL, "no '@', and so no time");
        else if (parse_who(fault, who, at, err) == CW_OK && parse_when(fault, at + 1, err) == CW_OK)
            return CW_OK;
    }
    /* the forms come first: a long value that the cause quotes must not push them out */
    return cw_err_wrap(err, "--fault '%.100s' (expected " FAULT_FORMS ")", text);
}

void fault_plan_init(struct fault_plan *plan)
{
    *plan = (struct fault_plan){.seed = FAULT_SEED};
}

void fault_plan_seed(struct fault_plan *plan, uint64_t seed)
{
    plan->seed = seed;
}

int fault_plan_add(struct fault_plan *plan, const char *text, struct cw_err *err)
{
    if (plan->count == FAULTS_MAX)
        return cw_err_set(err, CW_EINVAL, "--fault '%.100s': more than %d faults", text,
                          FAULTS_MAX);
    if (fault_parse(&plan->faults[plan->count], text, err) < 0)
        return err->code;
    plan->count++;
    return CW_OK;
}

int fault_plan_check(const struct fault_plan *plan, uint32_t ranks, struct cw_err *err)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct fault *fault = &plan->faults[i];

        if (fault->rank != FAULT_RANDOM && fault->rank >= ranks)
            return cw_err_set(err, CW_EINVAL, "--fault '%.100s': the job has no rank %u, %s %u",
                              fault->text, fault->rank, ranks == 1 ? "only" : "the last is",
                              ranks - 1);
    }
    return CW_OK;
}

/* 0.5 to 1.5 times the interval from now on: after a pause of the dispatcher the faults that it
 * missed do not come all at once. */
static void set_next(struct fault_plan *plan, struct fault *fault, uint64_t now_ns)
{
    fault->next_ns = now_ns + fault->time_ns / 2 + draw_below(&plan->random, fault->time_ns + 1);
}

void fault_plan_start(struct fault_plan *plan, uint64_t now_ns)
{
    plan->random = plan->seed;
    plan->started = true;
    for (uint32_t i = 0; i < plan->count; i++) {
        struct fault *fault = &plan->faults[i];

        if (fault->when == FAULT_AT)
            fault->next_ns = now_ns + fault->time_ns;
        else if (fault->when == FAULT_EVERY)
            set_next(plan, fault, now_ns);
    }
}

uint64_t fault_plan_deadline_ns(const struct fault_plan *plan)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; plan->started && i < plan->count; i++) {
        const struct fault *fault = &plan->faults[i];

        if (fault->when != FAULT_EVENT && !fault->fired && !fault->waits && fault->next_ns < first)
            first = fault->next_ns;
    }
    return first;
}

/* Whether this fault, which is due, hits; chooses the victim. */
static bool shoot(struct fault_plan *plan, struct fault *fault, uint64_t now_ns, uint32_t ranks,
                  bool (*runs)(void *ctx, uint32_t rank), void *ctx, struct fault_shot *shot)
{
    *shot = (struct fault_shot){.kind = fault->kind, .rank = fault->rank, .text = fault->text};
    if (fault->when == FAULT_EVERY) {
        shot->rank = (uint32_t)draw_below(&plan->random, ranks);
        set_next(plan, fault, now_ns);
        return runs(ctx, shot->rank);
    }
    fault->fired = runs(ctx, fault->rank);
    fault->waits = !fault->fired;
    return fault->fired;
}

bool fault_plan_next(struct fault_plan *plan, uint64_t now_ns, uint32_t ranks,
                     bool (*runs)(void *ctx, uint32_t rank), void *ctx, struct fault_shot *shot)
{
    for (uint32_t i = 0; plan->started && i < plan->count; i++) {
        struct fault *fault = &plan->faults[i];

        if (fault->when != FAULT_EVENT && !fault->fired && fault->next_ns <= now_ns &&
            shoot(plan, fault, now_ns, ranks, runs, ctx, shot))
            return true;
    }
    return false;
}

const struct fault *fault_plan_at_event(const struct fault_plan *plan, uint32_t rank,
                                        uint32_t incarnation)
{
    uint32_t nth = 0;

    for (uint32_t i = 0; i < plan->count; i++) {
        const struct fault *fault = &plan->faults[i];

        if (fault->when == FAULT_EVENT && fault->rank == rank && ++nth == incarnation)
            return fault;
    }
    return NULL;
}

uint64_t fault_plan_event_of(const struct fault_plan *plan, uint32_t rank, uint32_t incarnation)
{
    const struct fault *fault = fault_plan_at_event(plan, rank, incarnation);

    return fault ? fault->event : 0;
}
