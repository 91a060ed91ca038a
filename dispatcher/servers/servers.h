/* The job's checkpoint servers: starting its own, the sessions with all, fetching images. All in
 * the job's loop, which never waits for one of them. A session that breaks is opened again, for as
 * long as the job runs, or until its server is gone. */
#ifndef DISPATCHER_SERVERS_H
#define DISPATCHER_SERVERS_H

#include "common/frame.h"
#include "common/loop.h"

#include <sys/types.h>

#define SERVERS_PAUSE_MIN_NS                                                                       \
    50000000ull /* before a session is tried again; doubled each time ... */
#define SERVERS_PAUSE_MAX_NS 5000000000ull /* ... up to this */
#define SERVERS_OPEN_MS 10000              /* for one try */
#define SERVERS_FETCH_MS 20000             /* until an image begins to come */
#define SERVERS_TOLD_MAX 65536u            /* bytes that one is told before it takes any */
#define SERVERS_FETCHES_MAX 16u            /* at a time; further ones wait */

struct servers;

/* What they tell, in the job's loop. A server is known by its number. */
struct servers_events {
    void (*opens)(void *ctx, uint32_t server); /* what it holds follows */
    void (*held)(void *ctx, uint32_t server, const struct cw_stored *held);
    void (*held_end)(void *ctx, uint32_t server);
    void (*stored)(void *ctx, uint32_t server, const struct cw_stored *stored);
    /* There is no session with it; it is tried again. */
    void (*lost)(void *ctx, uint32_t server, const struct cw_err *err);
    /* The stream of an image can be read from this descriptor, which blocks and is the callee's;
     * -1: see `err`: CW_EAUTH: the server refuses this image; CW_ECLOSED, CW_EPROTO: the connection
     * broke; else there was no answer. */
    void (*fetched)(void *ctx, uint32_t rank, uint32_t number, int fd, const struct cw_err *err);
};

/* Everything borrowed. */
struct servers_config {
    struct loop *loop;
    const uint8_t *job_id; /* CW_ID_SIZE bytes */
    uint32_t ranks;
    const char *const *addresses; /* of servers that run already: `count` of them */
    uint32_t count;               /* 0: the job has its own: */
    uint32_t own;                 /* ... so many, at least 1, all with one key */
    const char *key_file;         /* of those that run; NULL: the file beside each one's socket */
    const uint8_t *key;           /* of our own: CW_KEY_SIZE bytes; NULL: drawn at random */
    const char *socket_dir;       /* of our only own one, where it is here; NULL: it is not */
    const char *host; /* it listens there over TCP too; borrowed for servers_new; NULL */
    /* Starts one of our own, which listens at `listen` besides ("": nowhere): servers_own_listens
     * follows, or who waits for that hears why not. */
    void (*start)(void *ctx, uint32_t server, const char *listen, const uint8_t key[CW_KEY_SIZE]);
    void *start_ctx;
    const struct servers_events *events;
    void *ctx;
};

/* Those that run already are connected to. NULL with *err set: CW_ENOMEM, CW_ESYS, CW_EINVAL,
 * CW_ENOTFOUND. */
struct servers *servers_new(const struct servers_config *config, struct cw_err *err);

/* Ends the sessions. NULL is allowed. */
void servers_free(struct servers *servers);

/* Where a rank on the machine of the server reaches it, or one elsewhere. */
const char *servers_address(const struct servers *servers, uint32_t server, bool is_near);
/* ... with this key, which is the same at all of our own. */
void servers_rank_key(const struct servers *servers, uint32_t server, uint32_t rank,
                      uint32_t incarnation, uint8_t key[CW_KEY_SIZE]);

/* It is needed from now on: starts it, if it is our own, unless it was. */
void servers_want(struct servers *servers, uint32_t server);

/* One of our own listens: at a socket, and at `far`, of which other hosts know; "": there are none.
 * It is reached there, unless it is `here`. */
void servers_own_listens(struct servers *servers, uint32_t server, const char *local,
                         const char *far, bool here);

/* It will not be there any more: what is fetched from it has failed. */
void servers_gone(struct servers *servers, uint32_t server);

/* This image and all before it are of no use. */
void servers_drop(struct servers *servers, uint32_t server, uint32_t rank, uint32_t number);

/* fetched() comes, never from inside this call. Of a rank one at a time. */
void servers_fetch(struct servers *servers, uint32_t server, uint32_t rank, uint32_t number);

#endif
