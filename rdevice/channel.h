/* The channel memory as this rank uses it: the streams to the others of its host and from them, and
 * where it sleeps. No waiting here. For the thread that calls MPI. */
#ifndef RDEVICE_CHANNEL_H
#define RDEVICE_CHANNEL_H

#include "common/frame.h"
#include "common/setup.h"
#include "rdevice/arrivals.h"
#include "rdevice/bell.h"

#define CHANNEL_FAR UINT32_MAX /* the place of a rank whose memory is another one */
#define CHANNEL_PIECES_MAX 64u /* taken of one stream before the next is looked at */
/* So often, that far apart: then nobody goes on unless this rank takes more than it has room for.
 */
#define CHANNEL_HELD_LOOKS_MAX 10u
#define CHANNEL_HELD_LOOK_NS 100000000ull
#define CHANNEL_NOBODY UINT32_MAX
#define CHANNEL_ROOM_NS 10000000000ull /* that a send waits for images to make room for its log */

struct channel {
    bool on;          /* messages between ranks that share the memory go this way */
    bool far;         /* there are others, with whom messages go through the relay */
    bool keeps;       /* and what it needs to be started again stays there */
    bool others_keep; /* what others need, too, unless one of them is not started again either */
    struct cw_channel memory;
    uint32_t rank; /* the place of this rank in the memory: tables by sender or receiver ... */
    const uint16_t *ranks;    /* ... are by places; of each place, the rank ... */
    uint32_t *places;         /* ... and of each rank, its place, or CHANNEL_FAR */
    struct arrivals arrivals; /* what comes through the relay */
    uint64_t arrivals_polls;  /* the poll at which any of that was taken last */
    uint64_t told;    /* acts that the relay was told: what goes through it, of all incarnations */
    bool came_before; /* a process of this rank has mapped this memory before */
    bool lost;        /* another memory was lost, and this rank has not repeated yet what it did
                         there, with others who do so at the same time */
    struct cw_stream decides; /* where that is written: behind what is here already ... */
    uint64_t decides_skip;    /* ... which are so many */
    uint32_t awaits;       /* the rank of which a piece is to be taken again; or CHANNEL_NOBODY */
    bool *holds;           /* by sender: its next message is not taken, see mailbox_takes */
    uint32_t held;         /* a sender of those, if there are any */
    uint32_t held_looks;   /* at which all other ranks slept, while messages were held back */
    uint64_t next_look_ns; /* while they are */
    _Atomic uint32_t *sleeps;    /* in the memory: whether this rank does */
    uint32_t waits_for;          /* the rank in whose stream there is no room; or CHANNEL_NOBODY */
    struct cw_stream *in;        /* by sender */
    struct cw_stream *out;       /* by receiver */
    struct cw_stream_sum *found; /* by receiver: what earlier incarnations had put */
    struct cw_stream_sum *made;  /* likewise: what this one has made, put by whomever */
    struct cw_stream decisions;  /* read while the rank repeats, then written */
    uint64_t decided;            /* how many of them this process has made, or repeated */
    uint64_t *marked;            /* where `in`, and then `decisions`, were at the last image ... */
    uint64_t marked_polls;       /* ... which is that of this poll clock; 0: none */
    uint64_t held_told;          /* bytes: what the relay was told last */
    uint64_t repeated;           /* pieces that were taken again */
    uint64_t sent;               /* messages ... */
    uint64_t sent_bytes;         /* ... and of these */
    bool imaged;                 /* images are taken, which make room */
    int fd;
    int file_fd;        /* of what lies behind the memory; -1: nothing does */
    uint64_t file_size; /* of that */
    struct bell bell;   /* where there are ranks elsewhere */
    uint32_t incarnation;
    struct mailbox mailbox;
};

/* Where this rank stands in the memory that it shares; CHANNEL_FAR: in another one. */
static inline uint32_t channel_place(const struct channel *c, uint32_t rank)
{
    return c->places[rank];
}

/* Maps the memory that the setup speaks of, if it does. Ends the process when it cannot. */
void channel_open(struct channel *c, const struct cw_setup *setup, struct inbox *inbox,
                  const struct request_table *requests);
/* The same in a process that goes on from an image: what was read by then stays read. */
void channel_open_again(struct channel *c, const struct cw_setup *setup);

/* An image is taken at this poll clock; and it is safe: what came before is not needed any more. */
void channel_mark(struct channel *c, uint64_t polls);
void channel_trim(struct channel *c, uint64_t polls);
/* Whether the log of this rank holds so much more than the relay was told that it should know. */
bool channel_grew(const struct channel *c);
/* What this rank has counted, for the relay, which counts nothing of this. */
struct cw_rank_stats channel_count(struct channel *c);

/* Takes what has come, and notes that it was taken at this poll: with a log, once for each at most.
 * Returns whether anything has. Ends the process when another rank wrote what cannot be, and when
 * all ranks wait for room for what this one has not received. */
bool channel_read(struct channel *c, uint64_t polls);

/* Tells others of this host what has come of their messages, but those for whom there is no room
 * now, and has it noted for the relay. `noted`: what decided that is, that is to say that something
 * was taken at this poll. */
void channel_tell_news(struct channel *c, uint64_t polls, bool noted);

/* What this rank decides is noted before it can be seen: inputs of the program that it has not
 * noted yet, and what it sends. */
void channel_note_inputs(struct channel *c, uint64_t polls);
void channel_note_send(struct channel *c, const struct cw_send *send);

/* While the rank repeats. The next that its predecessors decided; false: nothing. */
bool channel_next(struct channel *c, struct cw_piece *piece);
/* Of what was taken then, through the relay, not all is here yet. */
bool channel_lacks(const struct channel *c, const struct cw_piece *piece);
/* Takes from a stream, or what came through the relay, what was taken then. False: some of it is
 * still to be put by a rank that repeats, too: piece->more is how many; then channel_await(), and
 * once more. */
bool channel_repeat_took(struct channel *c, struct cw_piece *piece);
void channel_await(struct channel *c, const struct cw_piece *piece);
/* It is repeated: what follows it is next. */
void channel_repeated(struct channel *c, const struct cw_piece *piece);
/* What was sent, as it was noted. */
struct cw_send channel_noted_send(const struct channel *c, const struct cw_piece *piece);
const uint8_t *channel_noted_inputs(const struct channel *c);
/* All is repeated: from now on is noted what this process decides. */
void channel_live(struct channel *c);

/* A message goes to this rank: returns its place. */
uint32_t channel_count_sent(struct channel *c, uint32_t rank, uint64_t total);
/* Counts one more message to the rank at place `to`: how many of its `total` bytes were put before;
 * UINT64_MAX: none, and it was not begun. */
uint64_t channel_begin(struct channel *c, uint32_t to, uint64_t total);

/* Ends the process where WELCOME speaks of earlier incarnations, and the memory is another one than
 * theirs, unless the relay says what they decided: then channel_decided() with that follows. */
void channel_welcome(struct channel *c, const struct cw_welcome *welcome);
/* What earlier incarnations decided elsewhere, in order, in this memory from now on. Returns NULL,
 * or what is wrong (a constant string). */
const char *channel_decided(struct channel *c, const uint8_t *bytes, size_t size);
/* One more that the relay is told of what has come of messages; false: none. What it follows from
 * is noted. */
bool channel_next_news(struct channel *c, struct mailbox_news *news);

/* This rank is not started again: what it took and decided is not kept any more; and nobody is. */
void channel_forget(struct channel *c);
void channel_give_up(struct channel *c);

/* Puts the next bytes of a message to rank `to`: of the `size` bytes that the vectors hold behind
 * the first `skip`, as many as fit one piece. Returns how many; negative: there is no room. */
int32_t channel_put(struct channel *c, uint32_t to, struct cw_piece *head, const struct iovec *from,
                    size_t skip, size_t size);

/* This rank goes to sleep at its bell, and at its relay, until channel_woke(); at most as long as
 * something comes, or there is room where it waits for that. False: that is so by now. */
bool channel_goes_to_sleep(struct channel *c);
void channel_woke(struct channel *c);

/* This rank sleeps for at most `ns`, or until something comes, or there is room where it waits for
 * that. */
void channel_sleep(struct channel *c, uint64_t ns);

#endif
