#include "dispatcher/run/starts.h"
#include "common/channel.h"
#include "dispatcher/run/host_relays.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct start {
    uint8_t *early; /* what its first incarnation read before MPI_Init; owned */
    uint32_t early_size;
    uint32_t image; /* that the process which was ordered last goes on from; 0: none */
    enum { STARTS_NOT, STARTS_HELD, STARTS_FETCHING } waits; /* for its relay; for its image */
    struct job_order order;
};

int starts_open(struct starts *s, struct parts *parts, struct job *job,
                const struct fault_plan *plan, const struct unrestartable *unrestartable,
                struct cw_err *err)
{
    *s = (struct starts){.parts = parts, .job = job, .plan = plan, .unrestartable = unrestartable};
    s->rank = calloc(job->config.ranks, sizeof(*s->rank));
    if (!s->rank)
        return cw_err_set(err, CW_ENOMEM, "no memory for a job of %u ranks", job->config.ranks);
    return CW_OK;
}

void starts_close(struct starts *s)
{
    for (uint32_t rank = 0; s->rank && rank < s->job->config.ranks; rank++)
        free(s->rank[rank].early);
    free(s->rank);
    s->rank = NULL;
}

static uint64_t now_of(const struct starts *s)
{
    return loop_now_ns(s->parts->loop);
}

bool starts_take_early(struct starts *s, uint32_t rank, const struct cw_report *report)
{
    struct start *r = &s->rank[rank];

    if (r->early)
        return true;
    r->early = malloc(report->early_size + 1);
    if (!r->early)
        return false;
    memcpy(r->early, report->early, report->early_size);
    r->early_size = (uint32_t)report->early_size;
    return true;
}

static const uint32_t contents_flags[] = {
    [CONTENTS_ALL] = CW_SETUP_CONTENTS_ALL, [CONTENTS_NONE] = CW_SETUP_CONTENTS_NONE};

/* The node knows how much of a disk there is. */
static void set_channel(struct cw_setup *setup, const struct parts *parts)
{
    const struct relay_settings *settings = &parts->options->relay_settings;
    bool logs = !parts->options->no_log;
    uint64_t disk = settings->log_disk == RELAY_LOG_DISK_SHARE ? UINT64_MAX : settings->log_disk;

    setup->flags |= CW_SETUP_CHANNEL;
    setup->channel_ranks =
        placement_together(&parts->layout.placement, setup->process.rank, setup->ranks,
                           setup->channel_rank, CW_CHANNEL_RANKS_MAX);
    setup->channel_bytes =
        cw_channel_bytes(setup->channel_ranks, logs ? relay_settings_log_memory(settings) : 0);
    setup->channel_disk = logs ? disk : 0;
    if (parts->layout.at_hosts) /* else those of a node are together, wherever they are at home */
        setup->channel_group = relays_home(parts->relays, setup->process.rank);
    setup->mailbox_bytes = settings->memory_max / setup->channel_ranks;
}

static struct cw_setup setup_of(const struct starts *s, const struct job_order *order)
{
    const struct parts *parts = s->parts;
    const struct start *r = &s->rank[order->process.rank];
    uint32_t host = s->job->slots.slot[order->slot].host;
    char address[CW_ADDRESS_MAX];
    struct cw_setup setup = {.process = order->process,
                             .ranks = parts->options->ranks,
                             .spin_ns = parts->spin_ns,
                             .resume_ms = parts->options->resume_ms,
                             .early = r->early,
                             .early_size = r->early_size};

    placement_local(&parts->layout.placement, order->process.rank, parts->options->ranks,
                    &setup.local_rank, &setup.local_ranks);
    setup.fault_event =
        fault_plan_event_of(s->plan, order->process.rank, order->process.incarnation);
    memcpy(setup.job, parts->job_id, sizeof(setup.job));
    host_relays_address(parts, relays_home(parts->relays, order->process.rank), host, address);
    snprintf(setup.address, sizeof(setup.address), "%.299s", address);
    relays_rank_key(parts->relays, order->process.rank, order->process.incarnation, setup.key);
    imaging_set_up(parts->imaging, host, &setup);
    if (unrestartable_shares_files(s->unrestartable, order->process.rank))
        setup.flags |= CW_SETUP_SHARES_FILES;
    setup.flags |= contents_flags[parts->options->contents];
    if (parts->layout.channel)
        set_channel(&setup, parts);
    if (parts->options->contents_end)
        setup.flags |= CW_SETUP_CONTENTS_END;
    return setup;
}

/* Where the memory of a rank's group is: where its ranks were placed first, or, if the log of
 * their relay has copies, where that is now. */
static uint32_t memory_host(const struct parts *parts, uint32_t rank)
{
    return parts->options->log_copies ? host_relays_of(parts, relays_home(parts->relays, rank))
                                      : placement_host(&parts->layout.placement, rank);
}

/* Its memory is on one host, and on no other one. */
static int check_memory(const struct starts *s, const struct job_order *order,
                        const struct cw_setup *setup, struct cw_err *err)
{
    const struct parts *parts = s->parts;
    uint32_t rank = order->process.rank;
    uint32_t host = s->job->slots.slot[order->slot].host;
    uint32_t at = memory_host(parts, rank);

    if (!(setup->flags & CW_SETUP_CHANNEL))
        return CW_OK;
    if (setup->channel_ranks > CW_CHANNEL_RANKS_MAX)
        return cw_err_set(
            err, CW_EINVAL,
            "starting rank %u: %u ranks on its host, and --channel on is for at most %u", rank,
            setup->channel_ranks, CW_CHANNEL_RANKS_MAX);
    if (host == at)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL,
                      "starting rank %u on host %s: what it did is in the channel memory of host "
                      "%s (--channel off "
                      "keeps it at relays)",
                      rank, nodes_name(parts->nodes, host), nodes_name(parts->nodes, at));
}

static int launch(struct starts *s, const struct job_order *order, uint32_t image, int image_fd,
                  struct cw_err *err)
{
    struct parts *parts = s->parts;
    bool reads = order->process.rank == 0;
    struct cw_setup setup;
    int failed;

    /* rank 0 reads again what the process before it was given, from the image or the beginning on
     */
    if (reads && order->process.incarnation > 1 && rank_input_restart(parts->input, image, err) < 0)
        return err->code;
    if (order->process.incarnation > 1) {
        const struct job_state_record record = {.type = JOB_STATE_START,
                                                .rank = order->process.rank,
                                                .number = order->process.incarnation,
                                                .image = image};

        state_file_put(parts->state, &record);
        state_file_sync(parts->state);
    }
    setup = setup_of(s, order);
    failed = check_memory(s, order, &setup, err);
    if (!failed)
        failed = remote_start(parts->remote, programs_of(&parts->programs, order->process.rank),
                              &setup, s->job->slots.slot[order->slot].host,
                              reads ? rank_input_end(parts->input) : -1, image_fd, err);
    sodium_memzero(setup.key, sizeof(setup.key));
    sodium_memzero(setup.image_key, sizeof(setup.image_key));
    if (!failed && reads)
        rank_input_taken(parts->input);
    return failed;
}

/* As shells say it. */
static int code_of(const struct cw_err *err)
{
    if (err->code == CW_ENOTFOUND)
        return 127;
    return err->code == CW_EINVAL ? 126 : 1;
}

void starts_failed(struct starts *s, uint32_t rank, const struct cw_err *err)
{
    const struct job_rank *r = &s->job->rank[rank];

    log_verbose(&s->parts->log, "%s (incarnation %u, slot %u)", err->text, r->incarnation + 1,
                r->slot);
    job_start_failed(s->job, rank, code_of(err), now_of(s), err->text);
}

/* --- starts that wait --- */

/* A rank that starts without a relay would fail at once. */
static bool must_wait(const struct starts *s, uint32_t rank)
{
    return !relays_listens(s->parts->relays, relays_home(s->parts->relays, rank));
}

static void wait_for(struct starts *s, const struct job_order *order, int what)
{
    s->rank[order->process.rank].waits = what;
    s->rank[order->process.rank].order = *order;
    s->waiting++;
}

/* Returns the order. */
static struct job_order wait_no_more(struct starts *s, uint32_t rank)
{
    s->rank[rank].waits = STARTS_NOT;
    s->waiting--;
    return s->rank[rank].order;
}

static void tell(struct starts *s, const struct job_order *order, uint32_t image)
{
    char from[32] = "";

    if (order->process.incarnation == 1 || order->again || !order->why[0])
        return;
    if (image)
        snprintf(from, sizeof(from), " from image %u", image);
    log_notice(&s->parts->log, "rank %u %s; restarting it%s (incarnation %u)", order->process.rank,
               order->why, from, order->process.incarnation);
}

static void start(struct starts *s, const struct job_order *order, uint32_t image, int image_fd)
{
    struct cw_err err = {0};
    int failed;

    tell(s, order, image);
    s->rank[order->process.rank].image = image;
    failed = launch(s, order, image, image_fd, &err);
    loop_look(s->parts->loop);
    if (failed)
        starts_failed(s, order->process.rank, &err);
}

void starts_begin(struct starts *s, const struct job_order *order)
{
    if (must_wait(s, order->process.rank)) {
        wait_for(s, order, STARTS_HELD);
        return;
    }
    if (order->process.incarnation == 1) {
        start(s, order, 0, -1);
        return;
    }
    /* until it is known what it starts from, which may be at once */
    wait_for(s, order, STARTS_FETCHING);
    if (!imaging_restart(s->parts->imaging, order->process.rank))
        starts_from(s, order->process.rank, 0, -1);
}

void starts_from(struct starts *s, uint32_t rank, uint32_t number, int fd)
{
    struct job_order order;

    if (s->rank[rank].waits == STARTS_FETCHING) {
        order = wait_no_more(s, rank);
        if (must_wait(s, rank))
            wait_for(s, &order, STARTS_HELD);
        else
            start(s, &order, number, fd);
    }
    if (fd >= 0)
        close(fd);
}

void starts_relay_back(struct starts *s, uint32_t relay)
{
    for (uint32_t rank = 0; s->waiting && rank < s->job->config.ranks; rank++)
        if (s->rank[rank].waits == STARTS_HELD && relays_home(s->parts->relays, rank) == relay) {
            struct job_order order = wait_no_more(s, rank);

            starts_begin(s, &order);
        }
}

bool starts_drop(struct starts *s)
{
    bool any = s->waiting > 0;

    for (uint32_t rank = 0; s->waiting && rank < s->job->config.ranks; rank++)
        if (s->rank[rank].waits != STARTS_NOT) {
            wait_no_more(s, rank);
            job_start_failed(s->job, rank, 1, now_of(s), "the job ends");
        }
    return any;
}

uint32_t starts_image(const struct starts *s, uint32_t rank)
{
    return s->rank[rank].image;
}
