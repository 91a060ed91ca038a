#include "dispatcher/ranks/rank_io.h"
#include "dispatcher/pmi/pmi.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

struct one {
    struct rank_io *of;
    uint32_t rank;
    struct loop_watch pmi;
    struct loop_watch control;
    bool has_device; /* its process has read its setup */
};

struct rank_io {
    struct rank_io_config config;
    struct pmi *pmi;
    struct one *of_rank;
    bool replaying; /* what was said to a dispatcher before us */
};

/* --- PMI --- */

/* Whether the rank, or another one, may do something after this answer that the next dispatcher has
 * to know of. What else was said is said again. */
static bool commits(const char *line, size_t size)
{
    static const char *const others[] = {"cmd=get_result",      "cmd=put_result", "cmd=maxes",
                                         "cmd=universe_size",   "cmd=appnum",     "cmd=my_kvsname",
                                         "cmd=response_to_init"};

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (size > strlen(others[i]) && memcmp(line, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

static void on_reply(void *ctx, uint32_t rank, const char *line, size_t size)
{
    struct rank_io *io = ctx;
    int fd = io->of_rank[rank].pmi.fd;
    struct cw_err err;

    if (fd >= 0 && commits(line, size))
        state_file_sync(io->config.state);
    /* MPICH asks one thing at a time: there is room, unless the process is no MPICH */
    if (fd < 0 || send(fd, line, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size ||
        errno != EAGAIN)
        return;
    cw_err_set(&err, CW_EPROTO, "rank %u does not read the answers to its PMI requests", rank);
    io->config.events->broken(io->config.ctx, rank, &err);
}

static void on_initialized(void *ctx, uint32_t rank)
{
    const struct rank_io *io = ctx;

    if (!io->replaying)
        io->config.events->initialized(io->config.ctx, rank);
}

static void on_finalized(void *ctx, uint32_t rank)
{
    const struct rank_io *io = ctx;

    if (!io->replaying)
        io->config.events->finalized(io->config.ctx, rank);
}

static void on_aborted(void *ctx, uint32_t rank, int exit_code)
{
    const struct rank_io *io = ctx;

    if (!io->replaying)
        io->config.events->aborted(io->config.ctx, rank, exit_code);
}

static void on_forgotten(void *ctx, uint32_t rank)
{
    const struct rank_io_config *config = &((struct rank_io *)ctx)->config;

    config->events->forgotten(config->ctx, rank);
}

/* Whether the R-device has read the rank's setup, which it does before it connects. True also when
 * that cannot be known: the descriptor is closed, for the process has ended. */
static bool setup_taken(int control_fd)
{
    int unread;

    return ioctl(control_fd, SIOCOUTQ, &unread) < 0 || unread == 0;
}

/* MPI_Init opens UCP, which is the R-device, before its first barrier. */
static void on_entering(void *ctx, uint32_t rank)
{
    struct rank_io *io = ctx;
    struct one *one = &io->of_rank[rank];

    if (io->replaying)
        return;
    one->has_device = one->has_device || setup_taken(one->control.fd);
    if (!one->has_device)
        io->config.events->without_device(io->config.ctx, rank);
}

static const struct pmi_ops pmi_ops = {on_reply,   on_initialized, on_finalized,
                                       on_aborted, on_forgotten,   on_entering};

/* --- both descriptors --- */

struct rank_io *rank_io_new(const struct rank_io_config *config)
{
    char name[2 * CW_ID_SIZE + 16] = "causeway_";
    struct pmi_config pmi = {.ranks = config->ranks, .kvsname = name, .appnums = config->appnums};
    struct rank_io *io = calloc(1, sizeof(*io));

    if (!io)
        return NULL;
    sodium_bin2hex(name + strlen(name), 2 * CW_ID_SIZE + 1, config->job_id, CW_ID_SIZE);
    io->config = *config;
    io->pmi = pmi_new(&pmi, &pmi_ops, io);
    io->of_rank = calloc(config->ranks, sizeof(*io->of_rank));
    for (uint32_t rank = 0; io->of_rank && rank < config->ranks; rank++)
        io->of_rank[rank] = (struct one){.of = io, .rank = rank, .pmi.fd = -1, .control.fd = -1};
    if (io->pmi && io->of_rank)
        return io;
    rank_io_free(io);
    return NULL;
}

void rank_io_free(struct rank_io *io)
{
    if (!io)
        return;
    for (uint32_t rank = 0; io->of_rank && rank < io->config.ranks; rank++)
        rank_io_close(io, rank);
    pmi_free(io->pmi);
    free(io->of_rank);
    free(io);
}

/* Where a process has ended without having read all that it was told, a restorer its SETUP, this is
 * an error first, and what it has said comes behind that. */
static ssize_t receive(int fd, void *bytes, size_t size, int flags)
{
    ssize_t n = recv(fd, bytes, size, MSG_DONTWAIT | flags);

    return n < 0 && errno == ECONNRESET ? recv(fd, bytes, size, MSG_DONTWAIT | flags) : n;
}

/* Takes what a rank's socket has, or looks at it (MSG_PEEK). Returns 0 when there is nothing now,
 * or no more at all: then the socket is closed. */
static size_t take(struct rank_io *io, struct loop_watch *watch, void *bytes, size_t size,
                   int flags)
{
    ssize_t n = watch->fd < 0 ? -1 : receive(watch->fd, bytes, size, flags);

    if (n > 0)
        return (size_t)n;
    if (watch->fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
        loop_close(io->config.loop, watch);
    return 0;
}

static void keep(const struct one *one, uint32_t type, const void *bytes, size_t size)
{
    const struct job_state_record record = {
        .type = type, .rank = one->rank, .bytes = bytes, .size = (uint32_t)size};

    state_file_put(one->of->config.state, &record);
}

static void take_report(struct one *one, const struct cw_report *report)
{
    const struct rank_io_config *config = &one->of->config;

    if (report->kind == CW_REPORT_IMAGE_TAKEN) {
        const struct job_state_record mark = {
            .type = JOB_STATE_MARK, .rank = one->rank, .number = report->image.number};

        state_file_put(config->state, &mark);
        pmi_rank_mark(one->of->pmi, one->rank, report->image.number);
    }
    config->events->report(config->ctx, one->rank, report);
}

static void hear_control(struct one *one, uint32_t reads)
{
    const struct rank_io_config *config = &one->of->config;
    uint8_t bytes[CW_SETUP_MAX];
    struct cw_report report;
    size_t size;

    for (uint32_t i = 0;
         i < reads && (size = take(one->of, &one->control, bytes, sizeof(bytes), 0)) > 0; i++) {
        if (cw_report_get(bytes, size, &report)) {
            if (report.kind == CW_REPORT_EARLY || report.kind == CW_REPORT_FILE ||
                report.kind == CW_REPORT_NESTED)
                keep(one, JOB_STATE_REPORT, bytes, size);
            take_report(one, &report);
        } else
            config->events->no_report(config->ctx, one->rank);
    }
}

static void read_control(void *ctx)
{
    hear_control(ctx, RANK_IO_READS_A_TURN);
}

/* What is there is looked at, then the reports are heard that were sent before it, then it is
 * taken. It stays in the socket meanwhile: what a report leads to may take it. */
static void hear_pmi(struct one *one, uint32_t reads)
{
    struct rank_io *io = one->of;
    char bytes[4096];
    struct cw_err err;
    size_t size;

    for (uint32_t i = 0;
         i < reads && (size = take(io, &one->pmi, bytes, sizeof(bytes), MSG_PEEK)) > 0; i++) {
        hear_control(one, RANK_IO_READS_HEARD);
        size = take(io, &one->pmi, bytes, size, 0);
        if (size > 0)
            keep(one, JOB_STATE_PMI, bytes, size);
        if (size == 0 || pmi_input(io->pmi, one->rank, bytes, size, &err) == CW_OK)
            continue;
        io->config.events->broken(io->config.ctx, one->rank, &err);
        loop_close(io->config.loop, &one->pmi);
    }
}

static void read_pmi(void *ctx)
{
    hear_pmi(ctx, RANK_IO_READS_A_TURN);
}

void rank_io_open(struct rank_io *io, uint32_t rank, uint32_t number, bool again, int pmi_fd,
                  int control_fd)
{
    struct one *one = &io->of_rank[rank];

    one->has_device = false;
    if (again) {
        state_file_put(
            io->config.state,
            &(struct job_state_record){.type = JOB_STATE_STARTED, .rank = rank, .number = number});
        pmi_rank_restarted(io->pmi, rank, number);
    }
    loop_watch(io->config.loop, &one->pmi, pmi_fd, EPOLLIN, read_pmi, one);
    loop_watch(io->config.loop, &one->control, control_fd, EPOLLIN, read_control, one);
}

void rank_io_replay(struct rank_io *io, const struct job_state_record *record)
{
    struct cw_report report;
    struct cw_err ignored;

    io->replaying = true;
    if (record->type == JOB_STATE_STARTED)
        pmi_rank_restarted(io->pmi, record->rank, record->number);
    else if (record->type == JOB_STATE_PMI)
        pmi_input(io->pmi, record->rank, (const char *)record->bytes, record->size, &ignored);
    else if (record->type == JOB_STATE_MARK)
        pmi_rank_mark(io->pmi, record->rank, record->number);
    else if (record->type == JOB_STATE_TRIMMED)
        pmi_rank_forget_before(io->pmi, record->rank, record->number);
    else if (record->type == JOB_STATE_REPORT &&
             cw_report_get(record->bytes, record->size, &report))
        io->config.events->report(io->config.ctx, record->rank, &report);
    io->replaying = false;
}

bool rank_io_has_place(const struct rank_io *io, uint32_t rank, uint32_t number)
{
    return pmi_rank_has_place(io->pmi, rank, number);
}

void rank_io_forget_before(struct rank_io *io, uint32_t rank, uint32_t number)
{
    pmi_rank_forget_before(io->pmi, rank, number);
}

void rank_io_hear_pmi(struct rank_io *io, uint32_t rank)
{
    hear_pmi(&io->of_rank[rank], RANK_IO_READS_HEARD);
}

void rank_io_hear_reports(struct rank_io *io, uint32_t rank)
{
    hear_control(&io->of_rank[rank], RANK_IO_READS_HEARD);
}

void rank_io_close(struct rank_io *io, uint32_t rank)
{
    loop_close(io->config.loop, &io->of_rank[rank].pmi);
    loop_close(io->config.loop, &io->of_rank[rank].control);
}
