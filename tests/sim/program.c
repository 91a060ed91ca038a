#include "tests/sim/program.h"
#include "tests/sim/device_shim.h"
#include "tests/sim/payload.h"
#include "tests/sim/sim.h"

#include <assert.h>
#include <string.h>

#define EARLY_READINGS_MAX 4
#define LINGER_MAX 3 /* turns between MPI_Finalize and the end of the process */
#define ACTIVE_ID 3
#define SPIN_MAX 200000u
#define READINGS_MAX 5000 /* more than one frame holds */
#define READINGS_ONE_IN 30

ucp_worker_h program_worker;

/* --- the state -----------------------------------------------------------------------------------
 */

static uint64_t mix_in(uint64_t hash, uint64_t what)
{
    hash = (hash ^ what) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

void program_see(struct program *g, uint64_t what)
{
    g->hash = mix_in(g->hash, what);
}

uint64_t program_choose(struct program *g, uint64_t bound)
{
    uint64_t bits = codec_random(&g->random);

    if (sim.plan.mode != SIM_ORDERED)
        bits = mix_in(bits, g->hash);
    return (bits >> 16) % bound;
}

size_t program_size(struct program *g)
{
    static const size_t near[] = {16, 2048, 8192, 16384, 65536, 262144};
    size_t max = sim.plan.message_max;
    size_t size;

    switch (program_choose(g, 8)) {
    case 0:
        return 0;
    case 1:
        size = near[program_choose(g, 6)] + program_choose(g, 65) - 32;
        break;
    case 2:
        size = program_choose(g, 40000);
        break;
    case 3:
        size = program_choose(g, 12) == 0 ? program_choose(g, 600000) : 20;
        break;
    default:
        size = program_choose(g, 200);
    }
    if ((ssize_t)size < 0)
        size = 0;
    return size <= max ? size : size % (max + 1);
}

/* --- what is recorded ----------------------------------------------------------------------------
 */

static void acted(struct program *g, struct record_act act, uint64_t clock, uint64_t hash)
{
    act.clock = clock;
    act.hash = hash;
    record_act(g->process, &act);
}

/* A program that was changed to do something else may be told anything. */
#define wrong(g, ...) ((g)->process->record.altered ? (void)0 : sim_fail(__VA_ARGS__))

static void check_count(const struct program *g)
{
    if (sim_device->acts != g->process->record.act_count)
        wrong(g, "rank %u, incarnation %u, counts %llu acts after act %zu", g->process->rank,
              g->process->incarnation, (unsigned long long)sim_device->acts,
              g->process->record.act_count);
}

static void happened(struct program *g, struct record_event event)
{
    event.clock = sim_device->stats.polls;
    event.hash = g->hash;
    record_event(g->process, &event);
    program_see(g, event.tag ^ event.size << 40 ^ event.status ^ (uint64_t)event.type << 60);
}

/* --- generic datatypes ---------------------------------------------------------------------------
 */

/* A buffer that is packed and unpacked piece by piece. */
struct typed {
    uint8_t *at;
    size_t size;
};

static void *typed_start_pack(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)buffer;
}

static void *typed_start_unpack(void *context, void *buffer, size_t count)
{
    return typed_start_pack(context, buffer, count);
}

static size_t typed_size(void *state)
{
    return ((struct typed *)state)->size;
}

static size_t typed_pack(void *state, size_t offset, void *to, size_t max)
{
    struct typed *t = state;
    size_t left = t->size - offset;
    size_t size = left < max ? left : max;

    /* less than there is room for, now and then */
    if (size > 100 && offset % 3 == 0)
        size -= 100;
    memcpy(to, t->at + offset, size);
    return size;
}

static ucs_status_t typed_unpack(void *state, size_t offset, const void *from, size_t size)
{
    struct typed *t = state;

    assert(offset + size <= t->size);
    memcpy(t->at + offset, from, size);
    return UCS_OK;
}

static void typed_finish(void *state)
{
    process_free(state);
}

static ucp_datatype_t typed_datatype(void)
{
    static const ucp_generic_dt_ops_t ops = {typed_start_pack, typed_start_unpack, typed_size,
                                             typed_pack,       typed_unpack,       typed_finish};
    ucp_datatype_t datatype;

    ucp_dt_create_generic(&ops, NULL, &datatype);
    return datatype;
}

static struct typed *typed_new(const void *at, size_t size)
{
    struct typed *t = process_alloc(sizeof(*t));

    *t = (struct typed){.at = (uint8_t *)at, .size = size};
    return t;
}

/* --- sending -------------------------------------------------------------------------------------
 */

static void on_sent(void *user, ucs_status_t status, void *user_data)
{
    struct program_request *r = user_data;
    struct program *g = process_now->program;

    (void)user;
    happened(
        g, (struct record_event){.type = RECORD_SENT, .status = (uint32_t)-status, .act = r->act});
    r->done = true;
}

/* `spare` of them stay free. */
static struct program_request *request_open(struct program *g, int spare)
{
    for (int i = 0; i < PROGRAM_OPEN_MAX - spare; i++)
        if (!g->request[i].open) {
            g->request[i] = (struct program_request){.open = true};
            return &g->request[i];
        }
    return NULL;
}

/* DIVERGING: the send that is to be another one than the first time. Returns true when it is left
 * out. That an active message is missing cannot always be told. */
static bool alter(struct program *g, uint32_t *dst, bool tagged, size_t *size)
{
    uint64_t from = sim.rank[g->process->rank].alter_act;
    uint64_t acts = sim_device->replay.acts;

    if (from == SIM_ALTER_LAST)
        from = acts - 1;
    if (sim.plan.mode != SIM_DIVERGING || !sim_device->replay.active ||
        g->process->record.altered || sim_device->acts >= acts || sim_device->acts < from)
        return false;
    g->process->record.altered = true;
    g->process->record.altered_act = sim_device->acts;
    sim_trace("%u.%u does something else at act %llu", g->process->rank, g->process->incarnation,
              (unsigned long long)sim_device->acts + 1);
    switch (sim_below(4)) {
    case 0:
        *dst = (*dst + 1) % g->ranks;
        return false;
    case 1:
        *size += 1;
        return false;
    default:
        *size += !tagged;
        return tagged;
    }
}

static void put_message(struct program *g, uint32_t kind, uint32_t dst, uint64_t tag,
                        const void *bytes, size_t size, struct program_request *request)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                                                 UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = on_sent,
                                 .user_data = request,
                                 .datatype = ucp_dt_make_contig(1)};
    bool generic = kind != CW_SEND_AM && (tag >> 16) % 5 == 0;
    const void *buffer = generic ? typed_new(bytes, size) : bytes;
    size_t count = generic ? 1 : size;

    if (generic)
        param.datatype = typed_datatype();
    if (kind == CW_SEND_SYNC)
        request->user = ucp_tag_send_sync_nbx(g->ep[dst], buffer, count, tag, &param);
    else if (kind == CW_SEND_TAG)
        ucp_tag_send_nbx(g->ep[dst], buffer, count, tag, &param);
    else
        ucp_am_send_nb(g->ep[dst], ACTIVE_ID, buffer, count, param.datatype, NULL, 0);
    if (generic)
        ucp_dt_destroy(param.datatype);
}

static void send_message(struct program *g, uint32_t kind, uint32_t dst, uint64_t tag,
                         const void *bytes, size_t size)
{
    struct record_act act = {.type = RECORD_SEND,
                             .kind = kind,
                             .dst = dst,
                             .seq = g->seq,
                             .tag = kind == CW_SEND_AM ? ACTIVE_ID : tag,
                             .size = size};
    struct program_request *request = NULL;

    if (kind == CW_SEND_SYNC)
        request = request_open(g, 1); /* closing needs a receive */
    if (kind == CW_SEND_SYNC && !request)
        act.kind = kind = CW_SEND_TAG;
    /* recorded before: the relay may know of it before the call returns */
    acted(g, act, sim_device->stats.polls, g->hash);
    if (request)
        request->act = g->process->record.act_count;
    put_message(g, kind, dst, tag, bytes, size, request);
}

void program_send(struct program *g, uint32_t kind, uint32_t dst, uint32_t user, size_t size)
{
    uint32_t seq = ++g->seq;
    uint64_t tag;

    g->due_to[dst].tagged++;
    if (alter(g, &dst, true, &size))
        return;
    tag = program_tag(user, g->process->rank, seq);
    send_message(g, kind, dst, tag, payload_of(tag), size);
    check_count(g);
}

/* An active message: its number and what its handler is to do, then bytes. */
struct active_header {
    uint32_t src;
    uint32_t seq;
    uint32_t hops;   /* so many answers go back and forth */
    uint32_t tagged; /* the last of them is an ordinary message */
};

static void put_active(struct program *g, uint32_t dst, size_t size,
                       const struct active_header *header)
{
    uint8_t *bytes = process_alloc(size);

    memcpy(bytes, header, sizeof(*header));
    memcpy(bytes + sizeof(*header), payload_of(program_tag(0, header->src, header->seq)),
           size - sizeof(*header));
    send_message(g, CW_SEND_AM, dst, 0, bytes, size);
    process_free(bytes);
}

static void expect_answers(struct program *g, uint32_t dst, uint32_t hops, bool tagged)
{
    struct program_due *to = &g->due_to[dst];
    struct program_due *from = &g->due;

    to->active++;
    for (; hops > 0; hops--) {
        struct program_due *swap = to;

        to = from;
        from = swap;
        if (hops == 1 && tagged)
            to->tagged++;
        else
            to->active++;
    }
}

void program_send_active(struct program *g, uint32_t dst, size_t size, uint32_t hops, bool tagged)
{
    struct active_header header = {
        .src = g->process->rank, .seq = ++g->seq, .hops = hops, .tagged = tagged};

    if (size < sizeof(header))
        size = sizeof(header);
    expect_answers(g, dst, hops, tagged);
    if (alter(g, &dst, false, &size))
        return;
    put_active(g, dst, size, &header);
    check_count(g);
}

static void answer(struct program *g, const struct active_header *h, size_t size)
{
    struct active_header header = {
        .src = g->process->rank, .seq = ++g->seq, .hops = h->hops - 1, .tagged = h->tagged};
    uint64_t tag = program_tag(h->seq % PROGRAM_TAGS, header.src, header.seq);

    if (h->hops == 1 && h->tagged)
        send_message(g, CW_SEND_TAG, h->src, tag, payload_of(tag), size / 2);
    else
        put_active(g, h->src, size, &header);
    check_count(g);
}

static ucs_status_t on_active(void *arg, void *data, size_t size, ucp_ep_h ep, unsigned flags)
{
    struct program *g = process_now->program;
    struct active_header h;
    uint64_t tag;

    (void)arg;
    (void)ep;
    (void)flags;
    memcpy(&h, data, sizeof(h));
    tag = program_tag(0, h.src, h.seq);
    if (!payload_is((uint8_t *)data + sizeof(h), tag, size - sizeof(h)))
        wrong(g, "rank %u: the bytes of an active message of rank %u have changed",
              g->process->rank, h.src);
    happened(g, (struct record_event){.type = RECORD_ACTIVE, .tag = tag, .size = size});
    g->came.active++;
    g->data_sum += mix_in(h.src, h.hops) + size;
    if (h.hops > 0 && h.src < g->ranks)
        answer(g, &h, size);
    return UCS_OK;
}

/* --- receiving -----------------------------------------------------------------------------------
 */

static void check_bytes(const struct program *g, const struct program_request *r,
                        ucs_status_t status)
{
    size_t size = r->size < r->capacity ? r->size : r->capacity;

    if ((status == UCS_ERR_MESSAGE_TRUNCATED) != (r->size > r->capacity) ||
        ((r->got ^ r->tag) & r->mask) != 0)
        wrong(g, "rank %u: a receive of tag %#llx got tag %#llx, %llu bytes, status %d",
              g->process->rank, (unsigned long long)r->tag, (unsigned long long)r->got,
              (unsigned long long)r->size, status);
    else if (!(r->got & PROGRAM_TAG_CLOSING) && !payload_is(r->buffer, r->got, size))
        wrong(g, "rank %u: the bytes of message %u of rank %u have changed", g->process->rank,
              program_tag_seq(r->got), program_tag_src(r->got));
}

static void on_received(void *user, ucs_status_t status, const ucp_tag_recv_info_t *info,
                        void *user_data)
{
    struct program_request *r = user_data;
    struct program *g = process_now->program;
    struct record_event event = {
        .type = RECORD_RECEIVED, .status = (uint32_t)-status, .act = r->act};

    (void)user;
    r->done = true;
    if (status == UCS_ERR_CANCELED) {
        event.type = RECORD_CANCELED;
        if (!r->cancelled)
            wrong(g, "rank %u: a receive was cancelled by nobody", g->process->rank);
    } else {
        event.tag = r->got = info->sender_tag;
        event.size = r->size = info->length;
        check_bytes(g, r, status);
        if (!(r->got & PROGRAM_TAG_CLOSING))
            g->came.tagged++;
    }
    happened(g, event);
}

static void post(struct program *g, struct program_request *r, ucp_tag_message_h message)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK |
                                     UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .cb.recv = on_received,
                                 .user_data = r,
                                 .datatype = ucp_dt_make_contig(1)};
    void *buffer = r->generic ? (void *)typed_new(r->buffer, r->capacity) : r->buffer;
    size_t count = r->generic ? 1 : r->capacity;

    if (r->generic)
        param.datatype = typed_datatype();
    if (message)
        r->user = ucp_tag_msg_recv_nbx(program_worker, buffer, count, message, &param);
    else
        r->user = ucp_tag_recv_nbx(program_worker, buffer, count, r->tag, r->mask, &param);
    /* the datatype is needed until the receive is done: it goes with the process */
    check_count(g);
}

struct program_request *program_receive(struct program *g, uint64_t tag, uint64_t mask,
                                        size_t capacity, bool generic)
{
    struct program_request *r = request_open(g, 0);

    if (!r)
        return NULL;
    r->receiving = true;
    r->generic = generic;
    r->tag = tag;
    r->mask = mask;
    r->capacity = capacity;
    r->buffer = process_alloc(capacity);
    acted(g, (struct record_act){.type = RECORD_RECV, .tag = tag, .mask = mask, .size = capacity},
          sim_device->stats.polls, g->hash);
    r->act = g->process->record.act_count;
    post(g, r, NULL);
    return r;
}

void program_cancel(struct program *g, struct program_request *r)
{
    if (r->done || !r->receiving)
        return;
    r->cancelled = true;
    acted(g, (struct record_act){.type = RECORD_CANCEL, .tag = r->tag, .size = r->act},
          sim_device->stats.polls, g->hash);
    ucp_request_cancel(program_worker, r->user);
    check_count(g);
}

static struct program_request *take_found(struct program *g, ucp_tag_message_h message,
                                          const ucp_tag_recv_info_t *info)
{
    struct program_request *r = request_open(g, 0);

    assert(r);
    r->receiving = true;
    r->tag = info->sender_tag;
    r->mask = UINT64_MAX;
    r->capacity = info->length;
    r->buffer = process_alloc(r->capacity);
    acted(g, (struct record_act){.type = RECORD_MRECV, .tag = r->tag, .size = r->capacity},
          sim_device->stats.polls, g->hash);
    /* the message was matched when it was found */
    r->act = g->process->record.act_count - 1;
    post(g, r, message);
    return r;
}

struct program_request *program_probe(struct program *g, uint64_t tag, uint64_t mask, bool take)
{
    ucp_tag_recv_info_t info;
    uint64_t before = g->hash;
    ucp_tag_message_h message;
    struct program_request *room = take ? request_open(g, 0) : NULL;

    if (take && !room)
        return NULL;
    if (room)
        room->open = false;
    g->process->record.probing = true;
    message = ucp_tag_probe_nb(program_worker, tag, mask, take, &info);
    g->process->record.probing = false;
    program_see(g, message != NULL);
    if (!message)
        return NULL;
    acted(g,
          (struct record_act){.type = RECORD_PROBE,
                              .kind = take,
                              .tag = info.sender_tag,
                              .mask = mask,
                              .size = info.length},
          sim_device->stats.polls, before);
    check_count(g);
    program_see(g, info.sender_tag ^ info.length << 40);
    return take ? take_found(g, message, &info) : NULL;
}

/* --- time ----------------------------------------------------------------------------------------
 */

/* It waits for nothing, and nobody else can do anything about it. */
static void check_spinning(struct program *g)
{
    if (g->polls_step != sim.steps)
        g->polls = 0;
    g->polls_step = sim.steps;
    if (++g->polls < SPIN_MAX)
        return;
    sim_fail("rank %u, incarnation %u, polls for ever, at poll %llu", g->process->rank,
             g->process->incarnation, (unsigned long long)sim_device->stats.polls);
    process_yield();
}

bool program_poll(struct program *g)
{
    unsigned count;

    check_spinning(g);
    g->process->record.polling = true;
    count = ucp_worker_progress(program_worker);
    g->process->record.polling = false;
    program_see(g, count);
    return count > 0;
}

void program_wait(struct program *g, struct program_request *r)
{
    while (!r->done)
        program_poll(g);
    ucp_request_release(r->user);
    if (r->receiving)
        process_free(r->buffer);
    r->open = false;
}

void program_read_clock(struct program *g)
{
    static const uint8_t kinds[] = {READING_CLOCK, READING_CLOCK + 1, READING_GETTIMEOFDAY,
                                    READING_TIME};

    uint64_t count = program_choose(g, READINGS_ONE_IN) ? 1 : program_choose(g, READINGS_MAX);

    for (uint64_t i = 0; i < count; i++)
        program_see(g, (uint64_t)readings_ask(kinds[program_choose(g, 4)]));
}

/* --- the end -------------------------------------------------------------------------------------
 */

/* Tells each rank what is due to it because of this one. */
static void tell_due(struct program *g)
{
    for (uint32_t dst = 0; dst < g->ranks; dst++) {
        uint64_t tag = program_tag(0, g->process->rank, ++g->seq) | PROGRAM_TAG_CLOSING;

        send_message(g, CW_SEND_TAG, dst, tag, &g->due_to[dst], sizeof(g->due_to[dst]));
    }
}

static void hear_due(struct program *g, uint32_t src)
{
    struct program_request *r =
        program_receive(g, program_tag(0, src, 0) | PROGRAM_TAG_CLOSING,
                        PROGRAM_MASK_SRC | PROGRAM_TAG_CLOSING, sizeof(struct program_due), false);
    struct program_due due;

    while (!r->done)
        program_poll(g);
    memcpy(&due, r->buffer, sizeof(due));
    g->due.tagged += due.tagged;
    g->due.active += due.active;
    program_wait(g, r);
}

static void finish_requests(struct program *g)
{
    for (int i = 0; i < PROGRAM_OPEN_MAX; i++) {
        struct program_request *r = &g->request[i];

        if (r->open && r->receiving) {
            program_cancel(g, r);
            program_wait(g, r);
        }
    }
}

static bool all_sent(const struct program *g)
{
    for (int i = 0; i < PROGRAM_OPEN_MAX; i++)
        if (g->request[i].open && !g->request[i].receiving && !g->request[i].done)
            return false;
    return true;
}

/* Asks until something is found: MPI_Mprobe. */
static void receive_found(struct program *g)
{
    struct program_request *r = NULL;

    while (!r) {
        r = program_probe(g, 0, PROGRAM_TAG_CLOSING, true);
        if (!r)
            program_poll(g);
    }
    program_wait(g, r);
}

void program_close(struct program *g)
{
    finish_requests(g);
    tell_due(g);
    for (uint32_t src = 0; src < g->ranks; src++)
        hear_due(g, src);
    while (g->came.tagged < g->due.tagged || g->came.active < g->due.active || !all_sent(g)) {
        if (g->came.tagged < g->due.tagged && program_choose(g, 2))
            receive_found(g);
        else if (g->came.tagged < g->due.tagged)
            program_wait(g, program_receive(g, 0, PROGRAM_TAG_CLOSING, PAYLOAD_MAX / 2, false));
        else
            program_poll(g);
    }
}

/* --- from the start ------------------------------------------------------------------------------
 */

static void make_endpoints(struct program *g)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    uint32_t words[2];
    size_t size;

    ucp_worker_get_address(program_worker, &address, &size);
    assert(size == sizeof(words));
    memcpy(words, address, size);
    for (words[1] = 0; words[1] < g->ranks; words[1]++) {
        params.address = (const ucp_address_t *)words;
        ucp_ep_create(program_worker, &params, &g->ep[words[1]]);
    }
}

static void open_device(struct program *g)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_REQUEST_SIZE, .request_size = 32};
    ucp_worker_params_t worker_params = {0};
    ucp_context_h context;

    ucp_init_version(UCP_API_MAJOR, 0, &params, NULL, &context);
    /* the worker is the process's only one: here, the only one of all */
    if (!program_worker) {
        ucp_worker_create(context, &worker_params, &program_worker);
        ucp_worker_set_am_handler(program_worker, ACTIVE_ID, on_active, NULL, 0);
    }
    make_endpoints(g);
}

void program_main(void *process)
{
    struct sim_process *p = process;
    struct program *g = process_alloc(sizeof(*g));

    *g = (struct program){
        .process = p, .ranks = sim.plan.ranks, .random = sim_mix(sim.plan.program_seed, p->rank)};
    p->program = g;
    for (uint64_t i = program_choose(g, EARLY_READINGS_MAX); i > 0; i--)
        program_read_clock(g);
    open_device(g);
    process_tell(NEWS_INITIALIZED, NULL, 0);
    if (sim.plan.mode == SIM_ORDERED)
        program_run_ordered(g);
    else
        program_run_racy(g);
    program_close(g);
    ucp_worker_destroy(program_worker);
    process_tell(NEWS_FINALIZED, NULL, 0);
    program_read_clock(g);
    for (uint64_t i = program_choose(g, LINGER_MAX); i > 0; i--)
        process_yield();
    p->record.whole = true;
    p->record.hash = g->data ^ g->data_sum;
    process_end(0);
}
