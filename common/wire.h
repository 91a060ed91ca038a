/* What carries the bytes of a session: a stream socket, or two rings in memory that a relay shares
 * with a client on the same machine; then the socket tells of the end, and a byte on it wakes who
 * sleeps. docs/protocol.md, "Rings".
 *
 * A wire of which only `fd` is set is a socket's. Never blocks. Thread rule: one caller at a time.
 */
#ifndef CW_WIRE_H
#define CW_WIRE_H

#include "common/ring.h"

#include <sys/types.h>
#include <sys/uio.h>

struct cw_wire_shared;

enum cw_wire_mode {
    CW_WIRE_SOCKET,
    CW_WIRE_OFFERED, /* relay: the client has not chosen yet */
    CW_WIRE_WANTED,  /* client: takes rings, if they are offered */
    CW_WIRE_RINGS,
};

struct cw_wire {
    int fd; /* non-blocking or not; the owner's */
    enum cw_wire_mode mode;
    bool of_relay;   /* this is the relay's side of rings */
    bool ended;      /* with rings: the other side has closed the socket */
    uint32_t misses; /* looks in vain since the socket was looked at */
    int memory;      /* of CW_WIRE_OFFERED and CW_WIRE_WANTED: its descriptor and 1; 0: none */
    uint64_t *calls; /* system calls are counted there, unless NULL */
    struct cw_wire_shared *shared; /* mapped by this wire; NULL: no rings */
    void *place;                   /* of CW_WIRE_WANTED */
    struct cw_ring in;
    struct cw_ring out;
};

/* The relay's side: rings are offered with the first bytes that are sent. The client chooses: bytes
 * from it on the socket are a refusal. Without memory for it returns false, with errno, and the
 * wire stays a socket's. */
bool cw_wire_offer(struct cw_wire *wire);
/* The client's side, before the first bytes are received: takes rings if they are offered. They
 * will be mapped at `place`; NULL: anywhere. */
void cw_wire_want(struct cw_wire *wire, void *place);
/* ... after the first frame was received whole: from now on bytes go through the rings, if there
 * are any. */
void cw_wire_join(struct cw_wire *wire);
/* Unmaps; the socket stays open. */
void cw_wire_close(struct cw_wire *wire);

/* Like recvmsg and sendmsg that do not wait: bytes moved, 0 at the end (of receiving), or -1 with
 * errno: EAGAIN when there is nothing or no room; EPROTO when the other side broke the rings. */
ssize_t cw_wire_recv(struct cw_wire *wire, const struct iovec *iov, int count);
ssize_t cw_wire_send(struct cw_wire *wire, const struct iovec *iov, int count);

/* `size` bytes, which are there in the rings of `from`, go straight into those of `to`, where there
 * is room for them (NULL: nowhere); see cw_ring_pass, cw_ring_release. */
void cw_wire_pass(struct cw_wire *from, struct cw_wire *to, size_t size, uint8_t *away);
void cw_wire_release(struct cw_wire *from);

/* What this errno says of them. Not to be freed. */
const char *cw_wire_error(int error);

/* The processor that the relay last received on, for a client with rings; -1: not known. */
int cw_wire_relay_cpu(const struct cw_wire *wire);

/* The caller is going to sleep in poll() until it can receive, or send, or both. Returns what
 * poll() is to wait for on fd; 0: nothing, it need not sleep. */
short cw_wire_sleep(struct cw_wire *wire, bool in, bool out);
/* It woke. `readable`: poll() said that fd is. */
void cw_wire_woke(struct cw_wire *wire, bool readable);

#endif
