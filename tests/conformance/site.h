/* A relay on real sockets in a thread of this process, and peers that talk to it. All functions
 * are for the thread of the tests. */
#ifndef CONFORMANCE_SITE_H
#define CONFORMANCE_SITE_H

#include "common/wire.h"
#include "relay/engine/engine.h"
#include "tests/trace/codec.h"

#include <pthread.h>

#define SITE_PEERS 1100
#define SITE_WAIT_MS 60000 /* nothing takes longer, even under a sanitizer on a busy machine */
#define SITE_NOTICES (CW_NOTICE_UNLINKED + 1)
#define SITE_UNIX 0
#define SITE_TCP 1

struct site {
    const struct relay_engine_ops *ops;
    struct relay_core *core;
    struct relay_engine *engine;
    struct relay_listener listeners[2];
    pthread_t thread;
    char dir[64];
    uint8_t key[CW_KEY_SIZE];
    uint8_t job[CW_ID_SIZE];
    int descriptors;      /* open before anything was opened */
    uint32_t hello_flags; /* of the dispatcher */
    uint64_t memory_max;  /* bytes: the most that the core held, once site_join has returned */
    uint64_t calls;       /* of the system by the engine, once site_join has returned */
    int result;           /* of run */
    struct cw_err err;
};

struct peer {
    struct cw_wire wire; /* its fd is -1: not connected */
    bool stalled;        /* does not read */
    bool slow;           /* writes single bytes */
    bool ended;          /* the relay has closed it */
    uint64_t event;
    uint64_t taken; /* the last event of which it said so, or was told that it did */
    struct cw_welcome welcome;
    uint32_t heard[CW_FRAME_TYPES];
    uint32_t notices[SITE_NOTICES]; /* by code */
    struct codec codec;
    struct codec_inbox inbox;
};

extern struct site site;
extern struct relay_pools site_pools; /* of the engines that site_start starts */
extern bool site_rings; /* the relay offers them; peers on its Unix socket want them */
extern struct peer peers[SITE_PEERS];
extern int peer_count; /* peers[0] is the dispatcher, peers[1 + rank] a rank, then others */

int site_count_descriptors(void);
/* Client and relay share the descriptors of this process: as many as the system allows, at least
 * three for each of SITE_PEERS: two sockets, and the memory of rings that are not used yet. */
void site_raise_descriptors(void);

/* A relay of this engine, running. */
void site_start(const struct relay_engine_ops *ops);
/* A job whose ranks have all connected, by turns over both sockets. */
void site_start_job(const struct relay_engine_ops *ops, uint32_t ranks);
/* Likewise, and nothing is kept for restarts. */
void site_start_unlogged_job(const struct relay_engine_ops *ops, uint32_t ranks);
/* Waits for run to return, checks that it ended well, and closes the engine. */
void site_join(void);
/* Closes everything else, and checks that no descriptor stays open. */
void site_close(void);
/* stop, join, close. */
void site_stop(void);

/* The next peer, connected but silent. */
struct peer *peer_connect(int listener);
/* Vanishes, and connects again as if it were new. */
void peer_reconnect(struct peer *p, int listener);
/* Opens its session. Returns what cw_hello_open does. */
int peer_hello_rank(struct peer *p, uint32_t rank, uint32_t incarnation);
int peer_hello_dispatcher(struct peer *p, uint32_t ranks);
void peer_close(struct peer *p);
static inline struct peer *rank_of(uint32_t rank)
{
    return &peers[1 + rank];
}

/* Queues a whole message of `total` bytes of the pattern of its tag. */
void peer_send(struct peer *p, uint32_t dst, uint64_t tag, uint64_t total);
/* What is missing of it after `sent` bytes. */
void peer_send_rest(struct peer *p, uint64_t tag, uint64_t total, uint64_t sent);
void peer_recv(struct peer *p, uint32_t req, uint64_t tag);

/* `count` messages of `size` bytes and more, there and back between two ranks that have spoken of
 * nothing else; each is checked. */
void ping_pong(uint32_t a, uint32_t b, uint32_t count, uint64_t size);

/* Moves bytes of all peers until done() is true. Returns false when time is up. */
bool pump_until(bool (*done)(void));
void pump_for(int ms);
bool peer_received(const struct peer *p, uint32_t req, uint64_t tag, size_t size);

#endif
