/* The UCP binding: the part of libucp.so.0 that Debian's MPICH (ch4:ucx) calls, on top of the
 * device. The only file that knows UCP. The functions that MPICH never reaches over this device are
 * in ucp_unreachable.c. Semantics: ucp/api/ucp.h of UCX 1.13. */
#include "rdevice/arena.h"
#include "rdevice/device.h"
#include "rdevice/fatal.h"
#include "rdevice/heap.h"
#include "rdevice/trace.h"
#include "rdevice/ucp_data.h"

#include <stdio.h>
#include <string.h>

#define AM_HANDLERS_MAX 16
/* Data of an active message that is longer goes by "rendezvous": the handler asks for it. MPICH
 * keeps an unexpected one in a cell of MPIR_CVAR_CH4_PACK_BUFFER_SIZE, 16 KiB, unless it is one. */
#define AM_WHOLE_MAX 8192u
#define ADDRESS_MAGIC 0x52435743u /* "CWCR" */
#define FOUND ((ucp_tag_message_h)16)

/* Its functions have more arguments than this device needs. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct ucp_context {
    int unused;
};

/* One of both calls is set: that of messages of one piece, or of a header and data. */
struct am_handler {
    ucp_am_callback_t call;
    ucp_am_recv_callback_t call_parts;
    void *arg;
};

struct ucp_worker {
    struct am_handler am[AM_HANDLERS_MAX];
};

struct ucp_ep {
    uint32_t rank;
};

struct ucp_address {
    uint32_t magic;
    uint32_t rank;
};

/* What the binding keeps in request.binding. */
enum { SLOT_CALLBACK, SLOT_USER_DATA, SLOT_GENERIC, SLOT_STATE, SLOT_STATUS, SLOT_AM_CALLBACK };

static struct ucp_context the_context;
static struct ucp_worker the_worker;
static bool worker_made;
static struct request_table *const requests = &device.exchange.requests;

/* --- tracing ----------------------------------------------------------------------------------
 */

static void trace(struct trace_operation operation, const struct iovec *pieces, int count)
{
    if (!trace_on)
        return;
    operation.polls = device.exchange.cursor.polls;
    operation.acts = device.exchange.cursor.acts;
    trace_add(&operation, pieces, count);
}

static void trace_message(uint32_t dst, uint64_t tag, const struct iovec *pieces, int count)
{
    struct trace_operation operation = {.kind = TRACE_SEND, .peer = dst, .tag = tag};

    for (int i = 0; trace_on && i < count; i++)
        operation.size += pieces[i].iov_len;
    if (count)
        operation.address = (uintptr_t)pieces[0].iov_base;
    trace(operation, pieces, count);
}

static void trace_request(enum trace_kind kind, const struct request *request)
{
    trace((struct trace_operation){.kind = kind,
                                   .tag = request->want_tag,
                                   .size = request->capacity,
                                   .address = (uintptr_t)request->target},
          NULL, 0);
}

static void trace_event(const struct event *event)
{
    const struct request *request = (const struct request *)event;
    struct am *am = (struct am *)event;

    if (event->active)
        trace((struct trace_operation){.kind = TRACE_EVENT, .tag = am->id, .size = am->total},
              &(struct iovec){.iov_base = am->bytes, .iov_len = am->total}, 1);
    else
        trace((struct trace_operation){.kind = TRACE_EVENT,
                                       .tag = request->tag,
                                       .size = request->total},
              NULL, 0);
}

/* --- context, worker, endpoint -------------------------------------------------------------------
 */

ucs_status_t ucp_config_read(const char *env_prefix, const char *filename, ucp_config_t **config_p)
{
    *config_p = NULL;
    return UCS_OK;
}

void ucp_config_release(ucp_config_t *config)
{
}

ucs_status_t ucp_init_version(unsigned api_major_version, unsigned api_minor_version,
                              const ucp_params_t *params, const ucp_config_t *config,
                              ucp_context_h *context_p)
{
    size_t user_size = 0;
    ucp_request_init_callback_t init = NULL;

    if (api_major_version != UCP_API_MAJOR)
        return UCS_ERR_UNSUPPORTED;
    if (params->field_mask & UCP_PARAM_FIELD_REQUEST_SIZE)
        user_size = params->request_size;
    if (params->field_mask & UCP_PARAM_FIELD_REQUEST_INIT)
        init = params->request_init;
    heap_begin((uintptr_t)__builtin_return_address(0));
    device_open();
    request_setup(requests, user_size, init);
    *context_p = &the_context;
    return UCS_OK;
}

/* So RMA goes by active messages, and nothing that needs a memory handle is called:
 * ucp_unreachable.c. */
ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params,
                         ucp_mem_h *memh_p)
{
    return UCS_ERR_UNSUPPORTED;
}

void ucp_cleanup(ucp_context_h context)
{
}

ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
                               ucp_worker_h *worker_p)
{
    if (worker_made)
        fatal_exit(CW_REPORT_FATAL, "MPICH asks for a second communication context; unset "
                                    "MPIR_CVAR_CH4_NUM_VCIS");
    worker_made = true;
    *worker_p = &the_worker;
    return UCS_OK;
}

void ucp_worker_destroy(ucp_worker_h worker)
{
    device_close();
}

ucs_status_t ucp_worker_get_address(ucp_worker_h worker, ucp_address_t **address_p,
                                    size_t *address_length_p)
{
    struct ucp_address *address = arena_alloc(sizeof(*address));

    *address = (struct ucp_address){.magic = ADDRESS_MAGIC, .rank = device.setup.process.rank};
    *address_p = address;
    *address_length_p = sizeof(*address);
    return UCS_OK;
}

void ucp_worker_release_address(ucp_worker_h worker, ucp_address_t *address)
{
    arena_free(address, sizeof(*address));
}

ucs_status_t ucp_worker_set_am_handler(ucp_worker_h worker, uint16_t id, ucp_am_callback_t cb,
                                       void *arg, uint32_t flags)
{
    if (id >= AM_HANDLERS_MAX)
        return UCS_ERR_INVALID_PARAM;
    worker->am[id] = (struct am_handler){.call = cb, .arg = arg};
    return UCS_OK;
}

ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker,
                                            const ucp_am_handler_param_t *param)
{
    const uint64_t needed = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;

    if ((param->field_mask & needed) != needed || param->id >= AM_HANDLERS_MAX)
        return UCS_ERR_INVALID_PARAM;
    worker->am[param->id] = (struct am_handler){
        .call_parts = param->cb,
        .arg = param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ARG ? param->arg : NULL};
    return UCS_OK;
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    struct ucp_address address;
    struct ucp_ep *ep;

    if (!(params->field_mask & UCP_EP_PARAM_FIELD_REMOTE_ADDRESS))
        return UCS_ERR_INVALID_PARAM;
    memcpy(&address, params->address, sizeof(address));
    if (address.magic != ADDRESS_MAGIC || address.rank >= device.setup.ranks)
        fatal_exit(CW_REPORT_FATAL,
                   "another rank gave an address that is not of this device; do all "
                   "ranks run with librdevice.so and the same MPICH?");
    ep = arena_alloc(sizeof(*ep));
    ep->rank = address.rank;
    *ep_p = ep;
    return UCS_OK;
}

/* After this, MPICH waits in a PMI barrier without progress: pmi.c. */
ucs_status_ptr_t ucp_disconnect_nb(ucp_ep_h ep)
{
    device_leave();
    arena_free(ep, sizeof(*ep));
    return NULL;
}

ucs_status_t ucp_ep_flush(ucp_ep_h ep)
{
    exchange_flush(&device.exchange);
    return UCS_OK;
}

ucs_status_ptr_t ucp_worker_flush_nb(ucp_worker_h worker, unsigned flags, ucp_send_callback_t cb)
{
    exchange_flush(&device.exchange);
    return NULL;
}

/* Packs in order, a chunk at a time, and finishes exactly once. */
static void send_generic(const struct operation_target *to, struct generic *generic,
                         const void *buffer, size_t count)
{
    void *state = generic->ops.start_pack(generic->context, buffer, count);
    size_t total = generic->ops.packed_size(state);
    size_t room = total < CW_FRAME_DATA_MAX ? total : CW_FRAME_DATA_MAX;
    void *staging = arena_alloc(room);
    size_t done = 0;

    do {
        size_t size = total ? generic->ops.pack(state, done, staging, room) : 0;

        if (size > room || (size == 0 && total > 0) || size > total - done)
            fatal_exit(CW_REPORT_FATAL, "MPICH packed %zu bytes where %zu to %zu were asked for",
                       size, (size_t)1, room);
        if (done == 0)
            operation_send(device_enter(), to, total, &(struct iovec){staging, size}, 1);
        else
            operation_send_more(&device.exchange, staging, size);
        done += size;
    } while (done < total);
    generic->ops.finish(state);
    arena_free(staging, room);
}

static void send_any(const struct operation_target *to, const void *buffer, size_t count,
                     ucp_datatype_t datatype)
{
    struct iovec pieces[DEVICE_PIECES_MAX];
    int n;

    if (ucp_data_class(datatype) == UCP_DATATYPE_GENERIC) {
        trace_message(to->dst, to->tag, NULL, 0);
        send_generic(to, ucp_data_generic(datatype), buffer, count);
        return;
    }
    n = ucp_data_gather(pieces, buffer, count, datatype);
    trace_message(to->dst, to->tag, pieces, n);
    operation_send(device_enter(), to, 0, pieces, n);
}

/* --- sending -------------------------------------------------------------------------------------
 */

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    struct operation_target to = {.dst = ep->rank, .kind = CW_SEND_TAG, .tag = tag};

    send_any(&to, buffer, count, ucp_data_type(param));
    return NULL;
}

ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                       const ucp_request_param_t *param)
{
    struct request *request = request_new(requests, false);
    struct operation_target to = {
        .dst = ep->rank, .kind = CW_SEND_SYNC, .tag = tag, .req = request->id};

    request->binding[SLOT_CALLBACK] = (void *)param->cb.send;
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA)
        request->binding[SLOT_USER_DATA] = param->user_data;
    send_any(&to, buffer, count, ucp_data_type(param));
    return request->user;
}

/* An active message to this rank itself does not go to the relay, for it is no input: it is taken
 * at the next call for progress, in every incarnation. RMA sends two for each access to a rank's
 * own window. */
static void send_am(uint32_t dst, uint64_t tag, const struct iovec *pieces, int n, size_t header)
{
    struct operation_target to = {.dst = dst, .kind = CW_SEND_AM, .tag = tag, .header = header};

    trace_message(dst, tag, pieces, n);
    if (dst == device.setup.process.rank)
        inbox_add_own(&device_enter()->inbox, tag, pieces, n);
    else
        operation_send(device_enter(), &to, 0, pieces, n);
}

/* MPICH's headers are no data: addresses of requests, and bytes that nobody has set. Data is a
 * piece of its own; or, packed, it stands behind them, and the first of them, a struct
 * MPIDI_UCX_am_header_t, has its size. */
static size_t am_header_of(const struct iovec *pieces, int n)
{
    size_t size = pieces[0].iov_len;
    uint64_t data = 0;

    if (n == 1 && size > 2 * sizeof(data))
        memcpy(&data, (const uint8_t *)pieces[0].iov_base + sizeof(data), sizeof(data));
    return data + 2 * sizeof(data) <= size ? size - data : size;
}

ucs_status_ptr_t ucp_am_send_nb(ucp_ep_h ep, uint16_t id, const void *buffer, size_t count,
                                ucp_datatype_t datatype, ucp_send_callback_t cb, unsigned flags)
{
    struct operation_target to = {
        .dst = ep->rank, .kind = CW_SEND_AM, .tag = id, .header = CONTENTS_UNLIKE};
    struct iovec pieces[DEVICE_PIECES_MAX];
    int n;

    if (ucp_data_class(datatype) == UCP_DATATYPE_GENERIC) {
        send_any(&to, buffer, count, datatype);
        return NULL;
    }
    n = ucp_data_gather(pieces, buffer, count, datatype);
    send_am(ep->rank, id, pieces, n, am_header_of(pieces, n));
    return NULL;
}

/* The tag of an active message: its handler, and how many of its bytes are the header. */
static uint64_t am_tag(unsigned id, size_t header_size)
{
    return (uint64_t)header_size << 32 | id;
}

static unsigned am_id(uint64_t tag)
{
    return (uint32_t)tag;
}

static size_t am_header_size(uint64_t tag)
{
    return tag >> 32;
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                 const void *buffer, size_t count, const ucp_request_param_t *param)
{
    struct iovec pieces[DEVICE_PIECES_MAX] = {
        {.iov_base = (void *)header, .iov_len = header_length}};
    ucp_datatype_t datatype = ucp_data_type(param);

    if (ucp_data_class(datatype) != UCP_DATATYPE_CONTIG || header_length > UINT32_MAX)
        return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
    send_am(ep->rank, am_tag(id, header_length), pieces,
            1 + ucp_data_gather(pieces + 1, buffer, count, datatype), header_length);
    return NULL;
}

/* --- receiving -----------------------------------------------------------------------------------
 */

static void am_free(struct am *am)
{
    arena_free(am, sizeof(*am) + am->total);
}

static struct request *receive_new(void *buffer, size_t count, const ucp_request_param_t *param)
{
    struct request *request = request_new(requests, true);
    ucp_datatype_t datatype = ucp_data_type(param);

    request->binding[SLOT_CALLBACK] = (void *)param->cb.recv;
    request->binding[SLOT_USER_DATA] = param->user_data;
    if (ucp_data_class(datatype) == UCP_DATATYPE_GENERIC) {
        struct generic *generic = ucp_data_generic(datatype);
        void *state = generic->ops.start_unpack(generic->context, buffer, count);

        request->binding[SLOT_GENERIC] = generic;
        request->binding[SLOT_STATE] = state;
        request->capacity = generic->ops.packed_size(state);
        request->staged = true;
    } else if (ucp_data_class(datatype) == UCP_DATATYPE_CONTIG) {
        request->target = buffer;
        request->capacity = count * ucp_data_element(datatype);
    } else {
        request->binding[SLOT_STATE] = buffer; /* MPICH keeps the list until it is complete */
        request->capacity = ucp_data_list_size(buffer, count);
        request->staged = true;
    }
    return request;
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                  ucp_tag_t tag_mask, const ucp_request_param_t *param)
{
    struct request *request = receive_new(buffer, count, param);
    struct cw_recv recv = {.req = request->id,
                           .tag = tag,
                           .mask = tag_mask,
                           .capacity = request->capacity,
                           .clock = device.exchange.cursor.polls};

    request->want_tag = tag;
    request->want_mask = tag_mask;
    trace_request(TRACE_RECEIVE, request);
    operation_recv(device_enter(), &recv);
    return request->user;
}

/* The data is here: it is copied at once, and the request completes at the next call for progress,
 * in every incarnation. MPICH cannot bear that it completes here, for it releases a request of its
 * stack then. */
ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer,
                                      size_t count, const ucp_request_param_t *param)
{
    struct am *am = data_desc;
    size_t size = am->total - am_header_size(am->id);
    ucp_datatype_t datatype = ucp_data_type(param);
    size_t capacity = count * ucp_data_element(datatype);
    struct request *request;

    if (ucp_data_class(datatype) != UCP_DATATYPE_CONTIG)
        fatal_exit(CW_REPORT_FATAL, "MPICH receives the data of an active message into a datatype, "
                                    "which this device lacks");
    request = request_new(requests, false);
    request->binding[SLOT_AM_CALLBACK] = (void *)param->cb.recv_am;
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA)
        request->binding[SLOT_USER_DATA] = param->user_data;
    request->status = size > capacity ? REQUEST_TRUNCATED : REQUEST_OK;
    request->total = size < capacity ? size : capacity;
    if (request->total)
        memcpy(buffer, am->bytes + am_header_size(am->id), request->total);
    if (am->kept)
        am_free(am);
    else
        am->given = true;
    inbox_complete_own(&device.exchange.inbox, request);
    return request->user;
}

/* PROBED's message number, as a handle that is never NULL. */
static ucp_tag_message_h message_handle(uint32_t msg)
{
    return (ucp_tag_message_h)(((uintptr_t)msg + 1) << 4);
}

static uint32_t message_number(ucp_tag_message_h handle)
{
    return (uint32_t)(((uintptr_t)handle >> 4) - 1);
}

ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h worker, void *buffer, size_t count,
                                      ucp_tag_message_h message, const ucp_request_param_t *param)
{
    struct request *request = receive_new(buffer, count, param);
    struct cw_mrecv mrecv = {.req = request->id,
                             .msg = message_number(message),
                             .capacity = request->capacity,
                             .clock = device.exchange.cursor.polls};

    trace_request(TRACE_RECEIVE, request);
    operation_mrecv(device_enter(), &mrecv);
    return request->user;
}

ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag, ucp_tag_t tag_mask,
                                   int remove, ucp_tag_recv_info_t *info)
{
    struct cw_probed probe = operation_probe(device_enter(), tag, tag_mask, remove);

    if (!probe.found)
        return NULL;
    trace((struct trace_operation){.kind = TRACE_PROBE, .tag = probe.tag, .size = probe.total},
          NULL, 0);
    info->sender_tag = probe.tag;
    info->length = probe.total;
    return remove ? message_handle(probe.msg) : FOUND;
}

/* A receive is taken back if its message is not on the way yet, which only the relay can tell: what
 * the device has seen of it depends on the moment. The answer is an event. A synchronous send is at
 * the relay already: it completes by its match. */
void ucp_request_cancel(ucp_worker_h worker, void *user)
{
    struct request *request = request_of_user(user);
    struct cw_recv cancel = {.req = request->id,
                             .tag = request->want_tag,
                             .mask = request->want_mask,
                             .clock = device.exchange.cursor.polls};

    if (!request->receiving || request->completed)
        return;
    trace_request(TRACE_CANCEL, request);
    operation_cancel(device_enter(), &cancel);
}

/* --- completion ----------------------------------------------------------------------------------
 */

static ucs_status_t status_of(const struct request *request)
{
    static const ucs_status_t statuses[] = {[REQUEST_OK] = UCS_OK,
                                            [REQUEST_TRUNCATED] = UCS_ERR_MESSAGE_TRUNCATED,
                                            [REQUEST_CANCELED] = UCS_ERR_CANCELED};

    return statuses[request->status];
}

/* The whole message, in order, then finish: exactly once, also for a receive that was cancelled.
 * MPICH refuses bytes that do not fill elements of its datatype. */
static ucs_status_t unpack(struct request *request)
{
    struct generic *generic = request->binding[SLOT_GENERIC];
    void *state = request->binding[SLOT_STATE];
    size_t size = request->status == REQUEST_CANCELED ? 0 : request->received;
    ucs_status_t status = UCS_OK;

    if (!generic)
        ucp_data_scatter(state, request->target, size);
    else if (size > 0)
        status = generic->ops.unpack(state, 0, request->target, size);
    if (generic)
        generic->ops.finish(state);
    if (request->staging_size)
        arena_free(request->target, request->staging_size);
    return status;
}

static void call_back(const struct request *request, void *user, ucs_status_t status)
{
    ucp_tag_recv_info_t info = {.sender_tag = request->tag, .length = request->total};
    ucp_am_recv_data_nbx_callback_t am_callback = request->binding[SLOT_AM_CALLBACK];
    void *callback = request->binding[SLOT_CALLBACK];
    void *user_data = request->binding[SLOT_USER_DATA];

    if (am_callback)
        am_callback(user, status, info.length, user_data);
    else if (request->receiving)
        ((ucp_tag_recv_nbx_callback_t)callback)(user, status, &info, user_data);
    else if (callback)
        ((ucp_send_nbx_callback_t)callback)(user, status, user_data);
}

static void take_request(struct request *request)
{
    bool released = request->released;
    ucs_status_t unpacked = request->staged ? unpack(request) : UCS_OK;
    ucs_status_t status = request->status == REQUEST_OK ? unpacked : status_of(request);

    request->binding[SLOT_STATUS] = (void *)(intptr_t)status;
    request->completed = true;
    call_back(request, request->user, status);
    if (released)
        request_free(requests, request);
}

/* Returns whether the handler has done with the message: data that is not given at once stays until
 * ucp_am_recv_data_nbx() asks for it, in the handler or later. */
static bool take_parts(const struct am_handler *handler, struct am *am)
{
    size_t header = am_header_size(am->id);
    size_t size = am->total - header;
    bool rendezvous = size > AM_WHOLE_MAX;
    ucp_am_recv_param_t param = {.recv_attr = rendezvous ? UCP_AM_RECV_ATTR_FLAG_RNDV : 0};
    void *data = rendezvous ? (void *)am : am->bytes + header;
    ucs_status_t status = handler->call_parts(handler->arg, am->bytes, header, data, size, &param);

    am->kept = rendezvous && status == UCS_INPROGRESS && !am->given;
    return !am->kept;
}

static void take_am(struct ucp_worker *worker, struct am *am)
{
    struct am_handler handler = {.call = NULL};

    if (am_id(am->id) < AM_HANDLERS_MAX)
        handler = worker->am[am_id(am->id)];
    if (handler.call) {
        handler.call(handler.arg, am->bytes, am->total, NULL, 0);
        am_free(am);
    } else if (handler.call_parts && am_header_size(am->id) <= am->total) {
        if (take_parts(&handler, am))
            am_free(am);
    } else {
        fatal_exit(CW_REPORT_FATAL,
                   "an active message for handler %u, which MPICH did not set, or with a header of "
                   "%zu bytes of %zu",
                   am_id(am->id), am_header_size(am->id), am->total);
    }
}

/* Tells the program what had happened when the call began; handlers may send, and so let more
 * happen. */
static unsigned take_events(struct ucp_worker *worker, struct event *event)
{
    unsigned count = 0;

    while (event) {
        struct event *next = event->next;

        trace_event(event);
        device_take(event);
        if (event->active)
            take_am(worker, (struct am *)event);
        else
            take_request((struct request *)event);
        event = next;
        count++;
    }
    return count;
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    struct device_poll poll = device_poll();
    unsigned count = take_events(worker, poll.events);

    device_polled(&poll, count);
    return count;
}

void ucp_request_release(void *user)
{
    struct request *request = request_of_user(user);

    if (request->completed)
        request_free(requests, request);
    else
        request->released = true;
}

void ucp_request_free(void *user)
{
    ucp_request_release(user);
}

ucs_status_t ucp_request_check_status(void *user)
{
    const struct request *request = request_of_user(user);

    if (!request->completed)
        return UCS_INPROGRESS;
    return (ucs_status_t)(intptr_t)request->binding[SLOT_STATUS];
}

int ucp_request_is_completed(void *user)
{
    return request_of_user(user)->completed;
}
