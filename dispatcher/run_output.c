/* The output of the ranks, in the job's loop. */
#include "dispatcher/run_state.h"

#include <signal.h>
#include <sys/epoll.h>

static void output_failed(struct run *run, const struct cw_err *err)
{
    if (err->code == CW_ECLOSED)
        job_fail(&run->job, 128 + SIGPIPE, run->now_ns, "%s", err->text);
    else
        job_fail(&run->job, 1, run->now_ns, "%s; the job ends", err->text);
}

void run_stream_update(struct run *run, uint32_t rank, int which, int fd_before)
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

void run_read_output(struct run *run, uint32_t rank, int which)
{
    struct output_stream *stream = &run->ranks[rank].streams[which];
    struct cw_err err = {0};
    int fd = stream->fd;

    if (stream->fd >= 0 && output_stream_read(stream, run->now_ns, &err) < 0) {
        output_failed(run, &err);
        stream->used = 0;
    }
    run_stream_update(run, rank, which, fd);
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
            run_stream_update(run, rank, which, fd);
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
