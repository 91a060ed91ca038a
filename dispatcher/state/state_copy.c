#include "dispatcher/state/state_copy.h"
#include "common/buf.h"

void state_copy_put(uint8_t to[STATE_COPY_HEADER], const struct state_copy_message *message)
{
    struct cw_writer w = cw_writer(to, STATE_COPY_HEADER);

    cw_put_u32(&w, message->type);
    cw_put_u32(&w, message->size);
    cw_put_u64(&w, message->at);
}

static bool makes_sense(const struct state_copy_message *m)
{
    switch (m->type) {
    case STATE_COPY_JOURNAL:
        return m->size > 0 && m->size <= STATE_COPY_BODY_MAX && m->at <= JOB_STATE_BYTES_MAX;
    case STATE_COPY_COUNT:
        return m->size == STATE_COPY_COUNT_SIZE && m->at <= UINT32_MAX;
    case STATE_COPY_SYNC:
    case STATE_COPY_OVER:
        return m->size == 0;
    default:
        return false;
    }
}

long state_copy_get(const uint8_t *bytes, size_t size, struct state_copy_message *message,
                    struct cw_err *err)
{
    struct cw_reader r = cw_reader(bytes, size);

    *message = (struct state_copy_message){0};
    if (size < STATE_COPY_HEADER)
        return 0;
    message->type = cw_get_u32(&r);
    message->size = cw_get_u32(&r);
    message->at = cw_get_u64(&r);
    if (!makes_sense(message))
        return cw_err_set(err, CW_EPROTO, "a message of the type %u that makes no sense",
                          message->type);
    if (r.left < message->size)
        return 0;
    message->bytes = r.at;
    return (long)(STATE_COPY_HEADER + message->size);
}
