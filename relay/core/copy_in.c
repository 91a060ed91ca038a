#include "relay/core/copy_in.h"
#include "common/err.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct copy_in *copy_of(const struct relay_job *job, uint32_t relay)
{
    return relay < CW_RELAYS_MAX && job->set->copies ? &job->set->copies[relay] : NULL;
}

bool copy_in_open(struct job_set *set, const struct relay_copy_memory memory[CW_RELAYS_MAX])
{
    set->copies = calloc(CW_RELAYS_MAX, sizeof(*set->copies));
    for (uint32_t i = 0; i < CW_RELAYS_MAX && set->copies; i++)
        set->copies[i] = (struct copy_in){.memory = memory[i].memory, .region = memory[i].region};
    return set->copies != NULL;
}

/* --- sessions */
int copy_in_hello(struct relay_job *job, const struct cw_hello *hello, struct cw_err *err)
{
    struct copy_in *copy = copy_of(job, hello->rank);

    if (!copy || !copy->memory || (copy->job && copy->job != job)) {
        cw_err_set(err, CW_EINVAL, "there is no memory here for a copy of the log of relay %u",
                   hello->rank);
        return CW_REFUSED_LIMIT;
    }
    if (copy->closed) {
        cw_err_set(err, CW_EINVAL, "another process has taken the place of relay %u", hello->rank);
        return CW_REFUSED_FENCED;
    }
    if (copy->open && copy->held.ledger.memory->header.incarnation == hello->incarnation)
        return 0;
    held_close(&copy->held);
    copy->open = held_open(&copy->held, copy->memory, &copy->region, hello->incarnation) == CW_OK;
    copy->whole = 0;
    copy->job = job;
    if (copy->open)
        return 0;
    cw_err_set(err, CW_ENOMEM, "no memory");
    return CW_REFUSED_LIMIT;
}

struct relay_conn *copy_in_session(const struct relay_job *job, uint32_t relay)
{
    struct copy_in *copy = copy_of(job, relay);

    return copy && copy->job == job ? copy->conn : NULL;
}

void copy_in_replace(struct relay_job *job, const struct relay_conn *old, struct relay_conn *conn)
{
    struct copy_in *copy = copy_of(job, old->peer);

    if (copy && copy->conn == old)
        copy->conn = conn;
}

static void forget_part(struct copy_in *copy)
{
    if (copy->part)
        relay_block_release(copy->part);
    copy->part = NULL;
    copy->size = 0;
}

/* It is over; what it had not said whole is void. */
static void leave(struct copy_in *copy)
{
    struct relay_conn *conn = copy->conn;

    forget_part(copy);
    copy->conn = NULL;
    if (!conn)
        return;
    conn->told = true;
    conn_end(conn);
    if (conn->suspended)
        conn_forget(conn);
}

void copy_in_up(struct relay_conn *conn, struct relay_job *job, const struct cw_hello *hello)
{
    struct copy_in *copy = copy_of(job, hello->rank);

    leave(copy); /* of a process that was killed, or has begun anew */
    held_begin(&copy->held);
    copy->number = hello->event;
    copy->conn = conn;
    job_join(job, conn);
    conn->peer = hello->rank;
    conn->state = CONN_COPY;
}

/* Its own words may wait for this very copy. */
static void tell_uncovered(struct relay_job *job, uint32_t relay, uint64_t number, const char *why)
{
    struct cw_notice_body body = {.code = CW_NOTICE_UNCOVERED, .rank = relay, .acts = number};

    if (!job->dispatcher || job->dispatcher->state != CONN_DISPATCHER)
        return;
    snprintf(body.text, sizeof(body.text), "%s", why);
    conn_notice(job->dispatcher, CW_FRAME_NOTICE, &body);
}

void copy_in_down(struct relay_conn *conn, const char *why)
{
    struct copy_in *copy = copy_of(conn->job, conn->peer);

    if (!copy || copy->conn != conn)
        return;
    if (why)
        tell_uncovered(conn->job, conn->peer, copy->number, why);
    forget_part(copy);
    copy->conn = NULL;
}

/* --- parts */
void copy_in_part(struct relay_conn *conn, uint64_t commit)
{
    struct copy_in *copy = copy_of(conn->job, conn->peer);

    assert(copy->conn == conn && copy->size == 0);
    copy->commit = commit;
    if (!copy->part)
        copy->part = relay_block_new(conn->job->pool, false);
    if (!copy->part)
        conn_out_of_memory(conn, "taking a part of a log");
}

/* What cannot be taken ends the session, and the last whole commit stays. */
static void take(struct relay_conn *conn, struct copy_in *copy)
{
    struct journal_reader reader;
    struct journal_part part;
    struct cw_err err = {0};

    if (!journal_part_at(copy->part->bytes, copy->size, &part) || part.size != copy->size) {
        conn_refuse(conn, CW_REFUSED_PROTOCOL, "a part of a log that is not whole");
        return;
    }
    reader = journal_read_part(copy->part->bytes, &part);
    if (held_take(&copy->held, &reader, &err) < 0) {
        conn_refuse(conn, err.code == CW_EPROTO ? CW_REFUSED_PROTOCOL : CW_REFUSED_LIMIT,
                    "the copy of its log: %s", err.text);
        return;
    }
    if (!part.ends)
        return;
    copy->whole = copy->commit;
    conn_frame(conn, CW_FRAME_COPY_ACK, &(struct cw_copy_ref){.commit = copy->commit},
               CW_COPY_REF_SIZE);
}

void copy_in_input(struct relay_conn *conn, const uint8_t *at, uint32_t size)
{
    struct copy_in *copy = copy_of(conn->job, conn->peer);

    assert(copy->conn == conn && copy->size + size <= RELAY_BLOCK_BYTES);
    memcpy(copy->part->bytes + copy->size, at, size);
    copy->size += size;
    if (conn->payload_left > 0)
        return;
    take(conn, copy);
    copy->size = 0;
}

/* --- its end */
struct cw_copy_closed copy_in_close(struct relay_job *job, const struct cw_copy_close *close)
{
    struct cw_copy_closed closed = {.relay = close->relay};
    struct copy_in *copy = copy_of(job, close->relay);

    if (!copy || !copy->memory || (copy->job && copy->job != job))
        return closed;
    if (copy->conn)
        conn_refuse(copy->conn, CW_REFUSED_FENCED, "another process takes the place of relay %u",
                    close->relay);
    leave(copy);
    closed.covered = held_is_left(copy->memory, close->incarnation);
    closed.commit = copy->whole;
    held_close(&copy->held);
    copy->open = false;
    copy->closed = true;
    copy->job = job;
    return closed;
}

void copy_in_end(struct relay_job *job)
{
    for (uint32_t relay = 0; relay < CW_RELAYS_MAX && job->set->copies; relay++) {
        struct copy_in *copy = &job->set->copies[relay];

        if (copy->job != job)
            continue;
        leave(copy);
        held_close(&copy->held);
        *copy = (struct copy_in){
            .memory = copy->memory, .region = copy->region, .closed = copy->closed};
    }
}

bool copy_in_next_surplus(struct job_set *set, struct relay_pages *pages)
{
    for (uint32_t relay = 0; relay < CW_RELAYS_MAX && set->copies; relay++)
        if (set->copies[relay].open && supply_next_surplus(&set->copies[relay].held.supply, pages))
            return true;
    return false;
}
