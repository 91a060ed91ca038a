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
    program_put(g, CW_SEND_AM, dst, 0, bytes, size);
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

ucs_status_t program_on_active(void *arg, void *data, size_t size, ucp_ep_h ep, unsigned flags)
{
    struct program *g = process_now()->program;
    struct active_header h;
    uint64_t tag;

    (void)arg;
    (void)ep;
    (void)flags;
    memcpy(&h, data, sizeof(h));
    tag = program_tag(0, h.src, h.seq);
    if (!payload_is((uint8_t *)data + sizeof(h), tag, size - sizeof(h)))
        program_wrong(g, "rank %u: the bytes of an active message of rank %u have changed",
                      g->process->rank, h.src);
    if (h.src == g->process->rank)
        program_see(g, tag ^ size);
    else
        program_happened(g, (struct record_event){.type = RECORD_ACTIVE, .tag = tag, .size = size});
    g->came.active++;
    g->data_sum += program_mix(h.src, h.hops) + size;
    if (h.hops > 0 && h.src < g->ranks)
        answer(g, &h, size);
    return UCS_OK;
}
