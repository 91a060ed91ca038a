/* What the ranks print: read from their channels (below: pipes), passed on a whole line at a time
 * where possible, to the terminal or to files. Bounded: a rank that prints faster than it can be
 * written waits in its pipe. */
#ifndef DISPATCHER_OUTPUT_H
#define DISPATCHER_OUTPUT_H

#include "common/err.h"
#include "common/setup.h"
#include "dispatcher/ranks/places.h"
#include "dispatcher/wire/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_LINE_MAX 32768u         /* bytes held while a line is not complete */
#define OUTPUT_PARTIAL_NS 100000000ull /* an incomplete line is shown after this time */
#define OUTPUT_RETRY_NS                                                                            \
    5000000ull /* between looks at a terminal or pipe that does not take more                      \
                */

/* Of one stream in a turn of the loop, which has others to hear; with tags each write is a line. */
#define OUTPUT_READS_A_TURN 4u
#define OUTPUT_WRITES_A_TURN 512u
/* Of what a process that has ended or marked an image has left in its pipe, of up to 1 MiB. */
#define OUTPUT_READS_DRAIN 64u

struct output_stream;

struct output_sink {
    int fd;
    bool pipe_like; /* may block: written in pieces that poll() promises room for */
    char name[256]; /* for messages */
    bool dirty;     /* something was written since output_sink_sync */
    const struct output_stream *owner; /* whose line is not complete there; NULL: any may write */
    uint64_t owner_ns;                 /* since when that is so; it may be OUTPUT_PARTIAL_NS */
};

struct output_stream {
    struct channel *from; /* what the rank prints; NULL when it ended */
    uint32_t rank;
    struct output_sink *sink;
    bool tag;
    bool at_line_start;
    size_t prefix_done;  /* bytes of the tag of this line that are out */
    bool blocked;        /* the sink does not take more now */
    bool more;           /* it may, but others have their turn first */
    uint64_t partial_ns; /* since when an incomplete line waits; 0: none does */
    size_t used;
    char *buffer; /* OUTPUT_LINE_MAX bytes, and those of a mark; owned */

    /* What a rank's incarnations have printed, each line once: how far the output has come, ... */
    uint64_t lines;
    uint64_t line_bytes;    /* of the line that is not complete */
    uint64_t printed;       /* whole lines of these that were passed on ... */
    uint64_t printed_bytes; /* ... and bytes of the next one */
    /* ... and how much of that the incarnation that runs has still to print again. */
    uint64_t drop_lines;
    uint64_t drop_bytes;
    bool interrupted; /* the process is gone, and another one will go on */

    /* Places of images, which marks in the output tell; see output_stream_set_mark. */
    const uint8_t *mark;   /* CW_MARK_SIZE bytes, borrowed; NULL: there are none */
    size_t held;           /* bytes behind `used` that a mark may begin with */
    uint64_t held_ns;      /* since when they are all that there is; 0: not known to be */
    struct places *places; /* borrowed; lines before, and bytes of the next one */
    enum place_in in;
    uint32_t awaited; /* the image whose mark is in the pipe, or else will not come; 0: none */

    /* Called before something is written to the sink, and when it is counted as printed, or was
     * not. NULL: nobody wants to know. */
    void (*printing)(struct output_stream *stream, bool done);
};

/* An output for fd 1 or 2 of this process, or of another one, which is taken over. A pipe and a
 * terminal are opened anew where that is allowed, so that no write waits for its reader. */
void output_sink_open_fd(struct output_sink *sink, int fd, const char *name);

/* A file, truncated, or, with `append`, gone on with. Errors: CW_ESYS, naming it. */
int output_sink_open_file(struct output_sink *sink, const char *dir, uint32_t rank,
                          const char *suffix, bool append, struct cw_err *err);

/* Errors: CW_ESYS, naming it: a file system as NFS may say only now that it could not be written.
 */
int output_sink_close(struct output_sink *sink, struct cw_err *err);

/* What was written is on disk, where it is kept on one. Errors: CW_ESYS, naming it. */
int output_sink_sync(struct output_sink *sink, struct cw_err *err);

/* The file of the one stream that is printed there ends after so many lines of it, and bytes of the
 * next one: what comes behind is cut off. Returns the lines that are missing, or CW_ESYS. */
int64_t output_sink_cut(struct output_sink *sink, const struct output_stream *stream,
                        uint64_t lines, uint64_t line_bytes, struct cw_err *err);

/* Takes over `from`. Errors: CW_ENOMEM. */
int output_stream_open(struct output_stream *stream, struct channel *from, uint32_t rank,
                       struct output_sink *sink, bool tag, struct cw_err *err);
void output_stream_close(struct output_stream *stream);

/* From now on output marks (struct cw_output_mark) with these bytes are taken out of what the rank
 * prints, and their places are remembered: how much a process printed before, all incarnations
 * before it counted once: `in` is this stream there. Anything else is output, also what is like a
 * mark but for some bytes.
 *
 * A mark is looked for where its first byte is. What may be its beginning waits for what follows,
 * at the end of what there is for OUTPUT_PARTIAL_NS. */
void output_stream_set_mark(struct output_stream *stream, const uint8_t *mark,
                            struct places *places, enum place_in in);

/* The mark of this image is in the pipe, or will never come: the rank's stream is not its pipe any
 * more. In that case the place of the image is where the output ends. To be followed by
 * output_stream_read; decided when that has found the pipe empty. */
void output_stream_await(struct output_stream *stream, uint32_t number);

/* The rank crashed, and another process will go on. What is still in its pipe counts as printed if
 * it is read before that begins; `at_once`: it does not, for the process may still live. */
void output_stream_interrupt(struct output_stream *stream, bool at_once);

/* Another incarnation prints to `from`, which is taken over; the pipe of the one before is closed.
 * It goes on from this image, or from its beginning (0): what was read from the ones before is
 * dropped from it when it comes again. Of an image without a place nothing is dropped. */
void output_stream_resume(struct output_stream *stream, struct channel *from, uint32_t number);

/* It has printed so much before it was opened, without a process until now, as if it was
 * interrupted. */
void output_stream_return(struct output_stream *stream, uint64_t lines, uint64_t line_bytes);

/* Whether this image has a place, and all that comes before it is out. */
bool output_stream_is_out(const struct output_stream *stream, uint32_t number);

/* There will be no other incarnation: what is held of an incomplete line may go out. */
void output_stream_give_up(struct output_stream *stream);

/* What waits to be passed on is lost. */
void output_stream_discard(struct output_stream *stream);

/* Whether something waits to be passed on. */
bool output_stream_holds(const struct output_stream *stream);

/* True when the stream should be watched for input. */
bool output_stream_wants_input(const struct output_stream *stream);

/* Reads what there is, at most `reads` times, and passes it on, each time in at most
 * OUTPUT_WRITES_A_TURN pieces; at the end of the pipe it is closed.
 * Errors: CW_ESYS (the sink cannot be written, naming it and the rank), CW_ECLOSED (nobody reads it
 * any more). */
int output_stream_read(struct output_stream *stream, uint32_t reads, uint64_t now_ns,
                       struct cw_err *err);

/* Of a stream without a pipe: what is to be passed on, by output_stream_tick. False: there is no
 * room for it. */
bool output_stream_add(struct output_stream *stream, const char *text, size_t size);

/* Passes on what waited for the sink or for the end of its line. Errors as above. */
int output_stream_tick(struct output_stream *stream, uint64_t now_ns, struct cw_err *err);

/* When output_stream_tick should be called; UINT64_MAX: never. */
uint64_t output_stream_deadline_ns(const struct output_stream *stream, uint64_t now_ns);

#endif
