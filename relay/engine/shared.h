/* What the engines of several threads share. One mutex keeps the core's thread rule and guards all
 * that is here; bytes move outside of it. The thread that called run accepts connections, lets time
 * pass and waits for stop; who does the rest is the engine's, and each engine's file says it.
 *
 * Functions marked [lock] are called with the mutex held, those marked [lock, lets go] release it
 * meanwhile: only what the caller holds as a user is still there afterwards. */
#ifndef RELAY_ENGINE_SHARED_H
#define RELAY_ENGINE_SHARED_H

#include "common/spin.h"
#include "relay/engine/accept.h"

#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

#define SHARED_HELD_NS 5000000ull       /* between looks at senders that wait for a slow receiver */
#define SHARED_WRITES_MAX 8             /* of one connection before others get their turn */
#define SHARED_LARGE (32u << 10)        /* bytes of a read that takes longer than waking a thread */
#define SHARED_STACK_BYTES (128u << 10) /* of a thread: most of it is never touched */

struct shared;

struct shared_conn {
    struct relay_conn *conn;
    int fd;
    int users;    /* who holds it; the last one to release it closes it */
    bool writing; /* a thread writes to it */
    bool left;    /* what is left to write is for whoever waits until the socket takes more */
    bool held;    /* not read now: the bytes that it sent should drain first */
    bool ended;   /* it is to be closed */
    char why[64]; /* likewise */
    LIST_ENTRY(shared_conn) others;
};

LIST_HEAD(shared_conns, shared_conn);

/* What an engine does. All [lock]. */
struct shared_ops {
    const char *name;
    size_t engine_size; /* of its struct relay_engine, which begins with a struct shared */
    /* What it has besides; `release` also where that fails. Returns 0 or a negative code. */
    int (*prepare)(struct relay_engine *e, struct cw_err *err);
    void (*release)(struct relay_engine *e);
    size_t conn_size; /* of its connections, which begin with a struct shared_conn */
    /* Starts the threads that are there from the beginning. Returns 0 or a negative code. */
    int (*start)(struct shared *s, struct cw_err *err);
    /* A new connection; it has one user, to whom others may be added. Returns 0, or a negative code
     * after which it is closed. May let go before that. */
    int (*opened)(struct shared *s, struct shared_conn *c);
    /* It has output, nobody writes it, nothing is left. May let go; c stays. */
    void (*output)(struct shared *s, struct shared_conn *c);
    /* It was held and may be read again. */
    void (*resume)(struct shared *s, struct shared_conn *c);
    /* It has ended, and its socket was shut down: who waits for it is to release it. */
    void (*ended)(struct shared *s, struct shared_conn *c);
    /* All threads are to end. */
    void (*stopping)(struct shared *s);
};

struct shared {
    const struct shared_ops *ops;
    struct relay_engine_config config;
    struct cw_relay_stats *stats;
    pthread_mutex_t lock;
    struct shared_conns conns;
    struct shared_conns
        dead; /* closed for the core; their sockets are closed outside of the lock */
    int held; /* connections that are */
    bool stops;
    int stop_fd;
    int tick_ms; /* until the core is told that time passes; of the thread that called run */
    struct relay_spare spare;
    int threads; /* running */
    pthread_cond_t all_ended;
    bool any_ended;
    pthread_t last_ended; /* not joined yet */
    uint64_t counted_ns;  /* when context switches were counted */
};

/* The ops of such an engine; its `open` calls this one. */
int shared_open(struct relay_engine **engine, const struct shared_ops *ops,
                const struct relay_engine_config *config, struct cw_err *err);
int shared_run(struct relay_engine *e, struct cw_err *err);
void shared_stop(struct relay_engine *e);
void shared_close(struct relay_engine *e);

/* A thread with a small stack and no signals. Returns 0 or a negative code. [lock] */
int shared_thread_start(struct shared *s, void *(*body)(void *), void *arg, struct cw_err *err);
/* The last that a thread does. [lock, which is released] */
void shared_thread_end(struct shared *s);

/* Takes the mutex. */
void shared_enter(struct shared *s);
/* Sees to what the core has for its connections, releases the mutex, closes sockets. */
void shared_leave(struct shared *s);
/* The first part of it. [lock, lets go] */
void shared_flush(struct shared *s);

/* Marks it to be closed. [lock] */
void shared_end(struct shared *s, struct shared_conn *c, const char *why);
/* A user lets go of it. [lock] */
void shared_release(struct shared *s, struct shared_conn *c);

/* Whether it may be read now. [lock] */
bool shared_wants_input(struct shared *s, struct shared_conn *c, uint64_t now_ns);
/* Reads into the core's space, looking again for spin_ns where there is nothing. Returns how many
 * bytes are there for shared_input, or 0: nothing came, or it has ended. [lock, lets go] */
size_t shared_fill(struct shared *s, struct shared_conn *c, uint64_t spin_ns, struct cw_spin *spin);
/* The core acts on them; sees to what came of it. [lock, lets go] */
void shared_input(struct shared *s, struct shared_conn *c, size_t size);
/* Writes what there is, as long as the socket takes it; c->left says that there is more. Nobody
 * else writes it now. [lock, lets go] */
void shared_write(struct shared *s, struct shared_conn *c);

/* A condition whose times are those of cw_clock_ns. */
void shared_cond_init(pthread_cond_t *cond);
/* Waits for it, at most so long. [lock, lets go] */
void shared_cond_wait(struct shared *s, pthread_cond_t *cond, uint64_t ns);

#endif
