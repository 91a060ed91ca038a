/* What carries the bytes of a connection: a stream socket, or two rings in memory that a relay
 * shares with an opener on the same machine. With rings, the end of the socket is the end of the
 * connection, and a byte on the socket wakes the side that sleeps. docs/protocol.md, "Rings".
 *
 * A wire with only `fd` set is a socket's. No function blocks. Thread rule: one caller at a time.
 */
#ifndef CW_WIRE_H
#define CW_WIRE_H

#include "common/ring.h"

#include <sys/types.h>
#include <sys/uio.h>

struct cw_wire_shared;
#define CW_WIRE_HEADER_BYTES 4096u
#define CW_WIRE_SHARED_BYTES                                                                       \
    (CW_WIRE_HEADER_BYTES + 2 * (size_t)CW_RING_BYTES) /* of both rings                            \
                                                        */

enum cw_wire_mode {
    CW_WIRE_SOCKET,
    CW_WIRE_OFFERED, /* relay: the opener has neither accepted nor declined */
    CW_WIRE_WANTED,  /* opener: accepts rings, if they are offered */
    CW_WIRE_RINGS,
};

struct cw_wire {
    int fd; /* non-blocking or not; the owner's */
    enum cw_wire_mode mode;
    bool of_relay;   /* this is the relay's side of rings */
    bool rang;       /* the other side was woken; the owner clears it */
    bool ended;      /* with rings: the other side has closed the socket */
    bool holds;      /* cw_wire_hold */
    uint32_t misses; /* reads in vain since the socket was read */
    int memory;      /* of CW_WIRE_OFFERED and CW_WIRE_WANTED: its descriptor and 1; 0: none */
    uint64_t *calls; /* system calls are counted there, unless NULL */
    struct cw_wire_shared *shared; /* mapped by this wire; NULL: no rings */
    void *place;                   /* of CW_WIRE_WANTED */
    struct cw_ring in;
    struct cw_ring out;
};

/* The relay's side: the first bytes that are sent carry the offer. Bytes from the opener on the
 * socket decline it. Returns false, with errno, if there is no memory; the wire stays a socket's.
 */
bool cw_wire_offer(struct cw_wire *wire);
/* The opener's side, before the first bytes are received: an offer will be accepted, and the rings
 * mapped at `place`; NULL: anywhere. */
void cw_wire_want(struct cw_wire *wire, void *place);
/* The opener's side, when the first frame was received whole: accepts the offer, if there was one.
 */
void cw_wire_join(struct cw_wire *wire);
/* Unmaps the rings and clears everything but `fd`, `rang` and `calls`: the wire is a socket's
 * again. The owner closes the socket. With another `fd` the wire serves the next connection, also
 * with cw_wire_offer, or cw_wire_want at the same place. */
void cw_wire_close(struct cw_wire *wire);
/* The bytes that were sent through rings and that the other side has not taken at this moment, as
 * up to 2 vectors into the rings, valid until cw_wire_close. Returns how many vectors; 0 for a
 * socket; -1 if the other side's position is impossible. */
int cw_wire_unread(struct cw_wire *wire, struct iovec iov[2]);

/* As recvmsg and sendmsg that do not wait: bytes moved, 0 at the end (of receiving), or -1 with
 * errno: EAGAIN: no bytes or no room; EPROTO: the other side's position is impossible. */
ssize_t cw_wire_recv(struct cw_wire *wire, const struct iovec *iov, int count);
ssize_t cw_wire_send(struct cw_wire *wire, const struct iovec *iov, int count);

/* Copies `size` bytes, which must be there in the rings of `from`, to the rings of `to`, which must
 * have room (NULL: drops them); see cw_ring_pass, cw_ring_release. */
void cw_wire_pass(struct cw_wire *from, struct cw_wire *to, size_t size);
void cw_wire_release(struct cw_wire *from, size_t held);
/* What is received through rings stays there from now on, until cw_wire_release. */
void cw_wire_hold(struct cw_wire *wire);

/* The text of an errno of cw_wire_recv and cw_wire_send. Static or of strerror. */
const char *cw_wire_error(int error);

/* The processor that the other side last said it runs on; -1: unknown. */
int cw_wire_other_cpu(const struct cw_wire *wire);
/* The opener says whether it does nothing but wait, until the relay sends; and whether it talks:
 * it needs the processor only for short times between two waits. */
void cw_wire_wait(struct cw_wire *wire, bool waits, bool talks);
/* Whether the opener may need a core for long: it neither waits nor talks. */
bool cw_wire_computes(const struct cw_wire *wire);

/* To be called before the caller sleeps in poll() until it can receive, or send, or both. Returns
 * the events to poll fd for; 0: it need not sleep. */
short cw_wire_sleep(struct cw_wire *wire, bool in, bool out);
/* To be called when it woke. `readable`: poll() said that fd is. */
void cw_wire_woke(struct cw_wire *wire, bool readable);

#endif
