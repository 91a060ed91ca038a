#include "relay/core/share.h"

#include <stdio.h>
#include <string.h>

#define WHAT_MAX 160 /* bytes of a text */

static bool is_larger(const struct relay_log *log, const struct relay_log *than)
{
    uint64_t bytes = log_memory(log);
    uint64_t than_bytes = log_memory(than);

    return bytes > than_bytes || (bytes == than_bytes && log->bytes > than->bytes);
}

/* In memory, for that is what is needed. One in which messages wait stays. NULL: there is none. */
static struct relay_mailbox *largest_log(const struct relay_job *job)
{
    struct relay_mailbox *largest = NULL;

    for (uint32_t rank = 0; rank < job->ranks; rank++) {
        struct relay_rank *ranked = job->ranked[rank];

        if (ranked && ranked->mailbox.log.kept && ranked->mailbox.away == 0 &&
            (!largest || is_larger(&ranked->mailbox.log, &largest->log)))
            largest = &ranked->mailbox;
    }
    return largest;
}

/* --- logs ----------------------------------------------------------------------------------------
 */

/* What the logs have used up. */
static void describe(char *to, size_t size, const struct log_store *store)
{
    int used = snprintf(to, size, "their memory (%llu MiB, --log-memory) and ",
                        (unsigned long long)store->memory_max >> 20);

    to += used;
    size -= (size_t)used;
    if (store->error)
        snprintf(to, size, "cannot be written to disk (--log-dir): %s", strerror(store->error));
    else if (store->extents_max == 0)
        snprintf(to, size, "have no disk (--log-dir)");
    else
        snprintf(to, size, "their disk (%llu MiB, --log-disk)",
                 (unsigned long long)store->extents_max * RELAY_BLOCK_BYTES >> 20);
}

bool share_logs(struct job_set *set)
{
    char what[WHAT_MAX];
    struct relay_job *most = LIST_FIRST(&set->all);
    struct relay_mailbox *largest;
    struct relay_job *job;

    LIST_FOREACH (job, &set->all, of_set)
        if (job->pool->log_bytes > most->pool->log_bytes)
            most = job;
    largest = most ? largest_log(most) : NULL;
    if (!largest)
        return false;
    describe(what, sizeof(what), &set->shared->store);
    set->relieving = true;
    job_unlog(largest,
              "the logs have used up %s; %llu bytes of them are this job's, and its log was the "
              "largest",
              what, (unsigned long long)most->pool->log_bytes);
    store_settle(&set->shared->store);
    set->relieving = false;
    return true;
}

/* --- memory --------------------------------------------------------------------------------------
 */

/* A job that has ended has no share: its connections are only told the rest. */
static bool gives_way(const struct relay_pool *pool, const struct relay_pool *asker)
{
    if (pool->ended)
        return !pool->drained && pool->held > RELAY_BLOCK_BYTES;
    return pool->held > relay_memory_share(pool->memory) && pool->held > asker->held;
}

/* Who holds the most of those who give way; NULL: nobody. */
static struct relay_pool *who_gives_way(const struct relay_pool *asker)
{
    struct relay_pool *most = NULL;

    for (struct relay_pool *pool = asker->memory->pools; pool; pool = pool->next)
        if (gives_way(pool, asker) && (!most || pool->held > most->held))
            most = pool;
    return most;
}

static void discard_all(struct conn_set *conns, const struct relay_pool *pool,
                        const struct relay_conn *but)
{
    struct relay_conn *conn;

    LIST_FOREACH (conn, &conns->all, of_set)
        if (conn->out.pool == pool && conn != but) {
            conn_discard(conn);
            conn_ready(conn); /* it may be done */
        }
}

/* Its dispatcher is told, if it reads what it is told. */
static void end_job(struct relay_job *job)
{
    const struct relay_memory *memory = job->set->memory;
    struct conn_set *conns = job->set->conns;
    struct relay_conn *told = job->dispatcher;
    struct cw_notice_body body = {.code = CW_NOTICE_FATAL, .rank = UINT32_MAX};

    snprintf(body.text, sizeof(body.text),
             "the relay's memory is spent (%llu of %llu bytes held), and this job holds the most: "
             "%llu bytes, its share being %llu; receive messages earlier, or raise --memory-max",
             (unsigned long long)memory->stats->memory_now, (unsigned long long)memory->memory_max,
             (unsigned long long)job->pool->held, (unsigned long long)relay_memory_share(memory));
    if (told &&
        (told->state != CONN_DISPATCHER || told->suspended || told->out.bytes > RELAY_BLOCK_BYTES))
        told = NULL;
    job->pool->drained = true;
    discard_all(conns, job->pool, told);
    job->dispatcher = NULL;
    job_free(job);
    if (told)
        conn_notice(told, CW_FRAME_NOTICE, &body);
}

/* One step: its largest log, or all that it holds, or what it was still to be told. */
static void give_up(struct job_set *set, struct relay_pool *pool)
{
    struct relay_job *job = pool->owner;
    struct relay_mailbox *largest = job && pool->log_bytes > 0 ? largest_log(job) : NULL;

    if (largest) {
        job_unlog(largest,
                  "the relay's memory is spent (--memory-max), this job holds the most, %llu "
                  "bytes, and its log was its largest",
                  (unsigned long long)pool->held);
    } else if (job) {
        end_job(job);
    } else {
        pool->drained = true;
        discard_all(set->conns, pool, NULL);
    }
}

bool share_relieve(void *ctx, struct relay_pool *asker)
{
    struct job_set *set = ctx;
    struct relay_pool *most;

    /* whoever is amid something must not lose what it works with: a job that asks never does, and
     * while one gives way no other does */
    if (set->relieving)
        return false;
    if (set->shared->copies.count > 0) {
        copies_pay_all(&set->shared->copies); /* what is owed holds blocks */
        return true;
    }
    most = asker->modest ? NULL : who_gives_way(asker);
    if (!most)
        return false;
    set->relieving = true;
    give_up(set, most);
    store_settle(&set->shared->store);
    set->relieving = false;
    return true;
}
