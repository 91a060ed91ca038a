/* Whatever nodes say, in any order, between orders to them: what is told of ranks keeps its word
 * (started, failed, ended and lost of a rank as of remote.h, and signs of life only of its
 * process), a unit is told of in order, and a program is told once. A node that is caught is
 * lost.
 *
 * The sessions are real; what nodes.c does around them is done here. Each 4 bytes are a step. */
#include "dispatcher/launch/far_units.h"
#include "dispatcher/launch/nodes.h"
#include "dispatcher/launch/remote.h"
#include "dispatcher/launch/staging.h"
#include "dispatcher/wire/channel.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#define HOSTS 2u
#define RANKS 3u
#define STEPS_MAX 200

/* --- nodes.h --- */

struct nodes {
    const struct nodes_user *user[NODES_USERS];
    void *ctx[NODES_USERS];
    uint32_t users;
    struct mux *ours[HOSTS], *theirs[HOSTS];
};

static struct nodes all;
static struct loop *loop;

void nodes_add_user(struct nodes *a, const struct nodes_user *user, void *ctx)
{
    must(a->users < NODES_USERS);
    a->user[a->users] = user;
    a->ctx[a->users++] = ctx;
}

struct mux *nodes_mux(struct nodes *a, uint32_t host)
{
    return a->ours[host];
}

int nodes_tell(struct nodes *a, uint32_t host, uint32_t type, const void *body, size_t size,
               struct cw_err *err)
{
    if (!a->ours[host])
        return cw_err_set(err, CW_ECLOSED, "host %u is lost", host);
    return mux_send(a->ours[host], type, body, size, err);
}

int nodes_tell_event(struct nodes *a, uint32_t host, uint32_t type, uint32_t of, uint32_t value,
                     struct cw_err *err)
{
    struct node_event event = {.of = of, .value = value};
    uint8_t body[NODE_EVENT_MAX];

    return nodes_tell(a, host, type, body, node_event_put(body, &event), err);
}

uint32_t nodes_here(const struct nodes *a)
{
    (void)a;
    return HOSTS;
}

uint32_t nodes_count(const struct nodes *a)
{
    (void)a;
    return HOSTS;
}

const char *nodes_name(const struct nodes *a, uint32_t host)
{
    (void)a;
    return host ? "two" : "one";
}

static int ours_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size,
                      struct cw_err *err)
{
    for (uint32_t i = 0; i < all.users; i++)
        if (type >= all.user[i]->first && type <= all.user[i]->last)
            return all.user[i]->frame(all.ctx[i], (uint32_t)(uintptr_t)ctx, type, body, size, err);
    return cw_err_set(err, CW_EPROTO, "nobody's");
}

static int theirs_frame(void *ctx, uint32_t type, const uint8_t *body, size_t size,
                        struct cw_err *err)
{
    (void)ctx;
    (void)type;
    (void)body;
    (void)size;
    (void)err;
    return CW_OK;
}

static void on_output(void *ctx)
{
    (void)ctx;
}

static const struct mux_ops ours_ops = {ours_frame, on_output};
static const struct mux_ops theirs_ops = {theirs_frame, on_output};

/* --- what is told --- */

static struct {
    enum { NONE, ORDERED, STARTED, LOST } state; /* LOST: to be detached */
    uint32_t host, incarnation;
} ranks[RANKS];

static struct channels channels;

static void on_started(void *ctx, const struct remote_process *p)
{
    (void)ctx;
    must(p->id.rank < RANKS && ranks[p->id.rank].state == ORDERED);
    must(p->id.incarnation == ranks[p->id.rank].incarnation);
    ranks[p->id.rank].state = STARTED;
    for (int i = 0; i < LAUNCH_STREAMS; i++)
        channel_close(p->channel[i]);
}

static void on_failed(void *ctx, struct cw_process process, const struct cw_err *err)
{
    (void)ctx;
    must(process.rank < RANKS && ranks[process.rank].state == ORDERED && err->text[0]);
    ranks[process.rank].state = NONE;
}

static void on_life(void *ctx, struct cw_process process, enum life_what what)
{
    (void)ctx;
    must(process.rank < RANKS && ranks[process.rank].state == STARTED &&
         process.incarnation == ranks[process.rank].incarnation);
    if (what == LIFE_DEAD)
        ranks[process.rank].state = LOST;
}

static void on_ended(void *ctx, struct cw_process process, int status)
{
    (void)ctx;
    (void)status;
    must(process.rank < RANKS && ranks[process.rank].state == STARTED);
    ranks[process.rank].state = NONE;
}

static void on_superseded_ended(void *ctx, struct cw_process process)
{
    (void)ctx;
    must(process.rank < RANKS && process.incarnation <= ranks[process.rank].incarnation);
    must(ranks[process.rank].state == NONE ||
         process.incarnation < ranks[process.rank].incarnation);
}

static const struct remote_events remote_events = {on_started, on_failed, on_life, on_ended,
                                                   on_superseded_ended};

/* Unit n is ordered on host n % HOSTS. */
static enum { UNIT_NOT, UNIT_ORDERED, UNIT_STARTED, UNIT_LISTENS } unit[NODE_UNITS_MAX];

static void on_unit_started(void *ctx, uint32_t number, pid_t pid, const char *place)
{
    (void)ctx;
    (void)pid;
    (void)place;
    must(number < NODE_UNITS_MAX && unit[number] == UNIT_ORDERED);
    unit[number] = UNIT_STARTED;
}

static void on_unit_listens(void *ctx, uint32_t number, const char *local, const char *tcp,
                            bool in_memory)
{
    (void)ctx;
    (void)in_memory;
    must(unit[number] == UNIT_STARTED && strlen(local) < CW_ADDRESS_MAX &&
         strlen(tcp) < CW_ADDRESS_MAX);
    unit[number] = UNIT_LISTENS;
}

static void on_unit_ended(void *ctx, uint32_t number, int status, const char *why)
{
    (void)ctx;
    (void)status;
    (void)why;
    must(unit[number] >= UNIT_STARTED);
    unit[number] = UNIT_ORDERED;
}

static void on_unit_failed(void *ctx, uint32_t number, int status, const struct cw_err *err)
{
    (void)ctx;
    (void)status;
    (void)err;
    must(unit[number] != UNIT_NOT);
    unit[number] = UNIT_NOT;
}

static void on_unit_lost(void *ctx, uint32_t number, const struct cw_err *err)
{
    on_unit_failed(ctx, number, UNIT_NO_STATUS, err);
}

static const struct units_events units_events = {on_unit_started, on_unit_listens, on_unit_ended,
                                                 on_unit_failed, on_unit_lost};

static bool staged[HOSTS], all_staged, failed;

static void on_staged(void *ctx, uint32_t host, uint32_t number, bool sent)
{
    (void)ctx;
    (void)sent;
    must(number == 0 && !staged[host]);
    staged[host] = true;
}

static void on_stage_failed(void *ctx, const struct cw_err *err)
{
    (void)ctx;
    must(err->text[0]);
    failed = true;
}

static void on_all_staged(void *ctx)
{
    (void)ctx;
    must(!all_staged && !failed);
    all_staged = true;
}

static void on_returned(void *ctx, uint32_t host)
{
    (void)ctx;
    must(staged[host]);
}

static const struct staging_events staging_events = {
    .staged = on_staged, .failed = on_stage_failed, .done = on_all_staged, .returned = on_returned};

/* --- steps --- */

static struct far_units *units;
static struct staging *staging;
static struct remote *remote;

static void open_host(uint32_t host)
{
    struct cw_err err;

    all.ours[host] = mux_new(&ours_ops, (void *)(uintptr_t)host, &err);
    all.theirs[host] = mux_new(&theirs_ops, NULL, &err);
    must(all.ours[host] && all.theirs[host]);
    mux_connect(all.ours[host], 0, &err);
    mux_connect(all.theirs[host], 0, &err);
}

/* As job.c does: all that ran there is detached. */
static void lose(uint32_t host)
{
    for (uint32_t i = 0; i < all.users; i++)
        all.user[i]->lost(all.ctx[i], host);
    mux_free(all.ours[host]);
    mux_free(all.theirs[host]);
    all.ours[host] = all.theirs[host] = NULL;
    for (uint32_t i = host; i < NODE_UNITS_MAX; i += HOSTS)
        must(unit[i] == UNIT_NOT);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (ranks[rank].state == LOST && ranks[rank].host == host) {
            remote_detach(remote, (struct cw_process){.rank = rank}, false);
            ranks[rank].state = NONE;
        }
}

static void hear(uint32_t host)
{
    const uint8_t *bytes;
    struct cw_err err;
    size_t size;

    while (all.ours[host] && (size = mux_output(all.theirs[host], &bytes)) > 0) {
        bool good = mux_input(all.ours[host], bytes, size, &err) == CW_OK;

        mux_sent(all.theirs[host], size);
        if (!good)
            lose(host);
    }
}

static void say(uint32_t host, uint32_t type, uint32_t of, uint32_t value)
{
    static const char *const texts[] = {"", "unix:/a ", "unix:/a tcp:b:1", "no"};
    struct node_event event = {.of = of, .value = value};
    uint8_t body[NODE_EVENT_MAX];
    struct cw_err err;

    strcpy(event.text, texts[value % 4]);
    if (all.ours[host])
        mux_send(all.theirs[host], type, body, node_event_put(body, &event), &err);
    hear(host);
}

static void order(uint32_t host, uint32_t rank)
{
    static char *argv[] = {"true", NULL};
    static const struct launch_program program = {
        .path = "/bin/true", .argv = argv, .wdir = "/", .device_path = ""};
    struct cw_setup setup = {.process = {.rank = rank, .incarnation = ranks[rank].incarnation + 1},
                             .ranks = RANKS,
                             .local_ranks = RANKS,
                             .address = "here"};
    struct cw_err err;

    if (ranks[rank].state != NONE || remote_start(remote, &program, &setup, host, -1, -1, &err) < 0)
        return;
    ranks[rank].state = ORDERED;
    ranks[rank].host = host;
    ranks[rank].incarnation++;
}

static void detach(uint32_t rank)
{
    if (ranks[rank].state < STARTED)
        return;
    remote_detach(remote, (struct cw_process){.rank = rank}, true);
    ranks[rank].state = NONE;
}

static void step(const uint8_t *bytes)
{
    static struct node_unit of_unit = {.flags = NODE_UNIT_RETURNS};
    uint32_t host = bytes[1] % HOSTS;
    uint32_t rank = bytes[2] % RANKS;
    struct cw_err err;

    switch (bytes[0] % 12) {
    case 0:
        order(host, rank);
        break;
    case 1:
        detach(rank);
        break;
    case 2: /* the rank's relay knows it */
        if (ranks[rank].state == ORDERED && all.ours[ranks[rank].host])
            remote_confirm(remote, (struct cw_process){.rank = rank});
        break;
    case 3:
        of_unit.number = bytes[2] % NODE_UNITS_MAX;
        if (unit[of_unit.number] == UNIT_NOT &&
            far_units_start(units, of_unit.number % HOSTS, &of_unit, &err) == CW_OK)
            unit[of_unit.number] = UNIT_ORDERED;
        break;
    case 4:
        loop_turn(loop, 0);
        break;
    case 5:
        if (all.ours[host])
            lose(host);
        else if (open_host(host), all_staged)
            staged[host] = false, staging_host_back(staging, host);
        break;
    case 6:
        remote_signal(remote, (struct cw_process){.rank = rank}, 9);
        break;
    default:
        say(host, NODE_STARTED + bytes[0] / 12 % 16, bytes[2], bytes[3]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct staging_source source = {.fd = -1};
    struct remote_config config = {
        .ranks = RANKS, .nodes = &all, .channels = &channels, .events = &remote_events};
    struct cw_err err;

    memset(&all, 0, sizeof(all));
    memset(ranks, 0, sizeof(ranks));
    memset(unit, 0, sizeof(unit));
    memset(staged, 0, sizeof(staged));
    all_staged = failed = false;
    if (source.fd < 0)
        source.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    loop = config.loop = loop_new(&err);
    channels_init(&channels, loop);
    units = far_units_new(&all, &units_events, NULL, &err);
    staging = staging_new(&all, &source, 1, &staging_events, NULL, &err);
    remote = remote_new(&config, &err);
    must(loop && units && staging && remote);
    for (uint32_t host = 0; host < HOSTS; host++)
        open_host(host);
    staging_begin(staging);
    for (int i = 0; i < STEPS_MAX && size >= 4; i++, data += 4, size -= 4)
        step(data);
    remote_close(remote);
    for (uint32_t host = 0; host < HOSTS; host++)
        if (all.ours[host])
            lose(host);
    for (uint32_t i = 0; i < all.users; i++)
        if (all.user[i]->over)
            all.user[i]->over(all.ctx[i]);
    far_units_free(units);
    staging_free(staging);
    channels_end(&channels);
    loop_free(loop);
    return 0;
}
