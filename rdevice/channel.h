/* The channel memory as this rank uses it: the streams to the others of its host and from them, and
 * where it sleeps. No waiting here. For the thread that calls MPI. */
#ifndef RDEVICE_CHANNEL_H
#define RDEVICE_CHANNEL_H

#include "common/setup.h"
#include "rdevice/mailbox.h"

#define CHANNEL_PIECES_MAX 64u /* taken of one stream before the next is looked at */
/* So often, that far apart: then nobody goes on unless this rank takes more than it has room for.
 */
#define CHANNEL_HELD_LOOKS_MAX 10u
#define CHANNEL_HELD_LOOK_NS 100000000ull

struct channel {
    bool on; /* all messages of this rank go this way */
    struct cw_channel memory;
    uint32_t rank;
    bool *holds;           /* by sender: its next message is not taken, see mailbox_takes */
    uint32_t held;         /* a sender of those, if there are any */
    uint32_t held_looks;   /* at which all other ranks slept, while messages were held back */
    uint64_t next_look_ns; /* while they are */
    uint32_t waits_for;    /* the rank in whose stream there is no room; the rank itself: none */
    struct cw_stream *in;  /* by sender */
    struct cw_stream *out; /* by receiver */
    struct mailbox mailbox;
};

/* Maps the memory that the setup speaks of, if it does. Ends the process when it cannot. */
void channel_open(struct channel *c, const struct cw_setup *setup, struct inbox *inbox,
                  const struct request_table *requests);

/* Takes what has come, and for what there is room. Returns whether anything has. Ends the process
 * when another rank wrote what cannot be, and when all ranks wait for that room. */
bool channel_read(struct channel *c);

/* Puts the next bytes of a message to rank `to`: of the `size` bytes that the vectors hold behind
 * the first `skip`, as many as fit one piece. Returns how many; negative: there is no room. */
int32_t channel_put(struct channel *c, uint32_t to, struct cw_piece *head, const struct iovec *from,
                    size_t skip, size_t size);

/* This rank sleeps for at most `ns`, or until something comes, or there is room where it waits for
 * that. */
void channel_sleep(struct channel *c, uint64_t ns);

#endif
