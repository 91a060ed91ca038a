#include "dispatcher/pmi/pmi.h"
#include "dispatcher/places/places.h"
#include "dispatcher/pmi/pmi_line.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTED_BYTES 80  /* of a bad line, in an error text */
#define REPLY_SMALL 1023 /* the client's reader gives up on a longer line */
#define WIRE_VERSION 1
#define WIRE_SUBVERSION 1

/* A client writes its value into a buffer of PMI_LINE_MAX; it stops on less than this. */
_Static_assert(PMI_VALLEN_MAX > 256, "MPICH wants more than 256 bytes for a value");
/* MPICH cuts what is longer at (max - 2) / 2 when it puts, at (max - 1) / 2 when it gets. */
_Static_assert(PMI_VALLEN_MAX % 2 == 0, "an odd size makes MPICH cut values in two ways");

/* What one process of the rank said so far. A new incarnation starts from zeros. */
struct talk {
    enum pmi_state state;
    uint64_t barriers; /* entered so far; waits while this is above the job's count */
    char *partial;     /* owned; PMI_LINE_MAX bytes while a line is incomplete, else NULL */
    size_t partial_size;
    bool spawning; /* inside mcmd=spawn ... endcmd */
    uint32_t spawn_lines;
    long spawns_total;
    long spawns_sofar;
    uint32_t answers; /* about names, given so far */
};

struct rank {
    struct talk talk;
    char **answers; /* about names: what was answered, in order; owned, as are the strings */
    uint32_t answer_count;
    uint32_t answer_room;
    bool forgotten;         /* not all of them are kept */
    struct pmi_owner owner; /* of entries in both stores, which outlive the process */
    struct places places;   /* of its images */
};

/* Values of a place, as those of struct talk. */
enum { AT_STATE, AT_BARRIERS, AT_ANSWERS };

struct pmi {
    uint32_t ranks;
    char kvsname[PMI_KVSNAME_MAX];
    const uint32_t *appnums;
    const struct pmi_ops *ops;
    void *ctx;
    uint64_t barriers; /* that all ranks have passed */
    uint32_t waiting;
    void *keys;  /* tsearch root: put and get */
    void *names; /* tsearch root: publish, lookup, unpublish */
    struct rank rank[];
};

enum {
    IN_NONE = 1,
    IN_RUNNING = 2,
    IN_BARRIER = 4,
};

struct command {
    const char *name;
    unsigned states; /* in which it is allowed */
    int (*handler)(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err);
};

/* ---- errors and replies ---- */

/* Sets CW_EPROTO: "rank 3: PMI line 'cmd=...': why". */
static int refuse(struct cw_err *err, uint32_t rank, const char *text, const char *why)
{
    char quoted[QUOTED_BYTES + 1];
    size_t i;

    for (i = 0; text[i] && i < QUOTED_BYTES; i++)
        quoted[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    quoted[i] = '\0';
    return cw_err_set(err, CW_EPROTO, "rank %u: PMI line '%s%s': %s", rank, quoted,
                      text[i] ? "..." : "", why);
}

static int out_of_memory(struct cw_err *err, uint32_t rank)
{
    return cw_err_set(err, CW_ENOMEM, "rank %u: no memory for its PMI data", rank);
}

__attribute__((format(printf, 3, 4))) static void reply(struct pmi *pmi, uint32_t rank,
                                                        const char *fmt, ...)
{
    char text[REPLY_SMALL + 1];
    va_list ap;
    int size;

    va_start(ap, fmt);
    size = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    assert(size > 0 && (size_t)size < sizeof(text) && text[size - 1] == '\n');
    pmi->ops->reply(pmi->ctx, rank, text, (size_t)size);
}

/* ---- commands ---- */

static int on_init(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    int version;
    int subversion;
    bool known;

    if (!pmi_read_int(pmi_line_find(line, "pmi_version"), &version) ||
        !pmi_read_int(pmi_line_find(line, "pmi_subversion"), &subversion))
        return refuse(err, line->rank, line->text, "expected pmi_version= and pmi_subversion=");
    known = version == WIRE_VERSION && subversion >= 0 && subversion <= WIRE_SUBVERSION;
    if (known)
        pmi->rank[line->rank].talk.state = PMI_RUNNING;
    /* To another version the client answers itself, by abort. */
    reply(pmi, line->rank, "cmd=response_to_init rc=%d pmi_version=%d pmi_subversion=%d\n",
          known ? 0 : -1, WIRE_VERSION, WIRE_SUBVERSION);
    if (known)
        pmi->ops->initialized(pmi->ctx, line->rank);
    return CW_OK;
}

static int on_get_maxes(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    (void)err;
    reply(pmi, line->rank, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n",
          PMI_KVSNAME_MAX, PMI_KEYLEN_MAX, PMI_VALLEN_MAX);
    return CW_OK;
}

static int on_get_appnum(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    (void)err;
    reply(pmi, line->rank, "cmd=appnum appnum=%u\n", pmi->appnums ? pmi->appnums[line->rank] : 0);
    return CW_OK;
}

static int on_get_my_kvsname(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    (void)err;
    reply(pmi, line->rank, "cmd=my_kvsname kvsname=%s\n", pmi->kvsname);
    return CW_OK;
}

static int on_get_universe_size(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    (void)err;
    reply(pmi, line->rank, "cmd=universe_size size=%u\n", pmi->ranks);
    return CW_OK;
}

/* What put and get have in common; NULL when the line lacks something. */
static const char *read_key(const struct pmi_line *line, struct cw_err *err)
{
    const char *key = pmi_line_find(line, "key");

    if (!pmi_line_find(line, "kvsname") || !key || !*key || strlen(key) >= PMI_KEYLEN_MAX) {
        refuse(err, line->rank, line->text, "expected kvsname= and key= of at most 255 bytes");
        return NULL;
    }
    return key;
}

/* A key is put once. To put the same value again changes nothing and is no error. */
static const char *put(struct pmi *pmi, const struct pmi_line *line, const char *key,
                       const char *value)
{
    const struct pmi_pair *old = pmi_store_find(&pmi->keys, key);

    if (strcmp(pmi_line_find(line, "kvsname"), pmi->kvsname) != 0)
        return "unknown_kvsname";
    if (!old)
        return pmi_store_add(&pmi->keys, &pmi->rank[line->rank].owner, line->rank, key, value);
    return strcmp(old->value, value) == 0 ? NULL : "duplicate_key";
}

static int on_put(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    const char *key = read_key(line, err);
    const char *value = pmi_line_find(line, "value");
    const char *problem;

    if (!key)
        return err->code;
    if (!value || strlen(value) >= PMI_VALLEN_MAX)
        return refuse(err, line->rank, line->text, "expected value= within vallen_max");
    problem = put(pmi, line, key, value);
    reply(pmi, line->rank, "cmd=put_result rc=%d msg=%s\n", problem ? -1 : 0,
          problem ? problem : "success");
    return CW_OK;
}

static int on_get(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    const char *key = read_key(line, err);
    const struct pmi_pair *pair;

    if (!key)
        return err->code;
    if (strcmp(pmi_line_find(line, "kvsname"), pmi->kvsname) != 0) {
        reply(pmi, line->rank, "cmd=get_result rc=-1 msg=unknown_kvsname\n");
        return CW_OK;
    }
    /* From node 0 on, N nodes with one rank each: MPICH's shared memory stays off, every message
     * goes through the device. */
    if (strcmp(key, "PMI_process_mapping") == 0) {
        reply(pmi, line->rank, "cmd=get_result rc=0 msg=success value=(vector,(0,%u,1))\n",
              pmi->ranks);
        return CW_OK;
    }
    pair = pmi_store_find(&pmi->keys, key);
    if (pair)
        reply(pmi, line->rank, "cmd=get_result rc=0 msg=success value=%s\n", pair->value);
    else
        reply(pmi, line->rank, "cmd=get_result rc=-1 msg=key_not_found\n");
    return CW_OK;
}

static int on_barrier_in(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    struct talk *talk = &pmi->rank[line->rank].talk;

    (void)err;
    if (pmi->ops->entering)
        pmi->ops->entering(pmi->ctx, line->rank);
    if (++talk->barriers <= pmi->barriers) {
        /* a process before this one passed it with the others */
        reply(pmi, line->rank, "cmd=barrier_out\n");
        return CW_OK;
    }
    assert(talk->barriers == pmi->barriers + 1);
    pmi->waiting++;
    if (pmi->waiting < pmi->ranks)
        return CW_OK;
    pmi->waiting = 0;
    pmi->barriers++;
    for (uint32_t r = 0; r < pmi->ranks; r++)
        reply(pmi, r, "cmd=barrier_out\n");
    return CW_OK;
}

static int on_finalize(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    (void)err;
    pmi->rank[line->rank].talk.state = PMI_FINALIZED;
    reply(pmi, line->rank, "cmd=finalize_ack\n");
    pmi->ops->finalized(pmi->ctx, line->rank);
    return CW_OK;
}

static int on_abort(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    int code = 1;

    if (pmi_line_find(line, "exitcode") && !pmi_read_int(pmi_line_find(line, "exitcode"), &code))
        return refuse(err, line->rank, line->text, "exitcode= is no number");
    pmi->ops->aborted(pmi->ctx, line->rank, code);
    return CW_OK;
}

static const char *read_service(const struct pmi_line *line, struct cw_err *err)
{
    const char *service = pmi_line_find(line, "service");

    if (!service || !*service) {
        refuse(err, line->rank, line->text, "expected service=");
        return NULL;
    }
    return service;
}

/* ---- names, whose answers depend on when they were asked ---- */

/* False when there is no room for it. */
static bool keep_answer(struct rank *r, const char *text)
{
    if (r->answer_count == r->answer_room) {
        uint32_t room = r->answer_room ? 2 * r->answer_room : 8;
        char **more = room <= PMI_ANSWERS_MAX ? realloc(r->answers, room * sizeof(*more)) : NULL;

        if (!more)
            return false;
        r->answers = more;
        r->answer_room = room;
    }
    r->answers[r->answer_count] = strdup(text);
    if (!r->answers[r->answer_count])
        return false;
    r->talk.answers = ++r->answer_count;
    return true;
}

/* Answers, and keeps the answer. */
__attribute__((format(printf, 3, 4))) static void answer(struct pmi *pmi, uint32_t rank,
                                                         const char *fmt, ...)
{
    struct rank *r = &pmi->rank[rank];
    char text[REPLY_SMALL + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    reply(pmi, rank, "%s", text);
    if (r->forgotten || keep_answer(r, text))
        return;
    r->forgotten = true;
    if (pmi->ops->forgotten)
        pmi->ops->forgotten(pmi->ctx, rank);
}

/* True when this was answered before, to another process of the rank: the same goes out again.
 * `kind` is how such an answer begins. Sets the error when the rank asks something else now. */
static bool answered_before(struct pmi *pmi, const struct pmi_line *line, const char *kind,
                            struct cw_err *err)
{
    struct rank *r = &pmi->rank[line->rank];
    const char *text;

    if (r->talk.answers == r->answer_count)
        return false;
    text = r->answers[r->talk.answers++];
    if (strncmp(text, kind, strlen(kind)) == 0)
        reply(pmi, line->rank, "%s", text);
    else
        refuse(err, line->rank, line->text, "another request than before the restart");
    return true;
}

static int on_publish_name(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    const char *service = read_service(line, err);
    const char *port = pmi_line_find(line, "port");
    const char *problem;

    if (!service)
        return err->code;
    if (!port || strlen(port) >= PMI_VALLEN_MAX)
        return refuse(err, line->rank, line->text, "expected port= within vallen_max");
    if (answered_before(pmi, line, "cmd=publish_result", err))
        return err->code;
    problem =
        pmi_store_find(&pmi->names, service)
            ? "already_published"
            : pmi_store_add(&pmi->names, &pmi->rank[line->rank].owner, line->rank, service, port);
    answer(pmi, line->rank, "cmd=publish_result rc=%d msg=%s\n", problem ? -1 : 0,
           problem ? problem : "success");
    return CW_OK;
}

static int on_lookup_name(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    const char *service = read_service(line, err);
    const struct pmi_pair *pair;

    if (!service)
        return err->code;
    if (answered_before(pmi, line, "cmd=lookup_result", err))
        return err->code;
    pair = pmi_store_find(&pmi->names, service);
    if (pair)
        answer(pmi, line->rank, "cmd=lookup_result rc=0 msg=success port=%s\n", pair->value);
    else
        answer(pmi, line->rank, "cmd=lookup_result rc=-1 msg=service_not_found\n");
    return CW_OK;
}

static int on_unpublish_name(struct pmi *pmi, const struct pmi_line *line, struct cw_err *err)
{
    const char *service = read_service(line, err);
    struct pmi_pair *pair;

    if (!service)
        return err->code;
    if (answered_before(pmi, line, "cmd=unpublish_result", err))
        return err->code;
    pair = pmi_store_find(&pmi->names, service);
    if (pair)
        pmi_store_remove(&pmi->names, &pmi->rank[pair->owner].owner, pair);
    answer(pmi, line->rank, "cmd=unpublish_result rc=%d msg=%s\n", pair ? 0 : -1,
           pair ? "success" : "service_not_found");
    return CW_OK;
}

/* A rank blocks on every reply but that of abort, which another of its threads may send meanwhile:
 * so nothing else is allowed in a barrier, and nothing at all after finalize. */
static const struct command commands[] = {
    {"init", IN_NONE, on_init},
    {"get_maxes", IN_RUNNING, on_get_maxes},
    {"get_appnum", IN_RUNNING, on_get_appnum},
    {"get_my_kvsname", IN_RUNNING, on_get_my_kvsname},
    {"get_universe_size", IN_RUNNING, on_get_universe_size},
    {"put", IN_RUNNING, on_put},
    {"get", IN_RUNNING, on_get},
    {"barrier_in", IN_RUNNING, on_barrier_in},
    {"finalize", IN_RUNNING, on_finalize},
    {"abort", IN_NONE | IN_RUNNING | IN_BARRIER, on_abort},
    {"publish_name", IN_RUNNING, on_publish_name},
    {"lookup_name", IN_RUNNING, on_lookup_name},
    {"unpublish_name", IN_RUNNING, on_unpublish_name},
};

/* ---- mcmd=spawn: one value a line, until endcmd ---- */

static void begin_spawn(struct talk *talk)
{
    talk->spawning = true;
    talk->spawn_lines = 0;
    talk->spawns_total = 0;
    talk->spawns_sofar = 0;
}

/* MPI_Comm_spawn_multiple sends a block for each command and reads one reply, after the last. */
static void end_spawn(struct pmi *pmi, uint32_t rank)
{
    struct talk *talk = &pmi->rank[rank].talk;

    talk->spawning = false;
    if (talk->spawns_sofar >= talk->spawns_total)
        reply(pmi, rank, "cmd=spawn_result rc=-1 msg=spawn_is_not_supported\n");
}

static int take_spawn_line(struct pmi *pmi, uint32_t rank, const char *text, struct cw_err *err)
{
    struct talk *talk = &pmi->rank[rank].talk;
    const char *equals = strchr(text, '=');

    if (strcmp(text, "endcmd") == 0) {
        end_spawn(pmi, rank);
        return CW_OK;
    }
    if (!equals || equals == text)
        return refuse(err, rank, text, "expected KEY=VALUE or endcmd after mcmd=spawn");
    if (++talk->spawn_lines > PMI_SPAWN_LINES_MAX)
        return refuse(err, rank, text, "too many lines after mcmd=spawn");
    if (strncmp(text, "totspawns=", 10) == 0)
        talk->spawns_total = strtol(text + 10, NULL, 10);
    else if (strncmp(text, "spawnssofar=", 12) == 0)
        talk->spawns_sofar = strtol(text + 12, NULL, 10);
    return CW_OK;
}

/* ---- input ---- */

static unsigned allowed_now(const struct pmi *pmi, uint32_t rank)
{
    switch (pmi->rank[rank].talk.state) {
    case PMI_NONE:
        return IN_NONE;
    case PMI_RUNNING:
        return pmi_rank_in_barrier(pmi, rank) ? IN_BARRIER : IN_RUNNING;
    case PMI_FINALIZED:
        break;
    }
    return 0;
}

static const char *state_problem(const struct pmi *pmi, uint32_t rank)
{
    switch (allowed_now(pmi, rank)) {
    case IN_NONE:
        return "not allowed before init";
    case IN_RUNNING:
        return "not allowed after init";
    case IN_BARRIER:
        return "not allowed while the rank waits in a barrier";
    default:
        return "not allowed after finalize";
    }
}

static int run_command(struct pmi *pmi, const struct pmi_line *line, const char *name,
                       struct cw_err *err)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        if (strcmp(commands[i].name, name) != 0)
            continue;
        if (!(commands[i].states & allowed_now(pmi, line->rank)))
            return refuse(err, line->rank, line->text, state_problem(pmi, line->rank));
        return commands[i].handler(pmi, line, err);
    }
    return refuse(err, line->rank, line->text,
                  "unknown command; Causeway speaks PMI-1 as MPICH does: is the program linked "
                  "against MPICH?");
}

/* `text` is a line without its newline, terminated. */
static int take_line(struct pmi *pmi, uint32_t rank, const char *text, struct cw_err *err)
{
    char cut[PMI_LINE_MAX];
    struct pmi_line line = {.rank = rank, .text = text};

    if (pmi->rank[rank].talk.spawning)
        return take_spawn_line(pmi, rank, text, err);
    strcpy(cut, text);
    if (!pmi_line_split(&line, cut))
        return refuse(err, rank, text, "expected cmd=NAME KEY=VALUE ...");
    if (strcmp(line.fields[0].key, "cmd") == 0)
        return run_command(pmi, &line, line.fields[0].value, err);
    if (strcmp(text, "mcmd=spawn") != 0)
        return refuse(err, rank, text, "expected cmd=NAME or mcmd=spawn at its start");
    if (allowed_now(pmi, rank) != IN_RUNNING)
        return refuse(err, rank, text, state_problem(pmi, rank));
    begin_spawn(&pmi->rank[rank].talk);
    return CW_OK;
}

static void drop_partial(struct talk *talk)
{
    free(talk->partial);
    talk->partial = NULL;
    talk->partial_size = 0;
}

static int keep_partial(struct talk *talk, uint32_t rank, const char *bytes, size_t size,
                        struct cw_err *err)
{
    assert(talk->partial_size + size < PMI_LINE_MAX);
    if (!talk->partial)
        talk->partial = malloc(PMI_LINE_MAX);
    if (!talk->partial)
        return out_of_memory(err, rank);
    memcpy(talk->partial + talk->partial_size, bytes, size);
    talk->partial_size += size;
    return CW_OK;
}

/* Puts what was kept and `size` bytes more into `text`, terminated. */
static void join(char text[PMI_LINE_MAX], const struct talk *talk, const char *bytes, size_t size)
{
    if (talk->partial_size)
        memcpy(text, talk->partial, talk->partial_size);
    memcpy(text + talk->partial_size, bytes, size);
    text[talk->partial_size + size] = '\0';
}

/* Takes the next line, or the start of one. Sets how many bytes that was. */
static int take_next(struct pmi *pmi, uint32_t rank, const char *bytes, size_t size, size_t *taken,
                     struct cw_err *err)
{
    struct talk *talk = &pmi->rank[rank].talk;
    const char *newline = memchr(bytes, '\n', size);
    size_t part = newline ? (size_t)(newline - bytes) : size;
    size_t room = PMI_LINE_MAX - 1 - talk->partial_size;
    char text[PMI_LINE_MAX];

    *taken = newline ? part + 1 : part;
    if (!newline && part <= room)
        return keep_partial(talk, rank, bytes, part, err);
    join(text, talk, bytes, part <= room ? part : room);
    if (part > room)
        return refuse(err, rank, text, "longer than 1024 bytes");
    if (strlen(text) != talk->partial_size + part)
        return refuse(err, rank, text, "a zero byte follows");
    drop_partial(talk);
    return take_line(pmi, rank, text, err);
}

int pmi_input(struct pmi *pmi, uint32_t rank, const char *bytes, size_t size, struct cw_err *err)
{
    assert(rank < pmi->ranks);
    err->code = CW_OK;
    while (size) {
        size_t taken;

        if (take_next(pmi, rank, bytes, size, &taken, err) < 0) {
            drop_partial(&pmi->rank[rank].talk);
            return err->code;
        }
        assert(taken > 0 && taken <= size);
        bytes += taken;
        size -= taken;
    }
    return CW_OK;
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
    pmi->ranks = config->ranks;
    strcpy(pmi->kvsname, config->kvsname);
    pmi->appnums = config->appnums;
    pmi->ops = ops;
    pmi->ctx = ctx;
    return pmi;
}

void pmi_free(struct pmi *pmi)
{
    if (!pmi)
        return;
    for (uint32_t r = 0; r < pmi->ranks; r++) {
        drop_partial(&pmi->rank[r].talk);
        for (uint32_t i = 0; i < pmi->rank[r].answer_count; i++)
            free(pmi->rank[r].answers[i]);
        free(pmi->rank[r].answers);
    }
    tdestroy(pmi->keys, free);
    tdestroy(pmi->names, free);
    free(pmi);
}

void pmi_rank_mark(struct pmi *pmi, uint32_t rank, uint32_t number)
{
    const struct talk *talk = &pmi->rank[rank].talk;
    struct place place = {.number = number};

    assert(rank < pmi->ranks);
    if (number == 0 || talk->partial || talk->spawning || pmi_rank_in_barrier(pmi, rank))
        return;
    place.at[AT_STATE] = talk->state;
    place.at[AT_BARRIERS] = talk->barriers;
    place.at[AT_ANSWERS] = talk->answers;
    places_add(&pmi->rank[rank].places, &place);
}

bool pmi_rank_has_place(const struct pmi *pmi, uint32_t rank, uint32_t number)
{
    assert(rank < pmi->ranks);
    return places_find(&pmi->rank[rank].places, number);
}

void pmi_rank_forget_before(struct pmi *pmi, uint32_t rank, uint32_t number)
{
    assert(rank < pmi->ranks);
    places_forget_before(&pmi->rank[rank].places, number);
}

void pmi_rank_restarted(struct pmi *pmi, uint32_t rank, uint32_t number)
{
    struct talk *talk = &pmi->rank[rank].talk;
    const struct place *place = places_find(&pmi->rank[rank].places, number);

    assert(rank < pmi->ranks);
    if (pmi_rank_in_barrier(pmi, rank)) {
        assert(pmi->waiting > 0);
        pmi->waiting--;
    }
    drop_partial(talk);
    *talk = (struct talk){0};
    if (!place)
        return;
    talk->state = (enum pmi_state)place->at[AT_STATE];
    talk->barriers = place->at[AT_BARRIERS];
    talk->answers = (uint32_t)place->at[AT_ANSWERS];
}

bool pmi_rank_in_barrier(const struct pmi *pmi, uint32_t rank)
{
    assert(rank < pmi->ranks);
    return pmi->rank[rank].talk.barriers > pmi->barriers;
}

uint32_t pmi_waiting(const struct pmi *pmi)
{
    return pmi->waiting;
}

enum pmi_state pmi_state_of(const struct pmi *pmi, uint32_t rank)
{
    assert(rank < pmi->ranks);
    return pmi->rank[rank].talk.state;
}
