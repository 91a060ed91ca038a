#include "dispatcher/ranks/outputs.h"
#include "dispatcher/ranks/output.h"
#include "dispatcher/ranks/output_file.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One stream of one rank. */
struct one {
    struct outputs *of;
    struct output_stream stream;
    struct output_sink file; /* with `dir` */
};

struct outputs {
    struct outputs_config config;
    struct output_sink sinks[2];
    struct loop_timer timer;  /* when a stream may have something to pass on */
    struct loop_timer sync;   /* when what was printed is to be on disk */
    uint64_t sync_took_ns;    /* the last time */
    bool names_synced;        /* those of the files in `dir` */
    struct one *one;          /* two of each rank */
    struct output_stream own; /* our own lines on stderr */
    uint32_t unsaid;          /* of these, for which there was no room */
    bool marked;
    uint8_t mark[CW_MARK_SIZE];
};

#define for_each(each, outputs)                                                                    \
    for (struct one *each = (outputs)->one; each < (outputs)->one + 2 * (outputs)->config.ranks;   \
         each++)

/* Both streams of the rank, one behind the other. */
static struct one *of_rank(const struct outputs *o, uint32_t rank)
{
    return &o->one[2 * (size_t)rank];
}

static void tick(void *ctx);
static void sync_all(void *ctx);

struct outputs *outputs_new(const struct outputs_config *config, struct cw_err *err)
{
    struct outputs *o = calloc(1, sizeof(*o));

    if (config->dir && mkdir(config->dir, 0777) < 0 && errno != EEXIST) {
        cw_err_set(err, CW_ESYS, "--output-dir %s: %s", config->dir, strerror(errno));
        free(o);
        return NULL;
    }
    if (o)
        o->one = calloc(config->ranks, 2 * sizeof(*o->one));
    if (!o || !o->one) {
        cw_err_set(err, CW_ENOMEM, "no memory for the output of %u ranks", config->ranks);
        free(o);
        return NULL;
    }
    o->config = *config;
    output_sink_open_fd(&o->sinks[0], STDOUT_FILENO, "standard output");
    output_sink_open_fd(&o->sinks[1], STDERR_FILENO, "standard error");
    if (output_stream_open(&o->own, NULL, 0, &o->sinks[1], false, err) < 0) {
        free(o->one);
        free(o);
        return NULL;
    }
    for_each(one, o)
    {
        one->of = o;
        one->file.fd = -1;
    }
    loop_timer_add(config->loop, &o->timer, tick, o);
    loop_timer_add(config->loop, &o->sync, sync_all, o);
    return o;
}

void outputs_free(struct outputs *o)
{
    struct cw_err ignored;

    if (!o)
        return;
    for_each(one, o)
    {
        output_stream_close(&one->stream);
        output_sink_close(&one->file, &ignored);
    }
    loop_timer_remove(&o->timer);
    loop_timer_remove(&o->sync);
    output_stream_close(&o->own);
    output_sink_close(&o->sinks[0], &ignored);
    output_sink_close(&o->sinks[1], &ignored);
    free(o->one);
    free(o);
}

/* --- reading and writing --- */

static void read_one(void *ctx);
static void pass_on_own(struct outputs *o);

/* Watches the stream or not, as it wants, and sees to it that it is looked at in time. */
static void update(struct one *one)
{
    struct loop *loop = one->of->config.loop;
    bool wants = output_stream_wants_input(&one->stream);

    if (one->stream.from)
        channel_watch(one->stream.from, wants ? read_one : NULL, one);
    loop_timer_hasten(&one->of->timer, output_stream_deadline_ns(&one->stream, loop_now_ns(loop)));
}

static void check(struct one *one, int code, const struct cw_err *err)
{
    if (code == CW_OK)
        return;
    output_stream_discard(&one->stream);
    one->of->config.failed(one->of->config.ctx, err);
}

static void read_times(struct one *one, uint32_t reads)
{
    struct cw_err err = {0};

    if (!one->stream.from)
        return;
    check(one, output_stream_read(&one->stream, reads, loop_now_ns(one->of->config.loop), &err),
          &err);
    update(one);
}

static void read_one(void *ctx)
{
    read_times(ctx, OUTPUT_READS_A_TURN);
}

static void drain_one(struct one *one)
{
    read_times(one, OUTPUT_READS_DRAIN);
}

static void tick(void *ctx)
{
    struct outputs *o = ctx;
    uint64_t now_ns = loop_now_ns(o->config.loop);

    pass_on_own(o);
    for_each(one, o)
    {
        struct cw_err err = {0};

        if (!output_stream_holds(&one->stream))
            continue;
        check(one, output_stream_tick(&one->stream, now_ns, &err), &err);
        update(one);
    }
}

/* --- what outlives us --- */

static int number_of(const struct one *one)
{
    return (one - one->of->one) % 2;
}

/* The count follows each write at once. */
static void on_printing(struct output_stream *stream, bool done)
{
    struct one *one = (struct one *)((char *)stream - offsetof(struct one, stream));
    struct outputs *o = one->of;
    struct counts *counts = state_file_counts(o->config.state);

    if (!done) {
        counts_begin_printing(counts, stream->rank);
        return;
    }
    counts_set_printed(counts, stream->rank, number_of(one),
                       job_state_printed(stream->printed, stream->printed_bytes));
    counts_end_printing(counts);
    loop_timer_hasten(&o->sync, loop_now_ns(o->config.loop) + OUTPUT_SYNC_NS +
                                    OUTPUT_SYNC_SHARE * o->sync_took_ns);
}

static int sync_names(struct outputs *o, struct cw_err *err)
{
    char above[PATH_MAX];

    if (!o->config.dir || o->names_synced)
        return CW_OK;
    snprintf(above, sizeof(above), "%s", o->config.dir);
    if (output_dir_sync(o->config.dir) < 0 || output_dir_sync(dirname(above)) < 0)
        return cw_err_set(err, CW_ESYS, "--output-dir %s: syncing it: %s", o->config.dir,
                          strerror(errno));
    o->names_synced = true;
    return CW_OK;
}

/* What the stream has printed is on disk before it counts as printed there. */
static int sync_one(struct one *one, struct cw_err *err)
{
    if (!one->stream.sink)
        return CW_OK;
    if (sync_names(one->of, err) < 0 || output_sink_sync(one->stream.sink, err) < 0)
        return err->code;
    counts_settle(state_file_counts(one->of->config.state), one->stream.rank, number_of(one));
    return CW_OK;
}

void outputs_sync(struct outputs *o, uint32_t rank)
{
    struct cw_err err = {0};

    for (int which = 0; state_file_is_whole(o->config.state) && which < 2 && !err.code; which++)
        sync_one(of_rank(o, rank) + which, &err);
    if (err.code)
        state_file_fail(o->config.state, err.text);
}

static void sync_all(void *ctx)
{
    struct outputs *o = ctx;
    uint64_t began_ns = loop_look(o->config.loop);

    for (uint32_t rank = 0; rank < o->config.ranks; rank++)
        outputs_sync(o, rank);
    state_file_sync_printed(o->config.state);
    o->sync_took_ns = loop_look(o->config.loop) - began_ns;
}

/* --- the processes of a rank --- */

static int open_first(struct one *one, uint32_t rank, int which, struct channel *from,
                      struct cw_err *err)
{
    static const char *const suffixes[2] = {"out", "err"};
    const struct outputs_config *config = &one->of->config;
    struct output_sink *sink = &one->of->sinks[which];

    if (config->dir) {
        sink = &one->file;
        if (output_sink_open_file(sink, config->dir, rank, suffixes[which], config->append, err) <
            0) {
            channel_close(from);
            return err->code;
        }
    }
    if (output_stream_open(&one->stream, from, rank, sink, config->tag, err) < 0)
        return err->code;
    if (one->of->marked)
        output_stream_set_mark(&one->stream, one->of->mark, &config->places[rank],
                               which ? PLACE_STDERR : PLACE_STDOUT);
    if (config->state)
        one->stream.printing = on_printing;
    one->of->names_synced = false;
    return CW_OK;
}

int outputs_open(struct outputs *o, uint32_t rank, uint32_t number, struct channel *const from[2],
                 struct cw_err *err)
{
    for (int which = 0; which < 2; which++) {
        struct one *one = of_rank(o, rank) + which;

        if (one->stream.interrupted) {
            drain_one(one);
            output_stream_resume(&one->stream, from[which], number);
        } else if (open_first(one, rank, which, from[which], err) < 0) {
            if (which == 0)
                channel_close(from[1]);
            return err->code;
        }
        update(one);
    }
    return CW_OK;
}

/* A file has what was printed, and what was not counted goes, for it comes again. */
static int go_on_with_file(struct one *one, uint64_t lines, uint64_t bytes, struct cw_err *err)
{
    char text[512];
    int64_t missing;

    if (!one->of->config.dir)
        return CW_OK;
    missing = output_sink_cut(&one->file, &one->stream, lines, bytes, err);
    if (missing <= 0)
        return (int)missing;
    snprintf(text, sizeof(text),
             "output file %s: it has lost lines (%lld) that were printed before; they do not come "
             "again",
             one->file.name, (long long)missing);
    outputs_say(one->of, text);
    return CW_OK;
}

int outputs_return(struct outputs *o, uint32_t rank, const uint64_t printed[JOB_STATE_STREAMS],
                   struct cw_err *err)
{
    for (int which = 0; which < JOB_STATE_STREAMS; which++) {
        struct one *one = of_rank(o, rank) + which;
        uint64_t lines = job_state_printed_lines(printed[which]);
        uint64_t bytes = job_state_printed_bytes(printed[which]);

        if (open_first(one, rank, which, NULL, err) < 0 ||
            go_on_with_file(one, lines, bytes, err) < 0)
            return err->code;
        output_stream_return(&one->stream, lines, bytes);
        counts_set_printed(state_file_counts(o->config.state), rank, which, printed[which]);
    }
    return CW_OK;
}

void outputs_interrupt(struct outputs *o, uint32_t rank, bool at_once)
{
    for (int which = 0; which < 2; which++) {
        struct one *one = of_rank(o, rank) + which;

        drain_one(one);
        output_stream_interrupt(&one->stream, at_once);
    }
}

/* --- images of ranks --- */

#define NO_TEXT 0xff /* no byte of ASCII or UTF-8, and rare in other encodings */

void outputs_draw_mark(uint8_t mark[CW_MARK_SIZE])
{
    randombytes_buf(mark, CW_MARK_SIZE);
    mark[0] = NO_TEXT;
}

void outputs_set_mark(struct outputs *o, const uint8_t mark[CW_MARK_SIZE])
{
    memcpy(o->mark, mark, CW_MARK_SIZE);
    o->marked = true;
}

void outputs_settle(struct outputs *o, uint32_t rank, uint32_t number)
{
    for (int which = 0; which < 2; which++) {
        struct one *one = of_rank(o, rank) + which;

        output_stream_await(&one->stream, number);
        drain_one(one);
    }
}

bool outputs_are_out(const struct outputs *o, uint32_t rank, uint32_t number)
{
    const struct one *one = of_rank(o, rank);

    return output_stream_is_out(&one[0].stream, number) &&
           output_stream_is_out(&one[1].stream, number);
}

static bool is_through(const struct one *one)
{
    return !one->stream.from && !output_stream_holds(&one->stream);
}

bool outputs_are_through(const struct outputs *o, uint32_t rank)
{
    const struct one *one = of_rank(o, rank);

    return is_through(&one[0]) && is_through(&one[1]) && !one[0].stream.interrupted &&
           !one[1].stream.interrupted;
}

/* --- the end --- */

void outputs_give_up(struct outputs *o)
{
    for_each(one, o)
    {
        output_stream_give_up(&one->stream);
        update(one);
    }
}

bool outputs_are_open(const struct outputs *o)
{
    for_each(one, o) if (!is_through(one)) return true;
    return false;
}

/* A stream that is still open has its file as long as it is. */
void outputs_close_files(struct outputs *o)
{
    for_each(one, o)
    {
        struct cw_err err = {0};

        if (is_through(one))
            check(one, output_sink_close(&one->file, &err), &err);
    }
}

void outputs_sync_all(struct outputs *o)
{
    if (o && o->config.state)
        sync_all(o);
}

bool outputs_wait_for_sinks(const struct outputs *o)
{
    for_each(one, o) if (one->stream.blocked || one->stream.more) return true;
    return false;
}

/* --- our own lines --- */

/* A line of a rank that is not complete ends here. */
static void end_line_of_rank(struct outputs *o)
{
    if (!o->sinks[1].owner || o->sinks[1].owner == &o->own || output_stream_holds(&o->own))
        return;
    output_stream_add(&o->own, "\n", 1);
    o->sinks[1].owner = NULL;
}

/* Where standard error cannot be written nobody can be told. */
static void pass_on_own(struct outputs *o)
{
    uint64_t now_ns = loop_now_ns(o->config.loop);
    char text[96];
    struct cw_err ignored;

    if (output_stream_tick(&o->own, now_ns, &ignored) < 0)
        output_stream_discard(&o->own);
    if (o->unsaid && !output_stream_holds(&o->own)) {
        snprintf(text, sizeof(text), "standard error took no more: %u lines are left out here",
                 o->unsaid);
        o->unsaid = 0;
        outputs_say(o, text);
    }
    loop_timer_hasten(&o->timer, output_stream_deadline_ns(&o->own, now_ns));
}

bool outputs_print(struct outputs *o, const char *text, size_t size)
{
    bool added;

    end_line_of_rank(o);
    added = output_stream_add(&o->own, text, size);
    pass_on_own(o);
    return added;
}

bool outputs_own_holds(const struct outputs *o)
{
    return output_stream_holds(&o->own) || o->unsaid;
}

void outputs_say(struct outputs *o, const char *text)
{
    char line[2 * CW_ERR_TEXT_MAX + 16];
    int size = snprintf(line, sizeof(line), "causeway: %s\n", text);

    if (size >= (int)sizeof(line)) {
        size = (int)sizeof(line) - 1;
        line[size - 1] = '\n';
    }
    if (!outputs_print(o, line, (size_t)size))
        o->unsaid++;
}
