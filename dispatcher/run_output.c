/* The output of the ranks, in the job's loop. */
#include "dispatcher/run_state.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

static void output_failed(struct run *run, const struct cw_err *err)
{
    if (err->code == CW_ECLOSED)
        job_fail(&run->job, 128 + SIGPIPE, run->now_ns, "%s", err->text);
    else
        job_fail(&run->job, 1, run->now_ns, "%s; the job ends", err->text);
}

/* Watches the stream or not, as it wants; `fd_before` is its descriptor before it was read. */
static void stream_update(struct run *run, uint32_t rank, int which, int fd_before)
{
    struct run_rank *r = &run->ranks[rank];
    bool wants = output_stream_wants_input(&r->streams[which]);

    if (wants == r->watched[which])
        return;
    if (wants)
        run_watch(run, r->streams[which].fd, SOURCE_OUT + which, rank, EPOLLIN);
    else if (r->streams[which].fd >= 0)
        run_unwatch(run, fd_before);
    r->watched[which] = wants;
}

static int open_first(struct run *run, uint32_t rank, int which, int fd, struct cw_err *err)
{
    static const char *const suffixes[2] = {"out", "err"};
    struct run_rank *r = &run->ranks[rank];
    struct output_sink *sink = &run->sinks[which];

    if (run->options->output_dir) {
        sink = &r->files[which];
        if (output_sink_open_file(sink, run->options->output_dir, rank, suffixes[which], err) < 0) {
            close(fd);
            return err->code;
        }
    }
    return output_stream_open(&r->streams[which], fd, rank, sink, run->options->tag_output, err);
}

static void unwatch(struct run *run, uint32_t rank, int which)
{
    struct run_rank *r = &run->ranks[rank];

    if (r->watched[which])
        run_unwatch(run, r->streams[which].fd);
    r->watched[which] = false;
}

int run_open_streams(struct run *run, uint32_t rank, struct cw_err *err)
{
    struct run_rank *r = &run->ranks[rank];
    int fds[2] = {r->process.stdout_fd, r->process.stderr_fd};

    for (int which = 0; which < 2; which++) {
        if (r->streams[which].interrupted) {
            run_read_output(run, rank, which);
            unwatch(run, rank, which);
            output_stream_resume(&r->streams[which], fds[which]);
        } else if (open_first(run, rank, which, fds[which], err) < 0) {
            return err->code;
        }
        stream_update(run, rank, which, fds[which]);
    }
    return CW_OK;
}

void run_interrupt_streams(struct run *run, uint32_t rank, bool at_once)
{
    for (int which = 0; which < 2; which++) {
        run_read_output(run, rank, which);
        if (at_once)
            unwatch(run, rank, which);
        output_stream_interrupt(&run->ranks[rank].streams[which], at_once);
    }
}

void run_give_up_streams(struct run *run)
{
    for (uint32_t rank = 0; rank < run->options->ranks; rank++)
        for (int which = 0; which < 2; which++)
            output_stream_give_up(&run->ranks[rank].streams[which]);
}

void run_read_output(struct run *run, uint32_t rank, int which)
{
    struct output_stream *stream = &run->ranks[rank].streams[which];
    struct cw_err err = {0};
    int fd = stream->fd;

    if (stream->fd >= 0 && output_stream_read(stream, run->now_ns, &err) < 0) {
        output_failed(run, &err);
        stream->used = 0;
    }
    stream_update(run, rank, which, fd);
}

uint64_t run_output_deadline(struct run *run)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t rank = 0; rank < run->options->ranks; rank++)
        for (int which = 0; which < 2; which++) {
            uint64_t at = output_stream_deadline_ns(&run->ranks[rank].streams[which], run->now_ns);

            first = at < first ? at : first;
        }
    return first;
}

void run_output_tick(struct run *run)
{
    for (uint32_t rank = 0; rank < run->options->ranks; rank++)
        for (int which = 0; which < 2; which++) {
            struct output_stream *stream = &run->ranks[rank].streams[which];
            struct cw_err err = {0};
            int fd = stream->fd;

            if (!stream->used)
                continue;
            if (output_stream_tick(stream, run->now_ns, &err) < 0) {
                output_failed(run, &err);
                stream->used = 0;
            }
            stream_update(run, rank, which, fd);
        }
}

bool run_output_open(const struct run *run)
{
    for (uint32_t rank = 0; rank < run->options->ranks; rank++)
        for (int which = 0; which < 2; which++)
            if (run->ranks[rank].streams[which].fd >= 0 || run->ranks[rank].streams[which].used)
                return true;
    return false;
}
