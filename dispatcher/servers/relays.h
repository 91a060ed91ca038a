/* The job's relays: starting them, opening the job there, linking them, hearing of them, and ending
 * them. All in the job's loop, which never waits for one of them. */
#ifndef DISPATCHER_RELAYS_H
#define DISPATCHER_RELAYS_H

#include "common/frame.h"
#include "common/loop.h"

#include <sys/types.h>

#define RELAYS_START_NS 60000000000ull /* for all of them to be opened */

struct relays;

/* What relays tell, in the job's loop. A relay is known by its number. */
struct relays_events {
    void (*back)(void *ctx, uint32_t relay); /* one of our own listens again, after it had ended */
    void (*ready)(void *ctx);                /* the job is open at all, and they are linked */
    void (*failed)(void *ctx, const struct cw_err *err); /* ... or will never be; said once */
    void (*notice)(void *ctx, uint32_t relay, const struct cw_notice_body *notice);
    void (*stats)(void *ctx, const struct cw_stats *stats);
    void (*grown)(void *ctx, const struct cw_grown *grown);     /* unasked */
    void (*trimmed)(void *ctx, const struct cw_trim *trimmed);  /* the answer to relays_trim */
    void (*covered)(void *ctx, uint32_t relay, uint64_t token); /* the answer to relays_cover */
    void (*resumed)(void *ctx, uint32_t relay);                 /* its session goes on */
    void (*closed)(void *ctx, uint32_t relay, const struct cw_copy_closed *closed);
    void (*lost)(void *ctx, uint32_t relay, const struct cw_err *err); /* its session is over */
};

/* What starts relays of the job's own, and ends them with the job. */
struct relays_own {
    /* Begins to; relays_own_listens or _failed is to be told, maybe from inside. Errors:
     * CW_ECLOSED, CW_ELIMIT, CW_ENOMEM. */
    int (*start)(void *ctx, uint32_t relay, const uint8_t key[CW_KEY_SIZE], struct cw_err *err);
    void (*kill)(void *ctx, uint32_t relay); /* SIGKILL */
};

/* Everything borrowed. */
struct relays_config {
    struct loop *loop;
    const uint8_t *job_id; /* CW_ID_SIZE bytes */
    uint32_t ranks;
    uint32_t relays;              /* at least 1 */
    const char *const *addresses; /* of relays that run already; NULL: they are our own */
    const char *const *links; /* of those: [from * relays + to] is where that one reaches the other,
                                 or NULL, where the other connects; NULL: each is reached at its
                                 address, by all */
    const char *key_file;     /* of those; NULL: the file beside each one's socket */
    const uint8_t *key;       /* of our own: CW_KEY_SIZE bytes; NULL: drawn at random */
    bool take;                /* the relays have the job already, and nobody speaks for it */
    bool returns;             /* one of our own whose process ends is started again on its log */
    bool copies;              /* ... or elsewhere, on a copy at another one; those without ranks are
                                 there for copies alone */
    const uint8_t *homes;     /* each rank's relay; NULL: all have relay 0 */
    uint32_t hello_flags;     /* enum cw_hello_flag */
    uint32_t resume_ms; /* how long sessions of the job may be suspended; 0: they end at once */
    uint32_t orphan_ms; /* ... those with us, where that is longer, for another dispatcher */
    const struct relays_own *own;
    void *own_ctx;
    const struct relays_events *events;
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM, CW_ESYS. */
struct relays *relays_new(const struct relays_config *config, struct cw_err *err);

/* The job is not over: at the end its relays keep what they have of it. */
void relays_keep_job(struct relays *relays);

/* Ends the sessions. NULL is allowed. */
void relays_free(struct relays *relays);

/* Begins to open the job: ready() or failed() comes. Errors: CW_ESYS, CW_EINVAL, CW_ENOTFOUND. */
int relays_open(struct relays *relays, struct cw_err *err);

/* Takes what this relay has said until now. */
void relays_hear(struct relays *relays, uint32_t relay);

/* Whether one that ends may be started again: by us, or, of those that are not our own, by whoever
 * keeps it. How often this one of our own was until now. */
bool relays_may_return(const struct relays *relays);
uint32_t relays_restarts(const struct relays *relays, uint32_t relay);
/* As far as is known, it can be connected to: it is not our own, or its process listens. */
bool relays_listens(const struct relays *relays, uint32_t relay);
/* A drill, of our own: SIGKILL. */
void relays_kill(struct relays *relays, uint32_t relay);

/* Of our own: one listens, over a Unix socket and over TCP ("": not), which we reach over the
 * former if it is `here`; it has ended, and is started again; there will be none any more. */
void relays_own_listens(struct relays *relays, uint32_t relay, const char *local, const char *tcp,
                        bool here);
void relays_own_ended(struct relays *relays, uint32_t relay);
void relays_own_failed(struct relays *relays, uint32_t relay, const struct cw_err *err);

/* Of our own: its host is lost, and all waits for another process of it; or there will be none, and
 * nobody needs it. */
void relays_away(struct relays *relays, uint32_t relay);
void relays_drop(struct relays *relays, uint32_t relay);
/* That other process is started, and when it listens all are linked to it. Errors: as of
 * relays_own. */
int relays_start_again(struct relays *relays, uint32_t relay, struct cw_err *err);

/* Which others are to have copies of its log; and that one of these takes no more of it: closed()
 * is to come from there. */
void relays_copy(struct relays *relays, uint32_t relay, const struct cw_copy *copy);
void relays_copy_close(struct relays *relays, uint32_t at, const struct cw_copy_close *close);

/* Asks for one STATS of every rank. Returns how many ranks' are to come. */
uint32_t relays_ask_stats(struct relays *relays);
/* The sessions with all are open, or may be resumed. */
bool relays_are_there(const struct relays *relays);
/* The connection with this one broke, and the session is not resumed yet. */
bool relays_is_suspended(const struct relays *relays, uint32_t relay);

/* The process that played the rank has ended: its relay gives up its session, and says so. */
void relays_rank_end(struct relays *relays, uint32_t rank, uint32_t incarnation);

/* The rank is asked for an image: this can be lost. False: its relay is away. */
bool relays_checkpoint(struct relays *relays, const struct cw_checkpoint *checkpoint);
/* The image of this point is safe: trimmed() is to come, but may not. */
void relays_trim(struct relays *relays, uint32_t rank, const struct cw_point *point);

/* covered() comes when copies of its log have all that it and its ranks have done until it hears of
 * this. Of several before that only the last one may be answered. */
void relays_cover(struct relays *relays, uint32_t relay, uint64_t token);

/* A drill: the relay breaks a connection, as of CUT in docs/protocol.md. */
void relays_cut(struct relays *relays, uint32_t relay, uint32_t what);

/* The job ends: tells so. relays_are_told: all know of it that can be reached. */
void relays_end(struct relays *relays);
bool relays_are_told(const struct relays *relays);

/* Where we reach it; for messages. */
const char *relays_address(const struct relays *relays, uint32_t relay);
/* Where a process on its machine reaches it, or one elsewhere. */
const char *relays_address_for(const struct relays *relays, uint32_t relay, bool is_near);
/* Of all, with spaces between. */
void relays_addresses(const struct relays *relays, char *text, size_t size);
uint32_t relays_home(const struct relays *relays, uint32_t rank);
void relays_rank_key(const struct relays *relays, uint32_t rank, uint32_t incarnation,
                     uint8_t key[CW_KEY_SIZE]);

#endif
