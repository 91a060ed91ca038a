#include "dispatcher/ranks/pmi.h"

#include <assert.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state { NONE, RUNNING, FINALIZED };

/* What one process said so far, and what its place is when it takes an image. A new
 * incarnation starts from zeros. */
struct talk {
    enum state state;
    uint64_t fences;  /* entered so far; waits while this is above the job's count */
    uint32_t answers; /* about names, given so far */
};

struct rank {
    struct talk talk[CW_REPLICAS];
    struct pmi_answer *answers; /* about names: what was answered, in order; owned, as the values */
    uint32_t answer_count;
    uint32_t answer_room;
    bool forgotten;   /* not all of them are kept */
    uint32_t entries; /* keys and names, which outlive the process, ... */
    size_t bytes;     /* ... and their size */
};

struct pmi {
    struct pmi_config config;
    char kvsname[PMI_KVSNAME_MAX];
    const struct pmi_ops *ops;
    void *ctx;
    uint64_t fences;  /* that all processes have passed */
    uint32_t waiting; /* processes in the next one */
    void *keys;       /* tsearch root: put and get */
    void *names;      /* tsearch root: publish, lookup, unpublish */
    struct rank rank[];
};

/* ---- keys and names, each put there by one rank, of which each may put a bounded part ---- */

/* tsearch orders by key. One allocation with both strings. */
struct pair {
    const char *key;
    const char *value;
    uint32_t owner;
    char bytes[];
};

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static struct pair *find(void *const *store, const char *key)
{
    struct pair probe = {.key = key};
    struct pair *const *node = tfind(&probe, store, compare_pairs);

    return node ? *node : NULL;
}

static size_t pair_size(const char *key, const char *value)
{
    return sizeof(struct pair) + strlen(key) + strlen(value) + 2;
}

/* The key is not there. Returns what is wrong; an exhausted memory is answered like a bound. */
static const char *add(struct pmi *pmi, void **store, uint32_t rank, const char *key,
                       const char *value)
{
    struct rank *owner = &pmi->rank[rank];
    size_t size = pair_size(key, value);
    struct pair *pair;

    if (owner->entries == PMI_ENTRIES_MAX || size > PMI_ENTRY_BYTES_MAX - owner->bytes)
        return "too_many_entries";
    pair = malloc(size);
    if (!pair)
        return "no_memory";
    pair->key = strcpy(pair->bytes, key);
    pair->value = strcpy(pair->bytes + strlen(key) + 1, value);
    pair->owner = rank;
    if (!tsearch(pair, store, compare_pairs)) {
        free(pair);
        return "no_memory";
    }
    owner->entries++;
    owner->bytes += size;
    return NULL;
}

static void take_back(struct pmi *pmi, void **store, struct pair *pair)
{
    struct rank *owner = &pmi->rank[pair->owner];

    assert(owner->entries > 0);
    owner->entries--;
    owner->bytes -= pair_size(pair->key, pair->value);
    tdelete(pair, store, compare_pairs);
    free(pair);
}

/* ---- answers ---- */

static struct talk *talk_of(struct pmi *pmi, struct cw_process process)
{
    return &pmi->rank[process.rank].talk[process.replica];
}

static void answer(struct pmi *pmi, struct cw_process process, enum pmi_what what,
                   const char *problem, const char *value)
{
    pmi->ops->answer(pmi->ctx, process,
                     &(struct pmi_answer){.what = what, .problem = problem, .value = value});
}

static void answer_number(struct pmi *pmi, struct cw_process process, enum pmi_what what,
                          const char *fmt, uint32_t number)
{
    char text[32];

    snprintf(text, sizeof(text), fmt, number);
    answer(pmi, process, what, NULL, text);
}

/* A key is put once. To put the same value again changes nothing and is no error. */
static void put(struct pmi *pmi, struct cw_process process, const struct pmi_request *request)
{
    const struct pair *old = find(&pmi->keys, request->key);
    const char *problem = NULL;

    if (!old)
        problem = add(pmi, &pmi->keys, process.rank, request->key, request->value);
    else if (strcmp(old->value, request->value) != 0)
        problem = "duplicate_key";
    answer(pmi, process, PMI_PUT, problem, NULL);
}

/* From node 0 on, N nodes with one rank each: MPICH's shared memory stays off, every message goes
 * through the device. */
static void get(struct pmi *pmi, struct cw_process process, const char *key)
{
    const struct pair *pair = find(&pmi->keys, key);

    if (strcmp(key, "PMI_process_mapping") == 0)
        answer_number(pmi, process, PMI_GET, "(vector,(0,%u,1))", pmi->config.ranks);
    else
        answer(pmi, process, PMI_GET, pair ? NULL : "key_not_found", pair ? pair->value : NULL);
}

static void fence(struct pmi *pmi, struct cw_process process)
{
    struct talk *talk = talk_of(pmi, process);

    if (++talk->fences <= pmi->fences) {
        /* another process of its rank passed it with the others */
        answer(pmi, process, PMI_FENCE, NULL, NULL);
        return;
    }
    assert(talk->fences == pmi->fences + 1);
    if (++pmi->waiting < pmi->config.ranks * CW_REPLICAS)
        return;
    pmi->waiting = 0;
    pmi->fences++;
    for (process.rank = 0; process.rank < pmi->config.ranks; process.rank++)
        for (process.replica = 0; process.replica < CW_REPLICAS; process.replica++)
            answer(pmi, process, PMI_FENCE, NULL, NULL);
}

/* ---- names, whose answers depend on when they were asked ---- */

/* False when there is no room for it. */
static bool keep_answer(struct rank *r, struct pmi_answer kept)
{
    if (r->answer_count == r->answer_room) {
        uint32_t room = r->answer_room ? 2 * r->answer_room : 8;
        struct pmi_answer *more =
            room <= PMI_ANSWERS_MAX ? realloc(r->answers, room * sizeof(*more)) : NULL;

        if (!more)
            return false;
        r->answers = more;
        r->answer_room = room;
    }
    if (kept.value && !(kept.value = strdup(kept.value)))
        return false;
    r->answers[r->answer_count++] = kept;
    return true;
}

static void name(struct pmi *pmi, struct cw_process process, const struct pmi_request *request)
{
    struct rank *r = &pmi->rank[process.rank];
    struct pair *pair = find(&pmi->names, request->key);
    struct pmi_answer a = {.what = request->what};

    if (a.what == PMI_PUBLISH)
        a.problem = pair ? "already_published"
                         : add(pmi, &pmi->names, process.rank, request->key, request->value);
    else if (!pair)
        a.problem = "service_not_found";
    else if (a.what == PMI_LOOKUP)
        a.value = pair->value;
    else
        take_back(pmi, &pmi->names, pair);
    pmi->ops->answer(pmi->ctx, process, &a);
    if (!r->forgotten && keep_answer(r, a)) {
        talk_of(pmi, process)->answers = r->answer_count;
    } else if (!r->forgotten) {
        r->forgotten = true;
        if (pmi->ops->forgotten)
            pmi->ops->forgotten(pmi->ctx, process.rank);
    }
}

/* What was answered to another process of its rank that asked this; NULL: none did. */
static const struct pmi_answer *answer_before(struct pmi *pmi, struct cw_process process,
                                              enum pmi_what what)
{
    const struct rank *r = &pmi->rank[process.rank];
    uint32_t given = talk_of(pmi, process)->answers;

    return what >= PMI_PUBLISH && given < r->answer_count ? &r->answers[given] : NULL;
}

/* ---- requests ---- */

static bool in_fence(struct pmi *pmi, struct cw_process process)
{
    return talk_of(pmi, process)->fences > pmi->fences;
}

/* A process waits for every answer; only ABORT may come from another of its threads meanwhile: so
 * nothing else is allowed in a fence, and nothing at all after FINALIZE. */
static const char *out_of_turn(struct pmi *pmi, struct cw_process process, enum pmi_what what)
{
    enum state state = talk_of(pmi, process)->state;
    bool waits = in_fence(pmi, process);

    if (state == FINALIZED)
        return "not allowed after finalize";
    if (what == PMI_ABORT || (!waits && (state == NONE) == (what == PMI_INIT)))
        return NULL;
    if (state == NONE)
        return "not allowed before init";
    return waits ? "not allowed while the rank waits in a barrier" : "not allowed after init";
}

static void act(struct pmi *pmi, struct cw_process process, const struct pmi_request *request)
{
    switch (request->what) {
    case PMI_APPNUM:
        answer_number(pmi, process, PMI_APPNUM, "%u",
                      pmi->config.appnums ? pmi->config.appnums[process.rank] : 0);
        break;
    case PMI_SPACE:
        answer(pmi, process, PMI_SPACE, NULL, pmi->kvsname);
        break;
    case PMI_SIZE:
        answer_number(pmi, process, PMI_SIZE, "%u", pmi->config.ranks);
        break;
    case PMI_GET:
        get(pmi, process, request->key);
        break;
    case PMI_PUT:
        put(pmi, process, request);
        break;
    case PMI_FENCE:
        fence(pmi, process);
        break;
    case PMI_PUBLISH:
    case PMI_LOOKUP:
    case PMI_UNPUBLISH:
        name(pmi, process, request);
        break;
    case PMI_SPAWN:
        answer(pmi, process, PMI_SPAWN, "spawn_is_not_supported", NULL);
        break;
    case PMI_INIT:
    case PMI_FINALIZE:
        talk_of(pmi, process)->state = request->what == PMI_INIT ? RUNNING : FINALIZED;
        /* fall through */
    case PMI_LIMITS:
        answer(pmi, process, request->what, NULL, NULL);
        break;
    case PMI_ABORT:
    case PMI_WHATS:
        break;
    }
}

const char *pmi_ask(struct pmi *pmi, struct cw_process process, const struct pmi_request *request)
{
    const struct pmi_answer *before = answer_before(pmi, process, request->what);
    const char *problem = out_of_turn(pmi, process, request->what);

    assert(process.rank < pmi->config.ranks && process.replica < CW_REPLICAS);
    if (problem)
        return problem;
    if (before && before->what != request->what)
        return "another request than before the restart";
    /* to another version the client answers itself, by ABORT */
    if (request->what == PMI_INIT && request->code)
        problem = "unknown_version";
    else if (request->space && strcmp(request->space, pmi->kvsname) != 0)
        problem = "unknown_kvsname";
    if (problem) {
        answer(pmi, process, request->what, problem, NULL);
        return NULL;
    }
    if (pmi->ops->asked)
        pmi->ops->asked(pmi->ctx, process, request);
    if (before) {
        talk_of(pmi, process)->answers++;
        pmi->ops->answer(pmi->ctx, process, before);
    } else {
        act(pmi, process, request);
    }
    return NULL;
}

/* ---- life and questions ---- */

struct pmi *pmi_new(const struct pmi_config *config, const struct pmi_ops *ops, void *ctx)
{
    struct pmi *pmi;

    assert(config->ranks > 0);
    assert(*config->kvsname && strlen(config->kvsname) < PMI_KVSNAME_MAX);
    assert(!strpbrk(config->kvsname, " \n"));
    pmi = calloc(1, sizeof(*pmi) + config->ranks * sizeof(struct rank));
    if (!pmi)
        return NULL;
    pmi->config = *config;
    strcpy(pmi->kvsname, config->kvsname);
    pmi->ops = ops;
    pmi->ctx = ctx;
    return pmi;
}

void pmi_free(struct pmi *pmi)
{
    if (!pmi)
        return;
    for (uint32_t r = 0; r < pmi->config.ranks; r++) {
        for (uint32_t i = 0; i < pmi->rank[r].answer_count; i++)
            free((char *)pmi->rank[r].answers[i].value);
        free(pmi->rank[r].answers);
    }
    tdestroy(pmi->keys, free);
    tdestroy(pmi->names, free);
    free(pmi);
}

void pmi_mark(struct pmi *pmi, struct cw_process process, uint32_t number)
{
    const struct talk *talk = talk_of(pmi, process);

    if (number && !in_fence(pmi, process))
        places_set(&pmi->config.places[process.rank], number, PLACE_PMI,
                   (uint64_t[PLACE_VALUES]){talk->state, talk->fences, talk->answers});
}

void pmi_restarted(struct pmi *pmi, struct cw_process process, uint32_t number)
{
    const uint64_t *at = places_at(&pmi->config.places[process.rank], number, PLACE_PMI);
    struct talk *talk = talk_of(pmi, process);

    if (in_fence(pmi, process)) {
        assert(pmi->waiting > 0);
        pmi->waiting--;
    }
    *talk = (struct talk){0};
    if (at)
        *talk =
            (struct talk){.state = (enum state)at[0], .fences = at[1], .answers = (uint32_t)at[2]};
}
