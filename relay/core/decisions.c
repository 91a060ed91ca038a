#include "relay/core/decisions.h"

#define UNREADABLE "what it decides cannot be read in the channel memory of its host"

void decisions_init(struct decisions *decisions, const struct relay_channel *channel)
{
    decisions->source = *channel;
    decisions->memory.read = channel->read;
    decisions->memory.ctx = channel->ctx;
}

/* --- the ranks of a job --------------------------------------------------------------------------
 */

/* Those that share the memory: all that are at home here, in their order. */
static void find_group(struct relay_job *job)
{
    struct job_group *group = &job->group;

    for (uint32_t rank = 0; rank < job->ranks && group->count <= CW_CHANNEL_RANKS_MAX; rank++) {
        if (!job_is_home(job, rank))
            continue;
        if (group->count < CW_CHANNEL_RANKS_MAX)
            group->rank[group->count] = (uint16_t)rank;
        group->count++;
    }
}

static bool has_group(struct relay_job *job)
{
    if (job->group.count == 0)
        find_group(job);
    return job->group.count <= CW_CHANNEL_RANKS_MAX;
}

/* NULL: no process of it has ever been here. */
static struct relay_mailbox *mailbox_of(const struct relay_job *job, uint32_t place)
{
    struct relay_rank *rank = job->ranked[job->group.rank[place]];

    return rank && rank->mailbox.incarnation > 0 ? &rank->mailbox : NULL;
}

/* The memory of this job's ranks. False: there is none yet, or it makes no sense. */
static bool open_memory(struct relay_job *job)
{
    struct decisions *d = job->set->decisions;
    uint64_t size = d->source.size(d->source.ctx);

    return has_group(job) && size > 0 &&
           cw_channel_at(&d->memory.channel, NULL, size, job->group.count);
}

static bool is_concerned(const struct relay_job *job)
{
    return job->channel && job->log && job->settled && job->set->decisions->source.read;
}

/* --- taking --------------------------------------------------------------------------------------
 */

/* What a successor of one that had lost its memory writes into another one is here already. */
static bool take_one(void *ctx, const struct cw_piece *piece, const uint8_t *payload)
{
    struct relay_mailbox *mailbox = ctx;

    return mailbox->follow.count < mailbox->log.decided.count ||
           log_decide(&mailbox->log, piece, payload) == CW_OK;
}

static void take(struct relay_mailbox *mailbox, uint32_t place, bool readable)
{
    struct decisions *d = mailbox->job->set->decisions;
    uint64_t before = mailbox->follow.at;
    int result = CW_EPROTO;

    if (!mailbox->log.kept || (!readable && mailbox->lost)) /* nobody has come there yet */
        return;
    if (readable)
        result = cw_follow(&d->memory, place, &mailbox->follow, take_one, mailbox);
    if (mailbox->follow.at != before)
        ledger_change(&mailbox->entry);
    if (result == CW_EPROTO)
        mailbox_log_failed(mailbox, UNREADABLE);
    else
        mailbox_logged(mailbox, result);
}

static void take_of(struct relay_job *job, const struct relay_mailbox *only)
{
    bool readable = is_concerned(job) && open_memory(job);

    if (!is_concerned(job))
        return;
    for (uint32_t place = 0; place < job->group.count && place < CW_CHANNEL_RANKS_MAX; place++) {
        struct relay_mailbox *mailbox = mailbox_of(job, place);

        if (mailbox && (!only || only == mailbox))
            take(mailbox, place, readable);
    }
}

void decisions_take_all(struct job_set *set)
{
    struct relay_job *job;

    LIST_FOREACH (job, &set->all, of_set)
        take_of(job, NULL);
}

void decisions_take(struct relay_mailbox *mailbox)
{
    take_of(mailbox->job, mailbox);
}

/* --- after a loss --------------------------------------------------------------------------------
 */

struct cut {
    const struct relay_job *job;
    struct log_decided_reading reading[CW_CHANNEL_RANKS_MAX];
};

static void begin(void *ctx, uint32_t place)
{
    ((struct cut *)ctx)->reading[place] = (struct log_decided_reading){.begun = false};
}

static bool next(void *ctx, uint32_t place, struct cw_piece *piece)
{
    struct cut *cut = ctx;
    const struct relay_mailbox *mailbox = mailbox_of(cut->job, place);
    struct log_decision decision;

    if (!mailbox || !log_next_decided(&mailbox->log.decided, &cut->reading[place], &decision))
        return false;
    *piece = decision.piece;
    return true;
}

static int cut_all(struct relay_job *job)
{
    struct cut cut = {.job = job};
    uint64_t counts[CW_CHANNEL_RANKS_MAX] = {0};
    int failed = CW_OK;

    for (uint32_t place = 0; place < job->group.count; place++)
        if (mailbox_of(job, place))
            counts[place] = mailbox_of(job, place)->log.decided.count;
    cw_decided_cut(&(struct cw_decided_source){begin, next, &cut}, job->group.count, counts);
    for (uint32_t place = 0; place < job->group.count && !failed; place++)
        if (mailbox_of(job, place))
            failed = log_cut_decided(&mailbox_of(job, place)->log, counts[place]);
    return failed;
}

int decisions_return(struct relay_job *job)
{
    const struct decisions *d = job->set->decisions;
    bool any = false;
    bool there;

    if (!is_concerned(job) || !has_group(job))
        return CW_OK;
    there = open_memory(job);
    for (uint32_t place = 0; place < job->group.count; place++) {
        struct relay_mailbox *mailbox = mailbox_of(job, place);

        if (!mailbox || (there && cw_follow_came(&d->memory, place)))
            continue;
        any |= !mailbox->lost;
        mailbox->lost = true;
        mailbox->follow = (struct cw_follow){.at = 0};
        ledger_change(&mailbox->entry);
    }
    return any ? cut_all(job) : CW_OK;
}
