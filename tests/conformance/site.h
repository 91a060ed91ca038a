/* A relay on real sockets in a thread of this process, and peers that connect to it. Thread rule:
 * all functions from the thread of the tests. */
#ifndef CONFORMANCE_SITE_H
#define CONFORMANCE_SITE_H

#include "common/kept.h"
#include "common/wire.h"
#include "relay/engine/engine.h"
#include "tests/lib/codec.h"

#include <pthread.h>

#define SITE_PEERS 1100
#define SITE_WAIT_MS 60000 /* no wait takes longer, even under a sanitizer on a busy machine */
#define SITE_NOTICES (CW_NOTICE_UNSYNCED + 1)
#define SITE_LOG_MEMORY (1ull << 20)
#define SITE_LOG_DISK (256ull << 20)
#define SITE_UNIX 0
#define SITE_TCP 1

struct site {
    const struct relay_engine_ops *ops;
    struct relay_core *core;
    struct relay_engine *engine;
    struct relay_listener listeners[3]; /* the last one, with site_disk, says that it has results */
    pthread_t thread;
    uint8_t key[CW_KEY_SIZE];
    uint8_t job[CW_ID_SIZE];
    int descriptors;      /* open before anything was opened */
    uint32_t hello_flags; /* of the dispatcher */
    uint32_t resume_ms;   /* of the dispatcher */
    uint64_t memory_max;  /* bytes: the most that the core held; valid after site_join */
    uint64_t calls;       /* system calls of the engine; valid after site_join */
    int result;           /* of run */
    struct cw_err err;
};

struct peer {
    struct cw_wire wire; /* its fd is -1: not connected */
    bool stalled;        /* does not read */
    bool slow;           /* writes single bytes */
    bool ended;          /* the relay has closed the connection */
    uint64_t event;
    uint64_t taken; /* the last event that it, or an incarnation before it, said it took */
    /* Of a session that can resume: */
    struct cw_hello hello;
    uint8_t key[CW_KEY_SIZE];
    struct cw_kept kept; /* without memory: it does not resume */
    uint64_t write_stop; /* position at which it stops writing; 0: none */
    uint64_t read_stop;  /* position at which it stops reading; 0: none */
    struct cw_welcome welcome;
    uint32_t heard[CW_FRAME_TYPES];
    uint32_t notices[SITE_NOTICES]; /* by code */
    uint64_t forwarded;             /* of a relay: bytes of messages forwarded to it ... */
    uint64_t forwarded_tag;         /* ... the last one's pattern */
    uint64_t forwarded_at;
    struct codec codec;
    struct codec_inbox inbox;
};

extern struct site site;
extern struct relay_pools site_pools; /* of the engines that site_start starts */
extern bool site_rings; /* the relay offers them; peers on its Unix socket want them */
/* Of the logs; all zero: they have none. With a disk they have SITE_LOG_MEMORY. */
extern struct relay_disk site_disk;
extern struct peer peers[SITE_PEERS];
extern int peer_count; /* peers[0] is the dispatcher, peers[1 + rank] a rank, then others */

int site_count_descriptors(void);
/* Raises the limit of descriptors as far as the system allows. Peers and relay share this process:
 * each of SITE_PEERS needs two sockets, and the memory of rings that are not accepted yet. */
void site_raise_descriptors(void);

/* Starts a relay with this engine. */
void site_start(const struct relay_engine_ops *ops);
/* Starts a relay and a job whose ranks have all connected, in turn over both sockets. */
void site_start_job(const struct relay_engine_ops *ops, uint32_t ranks);
/* As site_start_job, without a log. */
void site_start_unlogged_job(const struct relay_engine_ops *ops, uint32_t ranks);
/* As site_start_job; `flags`: of the dispatcher's HELLO. All sessions can resume, for `resume_ms`.
 */
void site_start_resuming_job(const struct relay_engine_ops *ops, uint32_t ranks, uint32_t flags,
                             uint32_t resume_ms);
/* Waits until the engine's run returns, checks its result, and closes the engine. */
void site_join(void);
/* Closes everything else, and checks that no descriptor stays open. */
void site_close(void);
/* Stops the engine, then site_join and site_close. */
void site_stop(void);

/* Connects the next peer, which does not speak yet. */
struct peer *peer_connect(int listener);
/* Closes the connection, forgets the session, and connects again. */
void peer_reconnect(struct peer *p, int listener);
/* Opens a session. Returns what cw_hello_open does. */
int peer_hello_rank(struct peer *p, uint32_t rank, uint32_t incarnation);
int peer_hello_dispatcher(struct peer *p, uint32_t ranks);
int peer_hello_relay(struct peer *p, uint32_t number);
void peer_leave(struct peer *p);

/* From now on the peer keeps what it sends, so that it can resume its session. */
void peer_keep(struct peer *p);
/* Closes the connection of a peer that keeps, as a process sees it break. */
void peer_break(struct peer *p);
/* Connects once and resumes the session. Returns what cw_hello_resume does; after an error the peer
 * is not connected. */
int peer_resume_once(struct peer *p, int listener);
/* Tries until it is resumed, or refused for another reason than BUSY. */
int peer_resume(struct peer *p, int listener);
/* The position of the next byte that it sends. */
static inline uint64_t peer_sent(const struct peer *p)
{
    return p->kept.sent;
}
static inline uint64_t peer_received_bytes(const struct peer *p)
{
    return p->codec.session.received;
}
static inline struct peer *rank_of(uint32_t rank)
{
    return &peers[1 + rank];
}

/* Queues a whole message: `total` bytes of the pattern of its tag. */
void peer_send(struct peer *p, uint32_t dst, uint64_t tag, uint64_t total);
/* Queues the rest of this message after `sent` bytes. */
void peer_send_rest(struct peer *p, uint64_t tag, uint64_t total, uint64_t sent);
void peer_recv(struct peer *p, uint32_t req, uint64_t tag);

/* Sends `count` messages of `size` bytes and more from each of two ranks to the other, in turn, and
 * checks each. The two ranks have exchanged only such messages before. */
void ping_pong(uint32_t a, uint32_t b, uint32_t count, uint64_t size);

/* Moves bytes of all peers until done() is true. Returns false after SITE_WAIT_MS. */
bool pump_until(bool (*done)(void));
void pump_for(int ms);
bool peer_received(const struct peer *p, uint32_t req, uint64_t tag, size_t size);

#endif
