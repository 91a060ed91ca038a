/* Clients of a relay's core that a fuzzer plays: connections without an engine, over which their
 * bytes go in pieces of any size. What the relay answers makes sense, and an event never changes;
 * else the process ends. One thread. */
#ifndef TESTS_LIB_FUZZ_CLIENT_H
#define TESTS_LIB_FUZZ_CLIENT_H

#include "relay/core/core.h"
#include "tests/lib/codec.h"

#define JOBS 2
#define RANKS 4 /* of each job: 0 and 1 are at home here, 2 at relay 1, 3 at relay 2 */
#define RELAYS 3
#define EVENTS_MAX 1024u /* of a rank, whose content is remembered */
#define UNMATCHED_MAX 8u /* synchronous sends to a rank that it may say it has matched */

struct client {
    struct relay_conn *conn;
    struct codec codec;
    struct codec_inbox inbox;
    struct cw_challenge challenge;
    uint32_t job;
    uint32_t who; /* 0: the dispatcher, then ranks, then relays */
    uint64_t event;
    uint64_t missing; /* bytes of the message that it sends */
    /* of a rank that is its own mailbox: bytes that are still to come from each, and whether any
     * are; and synchronous sends that came */
    uint64_t coming[RANKS];
    bool comes[RANKS];
    struct cw_forward_ref unmatched[UNMATCHED_MAX];
    uint32_t unmatched_count;
    bool stalled; /* does not read */
    bool writing; /* the engine holds what it is to write */
    bool lingers; /* is not closed when it is done */
    bool resumed; /* what it is told now begins in the middle of a frame */
    bool forged;  /* it said something raw: its numbers are not known any more */
    bool odd;     /* it may have used a request's number twice */
    bool refused;
    void *room; /* the engine holds where to read to */
    size_t room_size;
};

/* The relay, and what is known of it. */
struct fuzzed {
    struct relay_core *core;
    uint64_t now_ns;
    bool channel;                              /* ranks are their own mailboxes */
    uint64_t witness[JOBS][RANKS][EVENTS_MAX]; /* what each event was */
};
extern struct fuzzed fuzzed;

/* It closes its connection, if it has one, and begins anew. */
void drop_client(struct client *c);
/* It goes on with a session, whose numbers are now its own. */
void resumed(struct client *c);
/* It reads what there is for it, and so do all. */
void drain(struct client *c);
void collect(void);
/* The relay gets `size` bytes of what the client has to say, or fewer; or all. */
void feed(struct client *c, size_t size);
void feed_all(struct client *c);

#endif
