#include "tests/trace/ends.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

bool ends_move(struct client *from, struct client *to)
{
    struct iovec iov;
    size_t room;
    void *at;

    if (!from->conn || !to->conn || !relay_conn_has_output(from->conn))
        return false;
    CU_ASSERT_EQUAL_FATAL(relay_conn_output(from->conn, &iov, 1), 1);
    CU_ASSERT_EQUAL_FATAL(relay_conn_space(to->conn, &at, &room), CW_OK);
    room = iov.iov_len < room ? iov.iov_len : room;
    memcpy(at, iov.iov_base, room);
    relay_conn_written(from->conn, room);
    relay_conn_input(to->conn, room);
    fixture_collect(from->fixture);
    fixture_collect(to->fixture);
    return true;
}

void ends_pump(struct client *a, struct client *b)
{
    while (ends_move(a, b) || ends_move(b, a))
        ;
}

void ends_lose(struct client *from)
{
    while (relay_conn_has_output(from->conn)) {
        struct iovec iov;

        CU_ASSERT_EQUAL_FATAL(relay_conn_output(from->conn, &iov, 1), 1);
        relay_conn_written(from->conn, iov.iov_len);
    }
}

/* And no more than that: what follows is for who gets the connection. Returns its type. */
static uint8_t read_answer(struct client *c)
{
    uint8_t head[CW_FRAME_HEADER];
    struct codec_frame frame;
    struct cw_err err;
    struct iovec iov;
    size_t size;

    CU_ASSERT_EQUAL_FATAL(relay_conn_output(c->conn, &iov, 1), 1);
    memcpy(head, iov.iov_base, sizeof(head));
    size = CW_FRAME_HEADER + cw_frame_length(head);
    CU_ASSERT_TRUE_FATAL(iov.iov_len >= size);
    codec_receive(&c->codec, iov.iov_base, size);
    relay_conn_written(c->conn, size);
    CU_ASSERT_EQUAL_FATAL(codec_next(&c->codec, &frame, &err), 1);
    if (frame.header.type == CW_FRAME_WELCOME)
        CU_ASSERT_TRUE(cw_welcome_get(frame.body, &c->welcome));
    return frame.header.type;
}

static uint32_t hello_flags(const struct relay_dial *wanted)
{
    return (wanted->resumes ? CW_HELLO_RESUME : 0) | (wanted->copies ? CW_HELLO_COPY : 0);
}

static bool shake_hands(const struct relay_dial *wanted, struct fixture *to, struct client *far)
{
    fixture_connect(to, far, "x");
    far->hello = (struct cw_hello){.role = CW_ROLE_RELAY,
                                   .rank = wanted->self,
                                   .incarnation = wanted->incarnation,
                                   .event = wanted->number,
                                   .flags = hello_flags(wanted),
                                   .received = wanted->received};
    memcpy(far->key, wanted->key, CW_KEY_SIZE);
    far->stalled = true;
    fixture_hello(far);
    return read_answer(far) == CW_FRAME_WELCOME;
}

bool ends_dial(struct fixture *from, struct client *near, struct fixture *to, struct client *far)
{
    const struct relay_dial wanted = from->dial;
    struct relay_dialled dialled = relay_dialled_of(&wanted);

    from->dials = 0;
    if (!shake_hands(&wanted, to, far)) {
        relay_conn_close(far->conn, "refused");
        far->conn = NULL;
        snprintf(dialled.failure, sizeof(dialled.failure), "refused");
        relay_core_undialled(from->core, &dialled);
        fixture_collect(from);
        return false;
    }
    CU_ASSERT_EQUAL(far->welcome.flags, wanted.resumes ? CW_WELCOME_RESUMED : 0);
    dialled.session = far->codec.session;
    dialled.received = far->welcome.received;
    *near = (struct client){.fixture = from, .name = "x", .stalled = true};
    near->conn = relay_conn_dialled(from->core, &dialled, from->now_ns, near);
    CU_ASSERT_PTR_NOT_NULL_FATAL(near->conn);
    fixture_collect(from);
    return true;
}

void ends_break(struct client *near, struct client *far)
{
    near->stalled = far->stalled = false;
    fixture_close(near, "reset");
    fixture_close(far, "reset");
}
