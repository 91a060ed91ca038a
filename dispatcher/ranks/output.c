#include "dispatcher/ranks/output.h"
#include "dispatcher/ranks/output_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAG_BYTES 16 /* of the rank before a line, terminated */

/* A terminal takes part of what poll() promised room for, and then a write waits; others may write
 * to the same pipe. O_NONBLOCK of the descriptor itself would be that of everybody who has it.
 * Returns -1 where there is no other. */
static int open_again(int fd)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void output_sink_open_fd(struct output_sink *sink, int fd, const char *name)
{
    struct stat st;
    int again = -1;

    *sink = (struct output_sink){.fd = fd};
    sink->pipe_like = fstat(fd, &st) < 0 || !S_ISREG(st.st_mode);
    if (sink->pipe_like && (S_ISFIFO(st.st_mode) || isatty(fd)))
        again = open_again(fd);
    if (again >= 0) {
        if (fd > STDERR_FILENO)
            close(fd);
        sink->fd = again;
    }
    snprintf(sink->name, sizeof(sink->name), "%s", name);
}

int output_sink_open_file(struct output_sink *sink, const char *dir, uint32_t rank,
                          const char *suffix, bool append, struct cw_err *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/rank.%u.%s", dir, rank, suffix);
    *sink = (struct output_sink){
        .fd = append ? open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666)
                     : output_file_open(path, 0)};
    if (sink->fd < 0)
        return cw_err_set(err, CW_ESYS, "output file %s: %s", path, strerror(errno));
    snprintf(sink->name, sizeof(sink->name), "%.250s", path);
    return CW_OK;
}

int output_sink_close(struct output_sink *sink, struct cw_err *err)
{
    int fd = sink->fd;

    sink->fd = -1;
    if (fd <= STDERR_FILENO || close(fd) == 0)
        return CW_OK;
    return cw_err_set(err, CW_ESYS, "%s: not all that was printed there is in it: %s", sink->name,
                      strerror(errno));
}

int output_sink_sync(struct output_sink *sink, struct cw_err *err)
{
    if (!sink->dirty)
        return CW_OK;
    sink->dirty = false;
    return output_file_sync(sink->fd) < 0
               ? cw_err_set(err, CW_ESYS, "%s: what was printed there may not be on its disk: %s",
                            sink->name, strerror(errno))
               : CW_OK;
}

/* What stands before a line of the stream. */
static int prefix_of(const struct output_stream *stream, char *text, size_t size)
{
    return stream->tag ? snprintf(text, size, "[%u] ", stream->rank) : 0;
}

int64_t output_sink_cut(struct output_sink *sink, const struct output_stream *stream,
                        uint64_t lines, uint64_t line_bytes, struct cw_err *err)
{
    char prefix[TAG_BYTES];
    uint64_t prefix_size = (uint64_t)prefix_of(stream, prefix, sizeof(prefix));
    int64_t missing = output_file_cut(sink->fd, lines, prefix_size, line_bytes);

    return missing < 0 ? cw_err_set(err, CW_ESYS, "output file %s: going on with it: %s",
                                    sink->name, strerror(errno))
                       : missing;
}

int output_stream_open(struct output_stream *stream, struct channel *from, uint32_t rank,
                       struct output_sink *sink, bool tag, struct cw_err *err)
{
    *stream = (struct output_stream){
        .from = from, .rank = rank, .sink = sink, .tag = tag, .at_line_start = true};
    stream->buffer = malloc(OUTPUT_LINE_MAX + CW_OUTPUT_MARK_SIZE);
    if (!stream->buffer)
        return cw_err_set(err, CW_ENOMEM, "no memory for the output of rank %u", rank);
    return CW_OK;
}

void output_stream_close(struct output_stream *stream)
{
    channel_close(stream->from);
    if (stream->sink && stream->sink->owner == stream)
        stream->sink->owner = NULL;
    stream->from = NULL;
    free(stream->buffer);
    stream->buffer = NULL;
}

/* --- what was printed before --- */

/* Its next bytes are some that were printed before. */
static bool is_dropping(const struct output_stream *stream)
{
    return stream->drop_lines || stream->drop_bytes;
}

/* Drops what was printed before from the start of `bytes`. Returns how many bytes that were.
 *
 * Counted in lines, and in bytes only for a line that is not complete: the same as counting bytes
 * as long as the repetition is exact. Where it is not (a program may print what it saw after its
 * last logged act, such as the time), whole lines stay whole. */
static size_t drop_printed(struct output_stream *stream, const char *bytes, size_t size)
{
    size_t at = 0;

    while (stream->drop_lines && at < size) {
        const char *newline = memchr(bytes + at, '\n', size - at);

        if (!newline)
            return size;
        at = (size_t)(newline - bytes) + 1;
        stream->drop_lines--;
    }
    while (!stream->drop_lines && stream->drop_bytes && at < size) {
        if (bytes[at] == '\n')
            stream->drop_bytes = 0;
        else {
            stream->drop_bytes--;
            at++;
        }
    }
    return at;
}

/* Counts lines, and the bytes of the one that is not complete. */
static void count(uint64_t *lines, uint64_t *line_bytes, const char *bytes, size_t size)
{
    const char *end = bytes + size;
    const char *newline;

    while ((newline = memchr(bytes, '\n', (size_t)(end - bytes)))) {
        ++*lines;
        *line_bytes = 0;
        bytes = newline + 1;
    }
    *line_bytes += (size_t)(end - bytes);
}

/* Output of the rank, from anywhere behind what is used of the buffer. */
static void take_output(struct output_stream *stream, const char *bytes, size_t size)
{
    if (is_dropping(stream)) {
        size_t dropped = drop_printed(stream, bytes, size);

        bytes += dropped;
        size -= dropped;
        if (!is_dropping(stream))
            stream->partial_ns = 0; /* only now could the line have been completed */
    }
    count(&stream->lines, &stream->line_bytes, bytes, size);
    if (size)
        memmove(stream->buffer + stream->used, bytes, size);
    stream->used += size;
}

/* --- marks in it --- */

void output_stream_set_mark(struct output_stream *stream, const uint8_t *mark,
                            struct places *places, enum place_in in)
{
    stream->mark = mark;
    stream->places = places;
    stream->in = in;
}

/* Whether `size` bytes, at most CW_OUTPUT_MARK_SIZE, are a mark or the beginning of one. */
static bool may_be_mark(const struct output_stream *stream, const char *bytes, size_t size)
{
    struct cw_output_mark mark = {0};

    memcpy(&mark, bytes, size);
    if (memcmp(mark.mark, stream->mark, size < CW_MARK_SIZE ? size : CW_MARK_SIZE) != 0)
        return false;
    return size < CW_OUTPUT_MARK_SIZE || (mark.number > 0 && mark.check == ~mark.number);
}

/* Bytes before the first mark, or the beginning of one at the end. */
static size_t size_of_output(const struct output_stream *stream, const char *bytes, size_t size)
{
    const char *end = bytes + size;
    const char *at = bytes;

    if (!stream->mark)
        return size;
    while ((at = memchr(at, stream->mark[0], (size_t)(end - at)))) {
        size_t left = (size_t)(end - at);

        if (may_be_mark(stream, at, left < CW_OUTPUT_MARK_SIZE ? left : CW_OUTPUT_MARK_SIZE))
            return (size_t)(at - bytes);
        at++;
    }
    return size;
}

/* The process took an image here. It may still repeat what an earlier one printed: of a line that
 * was printed to its end the number is enough. */
static void add_place(struct output_stream *stream, uint32_t number)
{
    uint64_t bytes = stream->drop_lines ? 0 : stream->line_bytes - stream->drop_bytes;

    places_set(stream->places, number, stream->in,
               (uint64_t[PLACE_VALUES]){stream->lines - stream->drop_lines, bytes});
    if (stream->awaited == number)
        stream->awaited = 0;
}

/* Takes in `size` bytes that stand behind those that are used and held. */
static void take_in(struct output_stream *stream, size_t size)
{
    const char *bytes = stream->buffer + stream->used;
    struct cw_output_mark mark;

    size += stream->held;
    stream->held = 0;
    stream->held_ns = 0;
    while (size) {
        size_t output = size_of_output(stream, bytes, size);

        take_output(stream, bytes, output);
        bytes += output;
        size -= output;
        if (size < CW_OUTPUT_MARK_SIZE) {
            memmove(stream->buffer + stream->used, bytes, size);
            stream->held = size;
            return;
        }
        memcpy(&mark, bytes, sizeof(mark));
        add_place(stream, mark.number);
        bytes += sizeof(mark);
        size -= sizeof(mark);
    }
}

/* No mark came of it. */
static void release_held(struct output_stream *stream)
{
    size_t size = stream->held;

    stream->held = 0;
    stream->held_ns = 0;
    take_output(stream, stream->buffer + stream->used, size);
}

/* All that was in the pipe has been looked at. */
static void pipe_is_empty(struct output_stream *stream, uint64_t now_ns)
{
    if (stream->awaited)
        add_place(stream, stream->awaited);
    if (stream->held && !stream->held_ns)
        stream->held_ns = now_ns;
}

void output_stream_await(struct output_stream *stream, uint32_t number)
{
    if (places_at(stream->places, number, stream->in))
        return;
    if (stream->from)
        stream->awaited = number;
    else if (!stream->interrupted)
        add_place(stream, number);
}

/* --- the processes of a rank --- */

static void close_pipe(struct output_stream *stream)
{
    channel_close(stream->from);
    stream->from = NULL;
    stream->awaited = 0;
    release_held(stream);
}

void output_stream_interrupt(struct output_stream *stream, bool at_once)
{
    stream->interrupted = true;
    if (at_once)
        close_pipe(stream);
}

/* What the process prints from its place on, and has been printed. */
static void drop_from_place(struct output_stream *stream, uint32_t number)
{
    const uint64_t *at = places_at(stream->places, number, stream->in);

    stream->drop_lines = stream->drop_bytes = 0;
    if (!at)
        return;
    stream->drop_lines = stream->lines - at[0];
    stream->drop_bytes = stream->line_bytes;
    if (stream->drop_lines == 0)
        stream->drop_bytes -= at[1];
    if (!is_dropping(stream))
        stream->partial_ns = 0;
}

void output_stream_resume(struct output_stream *stream, struct channel *from, uint32_t number)
{
    assert(stream->interrupted);
    close_pipe(stream);
    stream->from = from;
    stream->interrupted = false;
    drop_from_place(stream, number);
}

void output_stream_return(struct output_stream *stream, uint64_t lines, uint64_t line_bytes)
{
    stream->lines = stream->printed = lines;
    stream->line_bytes = stream->printed_bytes = line_bytes;
    stream->at_line_start = line_bytes == 0;
    stream->interrupted = true;
}

bool output_stream_is_out(const struct output_stream *stream, uint32_t number)
{
    const uint64_t *at = places_at(stream->places, number, stream->in);

    return at && (stream->printed > at[0] ||
                  (stream->printed == at[0] && stream->printed_bytes >= at[1]));
}

void output_stream_give_up(struct output_stream *stream)
{
    stream->interrupted = false;
    stream->drop_lines = stream->drop_bytes = 0;
}

/* --- passing it on --- */

void output_stream_discard(struct output_stream *stream)
{
    memmove(stream->buffer, stream->buffer + stream->used, stream->held);
    stream->used = 0;
}

bool output_stream_holds(const struct output_stream *stream)
{
    return stream->used || stream->held;
}

bool output_stream_wants_input(const struct output_stream *stream)
{
    return stream->from && stream->used < OUTPUT_LINE_MAX;
}

/* Another rank is in the middle of a line; it keeps the sink until the line ends, but not for ever.
 */
static bool sink_is_taken(const struct output_sink *sink, const struct output_stream *stream,
                          uint64_t now_ns)
{
    return sink->owner && sink->owner != stream && now_ns - sink->owner_ns < OUTPUT_PARTIAL_NS;
}

/* What poll() promises room for, cut after a line where there is one. */
static size_t sink_room(const char *bytes, size_t size)
{
    const char *newline;

    if (size <= PIPE_BUF)
        return size;
    newline = memrchr(bytes, '\n', PIPE_BUF);
    return newline ? (size_t)(newline - bytes) + 1 : PIPE_BUF;
}

/* Returns the bytes written (0: no room now), or a negative code. */
static ssize_t sink_write(struct output_stream *stream, const char *bytes, size_t size,
                          uint64_t now_ns, struct cw_err *err)
{
    struct output_sink *sink = stream->sink;
    struct pollfd p = {.fd = sink->fd, .events = POLLOUT};
    ssize_t n;

    if (sink_is_taken(sink, stream, now_ns))
        return 0;
    if (sink->pipe_like) {
        if (poll(&p, 1, 0) == 0)
            return 0;
        size = sink_room(bytes, size);
    }
    n = write(sink->fd, bytes, size);
    if (n > 0) {
        sink->dirty = true;
        if (sink->owner != stream)
            sink->owner_ns = now_ns;
        sink->owner = bytes[n - 1] == '\n' ? NULL : stream;
        return n;
    }
    if (n == 0 || errno == EAGAIN || errno == EINTR)
        return 0;
    return cw_err_set(err, errno == EPIPE ? CW_ECLOSED : CW_ESYS,
                      "writing the output of rank %u to %s: %s", stream->rank, sink->name,
                      strerror(errno));
}

/* Writes `size` bytes, with the rank before every line if wanted. Returns how many were taken. */
static ssize_t stream_write(struct output_stream *stream, const char *bytes, size_t size,
                            uint64_t now_ns, struct cw_err *err)
{
    char line[OUTPUT_LINE_MAX + CW_OUTPUT_MARK_SIZE + TAG_BYTES];
    const char *end = memchr(bytes, '\n', size);
    size_t part = end ? (size_t)(end - bytes) + 1 : size;
    size_t prefix = 0;
    ssize_t n;

    if (!stream->tag)
        return sink_write(stream, bytes, size, now_ns, err);
    if (stream->at_line_start) {
        prefix = (size_t)prefix_of(stream, line, TAG_BYTES) - stream->prefix_done;
        memmove(line, line + stream->prefix_done, prefix);
    }
    if (stream->sink->pipe_like && part + prefix > PIPE_BUF)
        part = PIPE_BUF - prefix;
    memcpy(line + prefix, bytes, part);
    n = sink_write(stream, line, part + prefix, now_ns, err);
    if (n > 0 && (size_t)n <= prefix && stream->at_line_start) {
        stream->prefix_done += (size_t)n;
        return 0;
    }
    if (n <= 0)
        return n;
    stream->prefix_done = 0;
    stream->at_line_start = line[n - 1] == '\n';
    return n - (ssize_t)prefix;
}

/* Bytes that may go out now: whole lines, or everything when waiting for more is no use. */
static size_t passable(const struct output_stream *stream, uint64_t now_ns)
{
    const char *newline = memrchr(stream->buffer, '\n', stream->used);
    bool all = !stream->from || stream->used >= OUTPUT_LINE_MAX ||
               (stream->partial_ns && now_ns - stream->partial_ns >= OUTPUT_PARTIAL_NS);

    /* the next incarnation completes the line */
    if (stream->interrupted || is_dropping(stream))
        all = stream->used >= OUTPUT_LINE_MAX;

    if (all)
        return stream->used;
    return newline ? (size_t)(newline - stream->buffer) + 1 : 0;
}

/* Whoever wants to know hears of it on both sides: this process may be killed between. */
static ssize_t print(struct output_stream *stream, const char *bytes, size_t size, uint64_t now_ns,
                     struct cw_err *err)
{
    ssize_t n;

    if (stream->printing)
        stream->printing(stream, false);
    n = stream_write(stream, bytes, size, now_ns, err);
    if (n > 0)
        count(&stream->printed, &stream->printed_bytes, bytes, (size_t)n);
    if (stream->printing)
        stream->printing(stream, true);
    return n;
}

static int pass_on(struct output_stream *stream, uint64_t now_ns, struct cw_err *err)
{
    size_t size = passable(stream, now_ns);
    size_t done = 0;
    ssize_t n = 1;

    for (uint32_t i = 0; done < size && n > 0 && i < OUTPUT_WRITES_A_TURN; i++) {
        n = print(stream, stream->buffer + done, size - done, now_ns, err);
        if (n < 0)
            return (int)n;
        done += (size_t)n;
    }
    memmove(stream->buffer, stream->buffer + done, stream->used - done + stream->held);
    stream->used -= done;
    stream->blocked = done < size && n == 0;
    stream->more = done < size && n > 0;
    if (stream->used == 0)
        stream->partial_ns = 0;
    else if (!stream->partial_ns || done > 0)
        stream->partial_ns = now_ns;
    return CW_OK;
}

int output_stream_read(struct output_stream *stream, uint32_t reads, uint64_t now_ns,
                       struct cw_err *err)
{
    for (uint32_t i = 0; i < reads && output_stream_wants_input(stream); i++) {
        ssize_t n = channel_read(stream->from, stream->buffer + stream->used + stream->held,
                                 OUTPUT_LINE_MAX - stream->used);

        if (n > 0)
            take_in(stream, (size_t)n);
        else
            pipe_is_empty(stream, now_ns);
        if (n < 0)
            break;
        if (n == 0)
            close_pipe(stream);
        if (pass_on(stream, now_ns, err) < 0)
            return err->code;
    }
    return CW_OK;
}

bool output_stream_add(struct output_stream *stream, const char *text, size_t size)
{
    if (size > OUTPUT_LINE_MAX - stream->used)
        return false;
    take_output(stream, text, size);
    return true;
}

int output_stream_tick(struct output_stream *stream, uint64_t now_ns, struct cw_err *err)
{
    if (stream->held_ns && now_ns - stream->held_ns >= OUTPUT_PARTIAL_NS)
        release_held(stream);
    return stream->used ? pass_on(stream, now_ns, err) : CW_OK;
}

static uint64_t passing_deadline_ns(const struct output_stream *stream, uint64_t now_ns)
{
    if (!stream->used)
        return UINT64_MAX;
    if (stream->more)
        return now_ns;
    if (!stream->blocked && (stream->interrupted || is_dropping(stream)))
        return UINT64_MAX;
    if (stream->blocked || !stream->from)
        return now_ns + OUTPUT_RETRY_NS;
    return stream->partial_ns + OUTPUT_PARTIAL_NS;
}

uint64_t output_stream_deadline_ns(const struct output_stream *stream, uint64_t now_ns)
{
    uint64_t passing = passing_deadline_ns(stream, now_ns);
    uint64_t held = stream->held_ns ? stream->held_ns + OUTPUT_PARTIAL_NS : UINT64_MAX;

    return held < passing ? held : passing;
}
