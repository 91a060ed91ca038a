#include "relay/core/copy_out.h"
#include "relay/core/link.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static struct commit *commit_of(const struct relay_job *job)
{
    return &job->set->shared->store.commit;
}

static bool is_backup(const struct copy_out *copies, uint32_t peer)
{
    for (uint32_t i = 0; i < copies->count; i++)
        if (copies->peer[i] == peer)
            return true;
    return false;
}

static struct relay_conn *conn_of(const struct relay_job *job, uint32_t i)
{
    return job->copies[job->copy_out.peer[i]].conn;
}

/* There is a session with each of them. */
static bool are_all_up(const struct relay_job *job)
{
    for (uint32_t i = 0; i < job->copy_out.count; i++)
        if (!conn_of(job, i))
            return false;
    return job->copy_out.count > 0;
}

/* --- words to the dispatcher */
static void tell(struct relay_job *job, uint32_t code, const char *text)
{
    struct cw_notice_body body = {.code = code, .rank = job->self, .acts = job->copy_out.number};

    if (!job->dispatcher || job->dispatcher->state != CONN_DISPATCHER)
        return;
    snprintf(body.text, sizeof(body.text), "%s", text);
    conn_notice(job->dispatcher, CW_FRAME_NOTICE, &body);
}

void copy_out_failed(struct relay_job *job, const char *fmt, ...)
{
    char text[CW_TEXT_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    tell(job, CW_NOTICE_UNCOVERED, text);
}

/* --- sessions */
/* Nothing more is said on it. */
static void close_session(struct relay_job *job, uint32_t peer)
{
    struct relay_conn *conn = job->copies[peer].conn;

    job->copies[peer].conn = NULL;
    if (!conn)
        return;
    conn->told = true;
    conn_discard(conn);
    conn_end(conn);
    if (conn->suspended)
        conn_forget(conn);
}

/* All that there is goes to all of them, behind what is on its way. */
static void begin(struct relay_job *job)
{
    struct copy_out *copies = &job->copy_out;

    for (uint32_t i = 0; i < copies->count; i++)
        copies->acked[i] = 0;
    copies->whole = 0;
    commit_copy(commit_of(job), commit_holds(commit_of(job)));
}

void copy_out_told(struct relay_job *job, const struct cw_copy *copy, bool returns)
{
    struct copy_out *copies = &job->copy_out;
    const struct copy_out before = *copies;
    bool stays = false;

    *copies = (struct copy_out){
        .number = copy->number, .count = copy->count, .block = before.block, .used = before.used};
    for (uint32_t i = 0; i < copy->count; i++)
        copies->peer[i] = copy->peer[i];
    for (uint32_t i = 0; i < before.count; i++) {
        stays |= is_backup(copies, before.peer[i]);
        if (!is_backup(copies, before.peer[i]))
            copy_out_down(job, before.peer[i], NULL);
    }
    if (!stays)
        commit_copy_end(commit_of(job));
    if (returns && copies->count > 0)
        commit_hold(commit_of(job)); /* it may have been covered */
    for (uint32_t i = 0; i < copies->count; i++)
        if (!job->copies[copies->peer[i]].conn)
            link_want_copy(job, copies->peer[i]);
    if (are_all_up(job))
        begin(job);
}

void copy_out_sent(struct relay_job *job, uint64_t number)
{
    if (number <= job->copy_out.number)
        return;
    commit_copy_end(commit_of(job));
    conn_set_release(job->set->conns);
}

void copy_out_up(struct relay_conn *conn, struct relay_job *job, uint32_t peer)
{
    assert(is_backup(&job->copy_out, peer));
    job_join(job, conn);
    conn->peer = peer;
    conn->state = CONN_COPIED;
    job->copies[peer].conn = conn;
    if (are_all_up(job))
        begin(job);
}

void copy_out_down(struct relay_job *job, uint32_t peer, const char *why)
{
    close_session(job, peer);
    link_want_no_copy(job, peer);
    if (why && is_backup(&job->copy_out, peer))
        copy_out_failed(job, "the copy at relay %u of the job: %s", peer, why);
}

void copy_out_again(struct relay_job *job, uint32_t peer)
{
    close_session(job, peer);
    link_want_copy(job, peer);
}

/* --- parts */
/* One that does not take what it is sent makes all wait. */
static bool is_behind(const struct relay_job *job)
{
    for (uint32_t i = 0; i < job->copy_out.count; i++) {
        const struct relay_conn *conn = conn_of(job, i);

        if (!conn || conn->out.bytes + conn->out.kept > COPY_BEHIND_MAX)
            return true;
    }
    return false;
}

static void release_block(struct copy_out *copies)
{
    if (copies->block)
        relay_block_release(copies->block);
    copies->block = NULL;
    copies->used = 0;
}

/* Room for a part, behind those before: most are small. Returns how much; 0: no memory. */
static uint32_t room_for_part(struct relay_job *job, uint8_t **at)
{
    struct copy_out *copies = &job->copy_out;
    uint32_t room;

    if (copies->block && RELAY_BLOCK_BYTES - copies->used < COPY_PART_MIN)
        release_block(copies);
    if (!copies->block)
        copies->block = relay_block_new(job->pool, false);
    if (!copies->block)
        return 0;
    *at = copies->block->bytes + copies->used;
    room = RELAY_BLOCK_BYTES - copies->used;
    return room < COPY_PART_ROOM ? room : COPY_PART_ROOM;
}

/* The next part; false: there is none, or not now. */
static bool make_part(struct relay_job *job)
{
    struct commit *commit = commit_of(job);
    struct copy_out *copies = &job->copy_out;
    uint8_t *at = NULL;
    uint32_t size;

    if (!commit->copying || is_behind(job))
        return false;
    size = room_for_part(job, &at);
    if (size > 0)
        size = commit_copy_part(commit, at, size);
    for (uint32_t i = 0; i < copies->count && size > 0; i++) {
        uint8_t *to = conn_data_frame(conn_of(job, i), CW_FRAME_COPY_PART, CW_COPY_REF_SIZE, at,
                                      size, copies->block);

        if (to)
            cw_copy_ref_put(to, &(struct cw_copy_ref){.commit = commit->number});
    }
    if (size > 0 && commit->ends && copies->whole == 0)
        copies->whole = commit->number;
    copies->used += size;
    return size > 0;
}

bool copy_out_make(struct relay_job *job)
{
    struct commit *commit = commit_of(job);
    bool any = false;

    while (make_part(job)) {
        store_committed(&job->set->shared->store);
        if (commit->ends)
            conn_set_note(job->set->conns, commit->number);
        any = true;
    }
    if (commit->awaited && commit->awaited->state == SEGMENT_LOST) {
        commit_stop(commit, EIO);
        copy_out_failed(job, "a part of its log cannot be read from its disk");
    }
    return any;
}

bool copy_out_acked(struct relay_conn *conn, uint64_t number)
{
    struct copy_out *copies = &conn->job->copy_out;
    struct commit *commit = commit_of(conn->job);
    uint64_t least = UINT64_MAX;
    bool covers;

    for (uint32_t i = 0; i < copies->count; i++) {
        if (copies->peer[i] == conn->peer && copies->acked[i] < number)
            copies->acked[i] = number;
        if (copies->acked[i] < least)
            least = copies->acked[i];
    }
    if (!commit->copying || copies->whole == 0 || least < copies->whole || least <= commit->acked)
        return false;
    covers = commit->acked < copies->whole;
    commit_copied(commit, least);
    if (covers)
        tell(conn->job, CW_NOTICE_COVERED, "its log is copied");
    return true;
}

void copy_out_end(struct relay_job *job)
{
    for (uint32_t peer = 0; peer < CW_RELAYS_MAX; peer++)
        close_session(job, peer);
    release_block(&job->copy_out);
    if (job->copy_out.number > 0)
        commit_copy_end(commit_of(job));
}
