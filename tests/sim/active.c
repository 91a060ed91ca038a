/* Active messages: their handlers answer, so many times. */
#include "tests/sim/payload.h"
#include "tests/sim/program.h"
#include "tests/sim/sim.h"

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
    program_put(g, CW_SEND_AM, dst, header->seq % 2 ? sizeof(*header) : 0, bytes, size);
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
    if (!program_is_own(g, CW_SEND_AM, dst) && program_alter(g, &dst, false, &size))
        return;
    put_active(g, dst, size, &header);
    program_check_count(g);
}

static void answer(struct program *g, const struct active_header *h, size_t size)
{
    struct active_header header = {
        .src = g->process->rank, .seq = ++g->seq, .hops = h->hops - 1, .tagged = h->tagged};
    uint64_t tag = program_tag(h->seq % PROGRAM_TAGS, header.src, header.seq);

    if (h->hops == 1 && h->tagged)
        program_put(g, CW_SEND_TAG, h->src, tag, payload_of(tag), size / 2);
    else
        put_active(g, h->src, size, &header);
    program_check_count(g);
}

static void came(struct program *g, const struct active_header *h, size_t size)
{
    uint64_t tag = program_tag(0, h->src, h->seq);

    if (h->src == g->process->rank)
        program_see(g, tag ^ size);
    else
        program_happened(g, (struct record_event){.type = RECORD_ACTIVE, .tag = tag, .size = size});
}

static void has_data(struct program *g, const struct active_header *h, const uint8_t *data,
                     size_t size)
{
    if (!payload_is(data, program_tag(0, h->src, h->seq), size))
        program_wrong(g, "rank %u: the bytes of an active message of rank %u have changed",
                      g->process->rank, h->src);
    size += sizeof(*h);
    g->came.active++;
    g->data_sum += program_mix(h->src, h->hops) + size;
    if (h->hops > 0 && h->src < g->ranks)
        answer(g, h, size);
}

ucs_status_t program_on_active(void *arg, void *data, size_t size, ucp_ep_h ep, unsigned flags)
{
    struct program *g = process_now()->program;
    struct active_header h;

    (void)arg;
    (void)ep;
    (void)flags;
    memcpy(&h, data, sizeof(h));
    came(g, &h, size);
    has_data(g, &h, (uint8_t *)data + sizeof(h), size - sizeof(h));
    return UCS_OK;
}

/* --- of a header and data ------------------------------------------------------------------------
 */

/* One whose data is asked for. */
struct active {
    struct active_header header;
    void *descriptor;
    size_t size;
    uint8_t data[];
};

static void on_data(void *user, ucs_status_t status, size_t size, void *user_data)
{
    struct program *g = process_now()->program;
    struct active *active = user_data;

    if (status != UCS_OK || size != active->size)
        program_wrong(g, "rank %u: status %d, %zu bytes of an active message of %zu",
                      g->process->rank, status, size, active->size);
    has_data(g, &active->header, active->data, active->size);
    process_free(active);
    program_library()->ucp_request_release(user);
}

static void ask(struct program *g, struct active *active)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv_am = on_data,
                                 .user_data = active};

    program_library()->ucp_am_recv_data_nbx(g->worker, active->descriptor, active->data,
                                            active->size, &param);
}

void program_ask_left(struct program *g)
{
    struct active *active = g->left;

    g->left = NULL;
    if (active)
        ask(g, active);
}

/* Asks at once, or leaves it for later. */
static ucs_status_t take_rendezvous(struct program *g, struct active *active)
{
    if (g->left || active->header.seq % 4 == 1) {
        ask(g, active);
        return UCS_OK;
    }
    g->left = active;
    return UCS_INPROGRESS;
}

ucs_status_t program_on_parts(void *arg, const void *header, size_t header_size, void *data,
                              size_t size, const ucp_am_recv_param_t *param)
{
    struct program *g = process_now()->program;
    struct active_header h;
    struct active *active;

    (void)arg;
    if (header_size != sizeof(h)) {
        program_wrong(g, "rank %u: a header of %zu bytes", g->process->rank, header_size);
        return UCS_OK;
    }
    memcpy(&h, header, sizeof(h));
    came(g, &h, sizeof(h) + size);
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        has_data(g, &h, data, size);
        return UCS_OK;
    }
    active = process_alloc(sizeof(*active) + size);
    *active = (struct active){.header = h, .descriptor = data, .size = size};
    return take_rendezvous(g, active);
}
