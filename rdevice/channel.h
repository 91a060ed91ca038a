/* The channel memory as this rank uses it: the streams to the others of its host and from them, and
 * where it sleeps. No waiting here. For the thread that calls MPI. */
#ifndef RDEVICE_CHANNEL_H
#define RDEVICE_CHANNEL_H

#include "common/frame.h"
#include "common/setup.h"
#include "rdevice/mailbox.h"

#define CHANNEL_PIECES_MAX 64u /* taken of one stream before the next is looked at */
/* So often, that far apart: then nobody goes on unless this rank takes more than it has room for.
 */
#define CHANNEL_HELD_LOOKS_MAX 10u
#define CHANNEL_HELD_LOOK_NS 100000000ull
#define CHANNEL_ROOM_NS 10000000000ull /* that a send waits for images to make room for its log */

struct channel {
    bool on;          /* all messages of this rank go this way */
    bool keeps;       /* and what it needs to be started again stays there */
    bool others_keep; /* what others need, too, unless one of them is not started again either */
    struct cw_channel memory;
    uint32_t rank;
    bool *holds;           /* by sender: its next message is not taken, see mailbox_takes */
    uint32_t held;         /* a sender of those, if there are any */
    uint32_t held_looks;   /* at which all other ranks slept, while messages were held back */
    uint64_t next_look_ns; /* while they are */
    uint32_t waits_for;    /* the rank in whose stream there is no room; the rank itself: none */
    struct cw_stream *in;  /* by sender */
    struct cw_stream *out; /* by receiver */
    struct cw_stream_sum *found; /* by receiver: what earlier incarnations had put */
    struct cw_stream_sum *made;  /* likewise: what this one has made, put by whomever */
    struct cw_stream decisions;  /* read while the rank repeats, then written */
    uint64_t *marked;            /* where `in`, and then `decisions`, were at the last image ... */
    uint64_t marked_polls;       /* ... which is that of this poll clock; 0: none */
    uint64_t held_told;          /* bytes: what the relay was told last */
    uint64_t repeated;           /* pieces that were taken again */
    uint64_t sent;               /* messages ... */
    uint64_t sent_bytes;         /* ... and of these */
    bool imaged;                 /* images are taken, which make room */
    int fd;
    struct mailbox mailbox;
};

/* Maps the memory that the setup speaks of, if it does. Ends the process when it cannot. */
void channel_open(struct channel *c, const struct cw_setup *setup, struct inbox *inbox,
                  const struct request_table *requests);
/* The same in a process that goes on from an image: what was read by then stays read. */
void channel_open_again(struct channel *c);

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

/* What this rank decides is noted before it can be seen: inputs of the program that it has not
 * noted yet, and what it sends. */
void channel_note_inputs(struct channel *c, uint64_t polls);
void channel_note_send(struct channel *c, const struct cw_send *send);

/* While the rank repeats. The next that its predecessors decided; false: nothing. */
bool channel_next(struct channel *c, struct cw_piece *piece);
/* Takes from a stream what was taken then. */
void channel_repeat_took(struct channel *c, const struct cw_piece *piece);
/* It is repeated: what follows it is next. */
void channel_repeated(struct channel *c, const struct cw_piece *piece);
/* What was sent, as it was noted. */
struct cw_send channel_noted_send(const struct channel *c, const struct cw_piece *piece);
const uint8_t *channel_noted_inputs(const struct channel *c);
/* All is repeated: from now on is noted what this process decides. */
void channel_live(struct channel *c);

/* Counts one more message to rank `to`: how many of its `total` bytes were put before; UINT64_MAX:
 * none, and it was not begun. */
uint64_t channel_begin(struct channel *c, uint32_t to, uint64_t total);

/* This rank is not started again: what it took and decided is not kept any more; and nobody is. */
void channel_forget(struct channel *c);
void channel_give_up(struct channel *c);

/* Puts the next bytes of a message to rank `to`: of the `size` bytes that the vectors hold behind
 * the first `skip`, as many as fit one piece. Returns how many; negative: there is no room. */
int32_t channel_put(struct channel *c, uint32_t to, struct cw_piece *head, const struct iovec *from,
                    size_t skip, size_t size);

/* This rank sleeps for at most `ns`, or until something comes, or there is room where it waits for
 * that. */
void channel_sleep(struct channel *c, uint64_t ns);

#endif
