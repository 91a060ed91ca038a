/* The session of a rank with its relay: the wire, the numbers of frames, and the bytes on their way
 * each way. What frames mean is not known here. It moves what can be moved and does not wait, with
 * two exceptions: while it is opened, and when its connection breaks. Then it connects again and
 * resumes (docs/protocol.md, "Sessions"), and both streams go on at the byte where they stopped;
 * or, when the resume time-out has passed, it ends the process.
 *
 * All memory is the arena's, and no name is resolved again: a rank whose connection broke has the
 * same heap as one whose connection did not. For the thread that calls MPI. */
#ifndef RDEVICE_SESSION_H
#define RDEVICE_SESSION_H

#include "common/frame.h"
#include "common/kept.h"
#include "common/transport.h"
#include "common/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SESSION_VECTORS_MAX 9 /* of one write */
#define SESSION_IN_BYTES (64u << 10)
#define SESSION_OUT_BYTES (64u << 10)

struct session {
    struct cw_wire wire; /* its fd is -1 while there is no connection */
    struct cw_session numbers;
    uint8_t *out;
    size_t out_used;
    bool out_urgent; /* something there should go out soon; determinants can wait. The caller's */
    uint8_t *in;
    size_t in_start;
    size_t in_end;
    uint8_t *sink;    /* where the next bytes of the payload at hand go: the caller's; and ... */
    size_t sink_left; /* ... how many are still to come */

    uint64_t calls;          /* system calls on the wire */
    struct cw_address place; /* of the relay */
    struct cw_hello hello; /* who we are; `event`, the caller's: the last one that has come whole */
    uint8_t *key;          /* secret; NULL: the session ends with its connection */
    uint32_t resume_ms;
    uint32_t connections; /* so far; the one of now is the last: changes when it was resumed */
    bool returned;     /* the relay was killed and is back, and its stream has begun anew: what was
                          on its way to us has gone. The caller takes that back */
    uint64_t received; /* of our stream, by that relay */
    bool ending;       /* BYE is written, says the caller: a connection that breaks now is ... */
    bool over;         /* ... no error where the relay knows the session no more */

    struct cw_kept kept; /* sent through a socket, and perhaps not received */
    uint64_t acked;      /* as the relay said last */
};

/* A frame that has come: `body` has its fixed part, or all of it where the type has a bounded
 * variable part that is not payload; it is valid until the session receives again. `more` bytes of
 * payload follow as they come. */
struct session_frame {
    uint8_t type;
    const uint8_t *body;
    size_t length; /* of the whole body */
    size_t more;
};

#define SESSION_BEFORE                                                                             \
    {                                                                                              \
        .wire = {.fd = -1 }                                                                        \
    }

/* Who we are, at which relay, and how long a broken connection may be repaired; 0: not at all. No
 * connection yet. Copies all. Ends the process when `address` is none. */
void session_begin(struct session *s, const char *address, const struct cw_hello *hello,
                   uint32_t resume_ms);
/* Connects, and proves with `key` who we are; tries again for `resume_ms` while there is no
 * connection. Ends the process when that is impossible. */
void session_open(struct session *s, const uint8_t key[CW_KEY_SIZE], struct cw_welcome *welcome);
void session_close(struct session *s);

/* The process goes on from an image, without the connection that its predecessor had: forgets all
 * of it, for session_begin(). */
void session_forsake(struct session *s);

/* The position in our stream behind what is queued. */
static inline uint64_t session_position(const struct session *s)
{
    return s->kept.end + s->out_used;
}

static inline bool session_is_open(const struct session *s)
{
    return s->wire.fd >= 0;
}

/* --- out --- */

/* Whether a frame with `size` bytes of body in the buffer has room there. */
static inline bool session_has_room(const struct session *s, size_t size)
{
    return SESSION_OUT_BYTES - s->out_used >= CW_FRAME_HEADER + size;
}

/* Queues the header of a frame of `length` bytes, `buffered` of which have room in the buffer:
 * returns where they go. The others are the pieces of the next session_write(). */
uint8_t *session_queue(struct session *s, uint8_t type, size_t buffered, size_t length);

/* Appends to the frame queued last: session_has_room() said that there is room. */
void session_append(struct session *s, const struct iovec *pieces, int count);

/* What is queued, s->out, is the first of the vectors that are to be written; session_written()
 * when all of them are. */
static inline void session_written(struct session *s)
{
    s->out_used = 0;
    s->out_urgent = false;
}

/* Writes what there is room for, and moves *vectors and *count past it. Returns false when there is
 * no room now (session_wants_ack() says whether an ACK makes some), or, with *error, when the
 * connection is lost. */
bool session_write(struct session *s, struct iovec **vectors, int *count, int *error);

/* The relay has not acknowledged so much that an ACK has to come before more is sent. */
bool session_wants_ack(const struct session *s);

/* The relay cannot be read now, so that no ACK will come: forgets the bytes that were sent first.
 * Where the connection breaks before the relay has received these, the session cannot be resumed.
 */
void session_forget(struct session *s);

/* ACK has come, with this body. False: it cannot be. */
bool session_on_ack(struct session *s, const uint8_t *body);

/* The connection is lost, by `error`; 0: its end was read. Resumes the session over another one, or
 * ends the process. */
void session_lost(struct session *s, int error);

/* --- in --- */

/* Takes what has come, without waiting: false when there is nothing. Large payload goes straight to
 * its place. */
bool session_fill(struct session *s);

/* The frame at the start of the buffer: 1; 0: it has not come whole; CW_EPROTO with *err: it cannot
 * be. */
int session_take_frame(struct session *s, struct session_frame *frame, struct cw_err *err);

/* The first `size` bytes of that frame, which is not taken; NULL: they have not come. */
const uint8_t *session_peek(const struct session *s, size_t size);

/* Moves what of the payload is in the buffer. False: nothing. */
bool session_take_payload(struct session *s);

/* The relay should hear how much has come: an ACK is owed. */
static inline bool session_owes_ack(const struct session *s)
{
    return cw_session_owes_ack(&s->numbers, s->wire.mode == CW_WIRE_SOCKET);
}

#endif
