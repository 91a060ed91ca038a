#include "dispatcher/ranks/rank_io.h"
#include "dispatcher/ranks/pmi_line.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one process. */
struct one {
    struct rank_io *of;
    struct cw_process process; /* whichever incarnation */
    struct channel *pmi;       /* NULL: there is none */
    struct channel *control;
    struct pmi_lines lines;
    bool has_device; /* its process has read its setup */
};

struct rank_io {
    struct rank_io_config config;
    struct pmi *pmi;
    struct one *one; /* of each process */
    bool replaying;  /* what was said to a dispatcher before us */
};

static struct one *one_of(const struct rank_io *io, struct cw_process process)
{
    return &io->one[cw_process_index(process)];
}

static void keep(const struct one *one, uint32_t type, uint32_t number, const void *bytes,
                 size_t size)
{
    const struct job_state_record record = {.type = type,
                                            .rank = one->process.rank,
                                            .number = number,
                                            .bytes = bytes,
                                            .size = (uint32_t)size};

    state_file_put(one->of->config.state, &record);
}

/* --- PMI --- */

static void on_answer(void *ctx, struct cw_process process, const struct pmi_answer *answer)
{
    struct rank_io *io = ctx;
    struct channel *pmi = one_of(io, process)->pmi;
    char line[PMI_LINE_MAX];
    struct cw_err err;

    if (pmi && answer->what >= PMI_COMMITS)
        state_file_sync(io->config.state);
    /* MPICH asks one thing at a time: there is room, unless the process is no MPICH */
    if (!pmi || channel_write(pmi, line, pmi_line_put(line, answer)) || channel_has_ended(pmi))
        return;
    cw_err_set(&err, CW_EPROTO, "rank %u does not read the answers to its PMI requests",
               process.rank);
    io->config.events->broken(io->config.ctx, &err);
}

/* Its strings one after the other, each with its end. */
static void keep_request(const struct one *one, const struct pmi_request *request)
{
    char bytes[PMI_LINE_MAX];
    size_t size = 0;

    for (int i = 0; i < 2; i++)
        size += (size_t)sprintf(bytes + size, "%s", (i ? request->value : request->key) ?: "") + 1;
    keep(one, JOB_STATE_PMI, request->what, bytes, size);
}

/* MPI_Init opens UCP, which is the R-device, before its first fence. */
static void on_asked(void *ctx, struct cw_process process, const struct pmi_request *request)
{
    const struct rank_io *io = ctx;
    const struct rank_io_events *events = io->config.events;

    if (io->replaying)
        return;
    if (request->what >= PMI_KEPT)
        keep_request(one_of(io, process), request);
    if (request->what == PMI_FENCE && !one_of(io, process)->has_device)
        events->without_device(io->config.ctx, process.rank);
    events->asked(io->config.ctx, process.rank, request);
}

static void on_forgotten(void *ctx, uint32_t rank)
{
    const struct rank_io_config *config = &((struct rank_io *)ctx)->config;

    config->events->forgotten(config->ctx, rank);
}

static const struct pmi_ops pmi_ops = {on_asked, on_answer, on_forgotten};

/* --- both descriptors --- */

struct rank_io *rank_io_new(const struct rank_io_config *config)
{
    char name[2 * CW_ID_SIZE + 16] = "causeway_";
    struct pmi_config pmi = {.ranks = config->ranks,
                             .kvsname = name,
                             .appnums = config->appnums,
                             .places = config->places};
    struct rank_io *io = calloc(1, sizeof(*io));

    if (!io)
        return NULL;
    sodium_bin2hex(name + strlen(name), 2 * CW_ID_SIZE + 1, config->job_id, CW_ID_SIZE);
    io->config = *config;
    io->pmi = pmi_new(&pmi, &pmi_ops, io);
    io->one = calloc(config->ranks * CW_REPLICAS, sizeof(*io->one));
    for (uint32_t i = 0; io->one && i < config->ranks * CW_REPLICAS; i++)
        io->one[i] = (struct one){.of = io,
                                  .process = {.rank = i / CW_REPLICAS, .replica = i % CW_REPLICAS}};
    if (io->pmi && io->one)
        return io;
    rank_io_free(io);
    return NULL;
}

void rank_io_free(struct rank_io *io)
{
    if (!io)
        return;
    for (size_t i = 0; io->one && i < io->config.ranks * CW_REPLICAS; i++)
        rank_io_close(io, io->one[i].process);
    pmi_free(io->pmi);
    free(io->one);
    free(io);
}

/* Takes something that has come. Returns 0 when there is nothing now, or no more at all: then the
 * channel is closed. */
static size_t take(struct channel **channel, void *bytes, size_t size)
{
    ssize_t n = *channel ? channel_read(*channel, bytes, size) : -1;

    if (n == 0) {
        channel_close(*channel);
        *channel = NULL;
    }
    return n > 0 ? (size_t)n : 0;
}

static void take_report(struct one *one, const struct cw_report *report, const uint8_t *bytes,
                        size_t size)
{
    const struct rank_io_config *config = &one->of->config;

    switch (report->kind) {
    case CW_REPORT_SETUP_READ:
        one->has_device = true;
        return;
    case CW_REPORT_EARLY:
    case CW_REPORT_FILE:
    case CW_REPORT_NESTED:
        keep(one, JOB_STATE_REPORT, 0, bytes, size);
        break;
    case CW_REPORT_IMAGE_TAKEN:
        if (pmi_lines_are_open(&one->lines))
            break; /* in the middle of a request there is no place */
        keep(one, JOB_STATE_MARK, report->image.number, NULL, 0);
        pmi_mark(one->of->pmi, one->process, report->image.number);
        break;
    default:
        break;
    }
    config->events->report(config->ctx, one->process.rank, report);
}

static void hear_control(struct one *one, uint32_t reads)
{
    const struct rank_io_config *config = &one->of->config;
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_report report;
    size_t size;

    for (uint32_t i = 0; i < reads && (size = take(&one->control, bytes, sizeof(bytes))) > 0; i++) {
        if (!cw_report_get(bytes, size, &report))
            config->events->no_report(config->ctx, one->process.rank);
        else
            take_report(one, &report, bytes, size);
    }
}

static void read_control(void *ctx)
{
    hear_control(ctx, RANK_IO_READS_A_TURN);
}

/* The reports are heard that were sent before it: they have come before it. */
static void hear_pmi(struct one *one, uint32_t reads)
{
    struct rank_io *io = one->of;
    char bytes[4096];
    struct cw_err err;
    size_t size;

    for (uint32_t i = 0; i < reads; i++) {
        hear_control(one, RANK_IO_READS_HEARD);
        size = take(&one->pmi, bytes, sizeof(bytes));
        if (size == 0)
            return;
        if (pmi_lines_take(&one->lines, io->pmi, one->process, bytes, size, &err) == CW_OK)
            continue;
        io->config.events->broken(io->config.ctx, &err);
        channel_close(one->pmi);
        one->pmi = NULL;
    }
}

static void read_pmi(void *ctx)
{
    hear_pmi(ctx, RANK_IO_READS_A_TURN);
}

void rank_io_open(struct rank_io *io, struct cw_process process, uint32_t number,
                  struct channel *pmi, struct channel *control)
{
    struct one *one = one_of(io, process);

    one->has_device = number > 0;
    if (process.incarnation > 1) {
        keep(one, JOB_STATE_STARTED, number, NULL, 0);
        pmi_restarted(io->pmi, process, number);
    }
    rank_io_close(io, process);
    one->lines = (struct pmi_lines){0};
    one->pmi = pmi;
    one->control = control;
    channel_watch(pmi, read_pmi, one);
    channel_watch(control, read_control, one);
}

/* The journal's sums are right, and so is what stands in it, unless this wrote it wrongly. */
static void replay_request(struct rank_io *io, const struct job_state_record *record)
{
    const char *key = (const char *)record->bytes;
    const char *value = record->size ? memchr(key, '\0', record->size - 1) : NULL;

    if (record->number < PMI_KEPT || record->number >= PMI_WHATS || !value || key[record->size - 1])
        return;
    pmi_ask(io->pmi, (struct cw_process){.rank = record->rank},
            &(struct pmi_request){
                .what = (enum pmi_what)record->number, .key = key, .value = value + 1});
}

void rank_io_replay(struct rank_io *io, const struct job_state_record *record)
{
    const struct cw_process process = {.rank = record->rank};
    struct cw_report report;

    io->replaying = true;
    if (record->type == JOB_STATE_STARTED)
        pmi_restarted(io->pmi, process, record->number);
    else if (record->type == JOB_STATE_PMI)
        replay_request(io, record);
    else if (record->type == JOB_STATE_MARK)
        pmi_mark(io->pmi, process, record->number);
    else if (record->type == JOB_STATE_REPORT &&
             cw_report_get(record->bytes, record->size, &report))
        io->config.events->report(io->config.ctx, record->rank, &report);
    io->replaying = false;
}

void rank_io_hear(struct rank_io *io, struct cw_process process)
{
    hear_pmi(one_of(io, process), RANK_IO_READS_HEARD);
}

void rank_io_hear_all(struct rank_io *io)
{
    for (size_t i = 0; i < io->config.ranks * CW_REPLICAS; i++)
        hear_pmi(&io->one[i], RANK_IO_READS_HEARD);
}

void rank_io_close(struct rank_io *io, struct cw_process process)
{
    struct one *one = one_of(io, process);

    channel_close(one->pmi);
    channel_close(one->control);
    one->pmi = one->control = NULL;
}
