/* A program receives, probes and cancels. */
#include "tests/sim/payload.h"
#include "tests/sim/program.h"
#include "tests/sim/sim.h"
#include "tests/sim/typed.h"

#include <assert.h>

#define LIST_PIECES 3

static void check_bytes(const struct program *g, const struct program_request *r,
                        ucs_status_t status)
{
    size_t size = r->size < r->capacity ? r->size : r->capacity;

    if ((status == UCS_ERR_MESSAGE_TRUNCATED) != (r->size > r->capacity) ||
        ((r->got ^ r->tag) & r->mask) != 0)
        program_wrong(g, "rank %u: a receive of tag %#llx got tag %#llx, %llu bytes, status %d",
                      g->process->rank, (unsigned long long)r->tag, (unsigned long long)r->got,
                      (unsigned long long)r->size, status);
    else if (!(r->got & PROGRAM_TAG_CLOSING) && !payload_is(r->buffer, r->got, size))
        program_wrong(g, "rank %u: the bytes of message %u of rank %u have changed",
                      g->process->rank, program_tag_seq(r->got), program_tag_src(r->got));
}

static void on_received(void *user, ucs_status_t status, const ucp_tag_recv_info_t *info,
                        void *user_data)
{
    struct program_request *r = user_data;
    struct program *g = process_now()->program;
    struct record_event event = {
        .type = RECORD_RECEIVED, .status = (uint32_t)-status, .act = r->act};

    (void)user;
    r->done = true;
    if (status == UCS_ERR_CANCELED) {
        event.type = RECORD_CANCELED;
        if (!r->cancelled)
            program_wrong(g, "rank %u: a receive was cancelled by nobody", g->process->rank);
    } else {
        event.tag = r->got = info->sender_tag;
        event.size = r->size = info->length;
        check_bytes(g, r, status);
        if (!(r->got & PROGRAM_TAG_CLOSING))
            g->came.tagged++;
    }
    program_happened(g, event);
}

/* A list of buffers, as MPICH makes of datatypes with long blocks; one of them is empty. Needed
 * until the receive is done: it goes with the process. */
static ucp_dt_iov_t *list_of(uint8_t *buffer, size_t size)
{
    size_t half = size / 2;
    ucp_dt_iov_t *list = process_alloc(LIST_PIECES * sizeof(*list));

    list[0] = (ucp_dt_iov_t){.buffer = buffer, .length = half};
    list[1] = (ucp_dt_iov_t){.buffer = NULL};
    list[2] = (ucp_dt_iov_t){.buffer = buffer + half, .length = size - half};
    return list;
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

    if (r->generic) {
        param.datatype = typed_datatype();
    } else if (r->capacity % 3 == 0) {
        param.datatype = ucp_dt_make_iov();
        buffer = list_of(r->buffer, r->capacity);
        count = LIST_PIECES;
    }
    if (message)
        r->user =
            program_library()->ucp_tag_msg_recv_nbx(g->worker, buffer, count, message, &param);
    else
        r->user =
            program_library()->ucp_tag_recv_nbx(g->worker, buffer, count, r->tag, r->mask, &param);
    /* the datatype is needed until the receive is done: it goes with the process */
    program_check_count(g);
}

struct program_request *program_receive(struct program *g, uint64_t tag, uint64_t mask,
                                        size_t capacity, bool generic)
{
    struct program_request *r = program_open(g, 0);

    if (!r)
        return NULL;
    r->receiving = true;
    r->generic = generic;
    r->tag = tag;
    r->mask = mask;
    r->capacity = capacity;
    r->buffer = process_alloc(capacity);
    program_acted(
        g, (struct record_act){.type = RECORD_RECV, .tag = tag, .mask = mask, .size = capacity},
        program_polls(), g->hash);
    r->act = g->process->record.act_count;
    post(g, r, NULL);
    return r;
}

void program_cancel(struct program *g, struct program_request *r)
{
    if (r->done || !r->receiving)
        return;
    r->cancelled = true;
    program_acted(g, (struct record_act){.type = RECORD_CANCEL, .tag = r->tag, .size = r->act},
                  program_polls(), g->hash);
    program_library()->ucp_request_cancel(g->worker, r->user);
    program_check_count(g);
}

static struct program_request *take_found(struct program *g, ucp_tag_message_h message,
                                          const ucp_tag_recv_info_t *info)
{
    struct program_request *r = program_open(g, 0);

    assert(r);
    r->receiving = true;
    r->tag = info->sender_tag;
    r->mask = UINT64_MAX;
    r->capacity = info->length;
    r->buffer = process_alloc(r->capacity);
    program_acted(g, (struct record_act){.type = RECORD_MRECV, .tag = r->tag, .size = r->capacity},
                  program_polls(), g->hash);
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
    struct program_request *room = take ? program_open(g, 0) : NULL;

    if (take && !room)
        return NULL;
    if (room)
        room->open = false;
    g->process->record.probing = true;
    message = program_library()->ucp_tag_probe_nb(g->worker, tag, mask, take, &info);
    g->process->record.probing = false;
    program_see(g, message != NULL);
    if (!message)
        return NULL;
    program_acted(g,
                  (struct record_act){.type = RECORD_PROBE,
                                      .kind = take,
                                      .tag = info.sender_tag,
                                      .mask = mask,
                                      .size = info.length},
                  program_polls(), before);
    program_check_count(g);
    program_see(g, info.sender_tag ^ info.length << 40);
    return take ? take_found(g, message, &info) : NULL;
}
