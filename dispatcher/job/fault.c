#include "dispatcher/job/fault.h"
#include "common/frame.h"
#include "common/parse.h"

#include <signal.h>
#include <string.h>

#define WHO_MAX 16 /* bytes of a rank, or of a name that stands for one */
#define RELAY "relay"

static const struct {
    const char *name;
    int signal_number;
} kinds[] = {
    [FAULT_KILL] = {"kill", SIGKILL}, [FAULT_STOP] = {"stop", SIGSTOP}, [FAULT_CUT] = {"cut", 0}};
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

/* "kill:", "stop:" or "cut:"; what follows is at *rest. */
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

static bool is_name(uint32_t rank)
{
    return rank >= FAULT_RELAY_0;
}

/* "relay" or "relayN". Errors: CW_EINVAL. */
static int parse_relay(struct fault *fault, const char *number, struct cw_err *err)
{
    uint64_t relay = FAULT_RELAY - FAULT_RELAY_0;

    if (*number && cw_parse_number("relay", number, 0, CW_RELAYS_MAX - 1, &relay, err) < 0)
        return err->code;
    fault->rank = FAULT_RELAY_0 + (uint32_t)relay;
    return CW_OK;
}

/* A rank or a name, from `text` to `end`. */
static int parse_who(struct fault *fault, const char *text, const char *end, struct cw_err *err)
{
    static const struct {
        const char *text;
        uint32_t rank;
    } names[] = {
        {"random", FAULT_RANDOM}, {"relays", FAULT_RELAYS}, {"dispatcher", FAULT_DISPATCHER}};
    char who[WHO_MAX];
    uint64_t rank;

    if ((size_t)(end - text) >= sizeof(who))
        return cw_err_set(err, CW_EINVAL, "no such rank");
    memcpy(who, text, (size_t)(end - text));
    who[end - text] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(who, names[i].text) == 0 &&
            (names[i].rank == FAULT_RANDOM || fault->kind == FAULT_CUT)) {
            fault->rank = names[i].rank;
            return CW_OK;
        }
    if (fault->kind == FAULT_KILL && strncmp(who, RELAY, strlen(RELAY)) == 0)
        return parse_relay(fault, who + strlen(RELAY), err);
    if (cw_parse_number("rank", who, 0, CW_RANKS_MAX - 1, &rank, err) < 0)
        return err->code;
    fault->rank = (uint32_t)rank;
    return CW_OK;
}

/* Whether the last of `count` faults goes with those before it. */
static int check_last(const struct fault *faults, uint32_t count, struct cw_err *err)
{
    const struct fault *last = &faults[count - 1];

    if (count > 1 && (is_name(last->rank) || is_name(faults[0].rank)))
        return cw_err_set(err, CW_EINVAL,
                          "'random', 'relay', 'relays' and 'dispatcher' stand alone");
    for (const struct fault *fault = faults; fault < last; fault++)
        if (fault->rank == last->rank)
            return cw_err_set(err, CW_EINVAL, "rank %u twice", last->rank);
    return CW_OK;
}

/* What stands before the '@'. Returns how many faults it makes. */
static int parse_ranks(struct fault *faults, uint32_t room, enum fault_kind kind, const char *text,
                       const char *at, struct cw_err *err)
{
    uint32_t count = 0;
    const char *end;

    for (;; text = end + 1) {
        end = memchr(text, ',', (size_t)(at - text));
        end = end ? end : at;
        if (count == room)
            return cw_err_set(err, CW_EINVAL, "more than %d faults", FAULTS_MAX);
        faults[count].kind = kind;
        if (parse_who(&faults[count], text, end, err) < 0 || check_last(faults, ++count, err) < 0)
            return err->code;
        if (end == at)
            return (int)count;
    }
}

/* What stands behind the '@'. */
static int parse_when(struct fault *fault, const char *text, struct cw_err *err)
{
    static const char event[] = "event:";

    if (strncmp(text, event, strlen(event)) == 0) {
        fault->when = FAULT_EVENT;
        if (fault->kind != FAULT_KILL || is_name(fault->rank))
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

static int parse_fault(struct fault *faults, uint32_t room, const char *text, struct cw_err *err)
{
    struct fault all = {.text = text};
    const char *who = text;
    const char *at;
    int count;

    if (parse_kind(&all, text, &who, err) < 0)
        return err->code;
    at = strchr(who, '@');
    if (!at)
        return cw_err_set(err, CW_EINVAL, "no '@', and so no time");
    count = parse_ranks(faults, room, all.kind, who, at, err);
    if (count < 0)
        return err->code;
    all.rank = faults[0].rank;
    if (parse_when(&all, at + 1, err) < 0)
        return err->code;
    for (int i = 0; i < count; i++) {
        all.rank = faults[i].rank;
        faults[i] = all;
        if (all.when == FAULT_EVENT)
            all.when = FAULT_WITH;
    }
    return count;
}

int fault_parse(struct fault *faults, uint32_t room, const char *text, struct cw_err *err)
{
    int count = parse_fault(faults, room, text, err);

    /* the forms come first: a long value that the cause quotes must not push them out */
    if (count < 0)
        return cw_err_wrap(err, "--fault '%.100s' (expected " FAULT_FORMS ")", text);
    return count;
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
    int count = fault_parse(&plan->faults[plan->count], FAULTS_MAX - plan->count, text, err);

    if (count < 0)
        return err->code;
    plan->count += (uint32_t)count;
    return CW_OK;
}

static int check_relay(const struct fault *fault, uint32_t relays, struct cw_err *err)
{
    uint32_t relay = fault->rank - FAULT_RELAY_0;

    if (relays == 0)
        return cw_err_set(err, CW_EINVAL,
                          "--fault '%.100s' is for the job's own relays, not with --relay",
                          fault->text);
    if (fault->rank != FAULT_RELAY && relay >= relays)
        return cw_err_set(err, CW_EINVAL, "--fault '%.100s': the job has no relay %u, %s %u",
                          fault->text, relay, relays == 1 ? "only" : "the last is", relays - 1);
    return CW_OK;
}

int fault_plan_check(struct fault_plan *plan, uint32_t ranks, uint32_t relays, struct cw_err *err)
{
    plan->relays = relays;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct fault *fault = &plan->faults[i];

        if (fault_is_relay(fault->rank) && check_relay(fault, relays, err) < 0)
            return err->code;
        if (!is_name(fault->rank) && fault->rank >= ranks)
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
        else
            fault->next_ns = UINT64_MAX;
    }
}

uint64_t fault_plan_deadline_ns(const struct fault_plan *plan)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; plan->started && i < plan->count; i++) {
        const struct fault *fault = &plan->faults[i];

        if (!fault->fired && !fault->waits && fault->next_ns < first)
            first = fault->next_ns;
    }
    return first;
}

/* Whether this fault, which is due, hits; chooses the victim. */
static bool shoot(struct fault_plan *plan, struct fault *fault, uint64_t now_ns, uint32_t ranks,
                  fault_can_hit *can_hit, void *ctx, struct fault_shot *shot)
{
    *shot = (struct fault_shot){.kind = fault->kind, .rank = fault->rank, .text = fault->text};
    if (fault->when == FAULT_EVERY) {
        shot->rank = (uint32_t)draw_below(&plan->random, ranks);
        set_next(plan, fault, now_ns);
        return can_hit(ctx, fault->kind, shot->rank);
    }
    if (fault->rank == FAULT_RELAY)
        shot->rank = FAULT_RELAY_0 + (uint32_t)draw_below(&plan->random, plan->relays);
    fault->fired = can_hit(ctx, fault->kind, shot->rank);
    fault->waits = !fault->fired;
    return fault->fired;
}

bool fault_plan_next(struct fault_plan *plan, uint64_t now_ns, uint32_t ranks,
                     fault_can_hit *can_hit, void *ctx, struct fault_shot *shot)
{
    for (uint32_t i = 0; plan->started && i < plan->count; i++) {
        struct fault *fault = &plan->faults[i];

        if (!fault->fired && fault->next_ns <= now_ns &&
            shoot(plan, fault, now_ns, ranks, can_hit, ctx, shot))
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

const char *fault_plan_taken(struct fault_plan *plan, uint32_t rank, uint32_t incarnation,
                             uint64_t now_ns)
{
    const struct fault *taken = fault_plan_at_event(plan, rank, incarnation);

    if (!taken)
        return NULL;
    for (uint32_t i = (uint32_t)(taken - plan->faults) + 1;
         i < plan->count && plan->faults[i].when == FAULT_WITH; i++)
        plan->faults[i].next_ns = now_ns;
    return taken->text;
}

uint64_t fault_plan_event_of(const struct fault_plan *plan, uint32_t rank, uint32_t incarnation)
{
    const struct fault *fault = fault_plan_at_event(plan, rank, incarnation);

    return fault ? fault->event : 0;
}
