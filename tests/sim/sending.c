/* A program sends. */
#include "tests/sim/payload.h"
#include "tests/sim/program.h"
#include "tests/sim/sim.h"
#include "tests/sim/typed.h"

static void on_sent(void *user, ucs_status_t status, void *user_data)
{
    struct program_request *r = user_data;
    struct program *g = process_now()->program;

    (void)user;
    program_happened(
        g, (struct record_event){.type = RECORD_SENT, .status = (uint32_t)-status, .act = r->act});
    r->done = true;
}

bool program_is_own(const struct program *g, uint32_t kind, uint32_t dst)
{
    return kind == CW_SEND_AM && dst == g->process->rank;
}

bool program_alter(struct program *g, uint32_t *dst, bool tagged, size_t *size)
{
    uint64_t from = sim.rank[g->process->rank].alter_act;
    struct device_view now = program_library()->device_look();

    if (from == SIM_ALTER_LAST)
        from = now.acts_to_repeat - 1;
    if (sim.plan.mode != SIM_DIVERGING || !now.repeats || g->process->record.altered ||
        now.acts >= now.acts_to_repeat || now.acts < from)
        return false;
    g->process->record.altered = true;
    g->process->record.altered_act = now.acts;
    sim_trace("%u.%u does something else at act %llu", g->process->rank, g->process->incarnation,
              (unsigned long long)now.acts + 1);
    switch (sim_below(5)) {
    case 4: /* other bytes; where there are none to compare, another length */
        g->process->record.other_bytes = tagged && *size > 0;
        *size += !g->process->record.other_bytes;
        return false;
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
        request->user =
            program_library()->ucp_tag_send_sync_nbx(g->ep[dst], buffer, count, tag, &param);
    else if (kind == CW_SEND_TAG)
        program_library()->ucp_tag_send_nbx(g->ep[dst], buffer, count, tag, &param);
    else if (tag == 0)
        program_library()->ucp_am_send_nb(g->ep[dst], PROGRAM_ACTIVE_ID, buffer, count,
                                          param.datatype, NULL, 0);
    else
        program_library()->ucp_am_send_nbx(g->ep[dst], PROGRAM_PARTS_ID, bytes, tag,
                                           (const uint8_t *)bytes + tag, size - tag, &param);
    if (generic)
        program_library()->ucp_dt_destroy(param.datatype);
}

void program_put(struct program *g, uint32_t kind, uint32_t dst, uint64_t tag, const void *bytes,
                 size_t size)
{
    struct record_act act = {
        .type = RECORD_SEND, .kind = kind, .dst = dst, .seq = g->seq, .tag = tag, .size = size};
    struct program_request *request = NULL;

    if (kind == CW_SEND_SYNC)
        request = program_open(g, 1); /* closing needs a receive */
    if (kind == CW_SEND_SYNC && !request)
        act.kind = kind = CW_SEND_TAG;
    /* recorded before: the relay may know of it before the call returns */
    if (!program_is_own(g, kind, dst))
        program_acted(g, act, program_polls(), g->hash);
    if (request)
        request->act = g->process->record.act_count;
    put_message(g, kind, dst, tag, bytes, size, request);
}

void program_send(struct program *g, uint32_t kind, uint32_t dst, uint32_t user, size_t size)
{
    uint32_t seq = ++g->seq;
    uint64_t tag;

    g->due_to[dst].tagged++;
    if (program_alter(g, &dst, true, &size))
        return;
    tag = program_tag(user, g->process->rank, seq);
    program_put(g, kind, dst, tag,
                payload_of(tag + ((uint64_t)g->process->record.other_bytes << 8)), size);
    program_check_count(g);
}
