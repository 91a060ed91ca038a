/* The core of images: of each rank, which images are known, what may become of them, and which one
 * its next process goes on from. What happens comes in as events; what is to be done comes out.
 * Pure: no I/O, no clock (times are given), no thread.
 *
 * An image is asked for, taken, stored, and trimmed to: once the rank's log begins at it, older
 * ones are of no use, and are dropped. Until the log is known to begin at a newer one, an image
 * stays. So there is at any time something to restart the rank from: an image at which the log
 * begins or which is newer, or the beginning.
 *
 * A rank that is restarted has the newest image of use fetched. Where only the connection broke, or
 * the server is away, the same one is fetched again: a bounded number of times. One that is damaged
 * or refused is given up at once, and an older one is taken, or the beginning. */
#ifndef DISPATCHER_IMAGES_H
#define DISPATCHER_IMAGES_H

#include "common/err.h"
#include "common/setup.h"
#include "dispatcher/job/image_policy.h"

#define IMAGES_KNOWN_MAX 6u             /* of a rank; the relay knows 4 points */
#define IMAGES_HELD_MAX 3u              /* a server holds of a rank; then the oldest but one goes */
#define IMAGES_TRANSFERS_MAX 2u         /* at a time to a server: more would share its disk */
#define IMAGES_GROUPS_MAX CW_RELAYS_MAX /* of ranks whose images are taken together */
#define IMAGES_SERVERS_MAX CW_IMAGE_SERVERS_MAX /* of a job */
#define IMAGES_TAKE_NS 60000000000ull /* a program that computes for so long makes no call */
#define IMAGES_ASK_NS 1000000000ull   /* one that does so leaves its turn to others then, ... */
#define IMAGES_LATE_MAX 16u           /* ... so many of a server: they may all answer at once */
#define IMAGES_ASK_AGAIN_NS 10000000000ull /* what was asked may have been lost on its way */
#define IMAGES_STORE_NS 600000000000ull    /* a copy that is not stored: given up ... */
#define IMAGES_STORE_BYTES_A_SECOND                                                                \
    1048576ull                              /* ... but large ones have more time, by this pace     \
                                             */
#define IMAGES_RETRY_MIN_NS 1000000000ull   /* after a failure; doubled each time ... */
#define IMAGES_RETRY_MAX_NS 300000000000ull /* ... up to this */
#define IMAGES_TRIM_NS 30000000000ull       /* a TRIM without an answer is said again */
#define IMAGES_BREAKS_MAX 6u                /* streams of one restart that break off */
#define IMAGES_AWAY_MAX                                                                            \
    24u /* fetches of one restart without an answer, each within SERVERS_FETCH_MS: some 10 min */
#define IMAGES_AWAY_BEGIN_MAX 2u /* ... where the rank can start from its beginning: 40 s */
#define IMAGES_FETCH_PAUSE_MIN_NS 100000000ull  /* before the next one; doubled each time ... */
#define IMAGES_FETCH_PAUSE_MAX_NS 5000000000ull /* ... up to this */

/* One that the server has, or had. */
struct images_image {
    uint32_t number; /* 0: no entry */
    struct cw_point point;
    uint64_t bytes;
    uint64_t stored_ns;
    uint64_t trim_ns; /* TRIM was sent; 0: it was not */
    uint32_t trims;   /* ... so often */
    bool placed;      /* it is known where its process was in its output, its input and so on */
    uint32_t set;     /* of its group; 0: none */
    uint32_t wanted;  /* servers that are to have it, as bits */
    uint32_t held;    /* ... that have it, as far as is known */
    uint32_t listed;  /* ... and tell of it just now */
    bool whole;       /* all had it that are to: it is stored */
    bool unusable;
};

enum images_request {
    IMAGES_IDLE,
    IMAGES_ASKED, /* CHECKPOINT was sent */
    IMAGES_LATE,  /* likewise, and the rank has lost its turn */
    IMAGES_TAKEN, /* it is being copied */
    IMAGES_REQUESTS,
};

/* Of a rank that is to be restarted. */
enum images_restart {
    IMAGES_NO_RESTART,
    IMAGES_RESTART_DUE, /* IMAGES_FETCH, IMAGES_BEGIN or IMAGES_LOST is to come */
    IMAGES_FETCHING,
};

/* What became of the image that a person asked for. */
enum images_demand {
    IMAGES_NOT_WANTED,
    IMAGES_WANTED,
    IMAGES_DONE, /* stored, and of use */
    IMAGES_FAILED,
};

struct images_rank {
    struct images_image image[IMAGES_KNOWN_MAX]; /* in no order */
    uint32_t servers;                            /* that the next ones go to, as bits; 0: none */
    uint32_t last;                               /* number that was given last */
    uint32_t begin;   /* the image at which the log is known to begin; 0: the beginning */
    uint32_t dropped; /* the server was told to drop all up to this */
    bool live;        /* it may be asked */
    uint32_t incarnation;
    enum images_request request;
    bool stuck;      /* the copy of one that was given up may be on its way yet */
    uint32_t number; /* of the request; it stays */
    uint32_t base;   /* likewise */
    uint32_t asked;  /* likewise: servers that it goes to */
    uint32_t set;    /* likewise: of its group; 0: none */
    uint32_t joined; /* the last set that it was asked for */
    uint32_t voided; /* images up to this that are heard of from now on are of no use */
    uint64_t asked_ns;
    uint64_t again_ns; /* it is asked again then */
    uint64_t taken_ns;
    uint64_t stall_ns;
    uint64_t retry_ns; /* not before this */
    uint64_t pause_ns; /* after the last failure; 0: there was none */
    uint64_t log_bytes;
    uint64_t log_taken; /* log_bytes when the last image was taken, as far as it is there yet */
    uint64_t log_since; /* what it had grown by when it was trimmed ... */
    bool log_trimmed;   /* ... which was after log_bytes */
    struct image_history history;
    enum images_demand demand;
    uint32_t demanded;         /* number of the image for that */
    char why[CW_ERR_TEXT_MAX]; /* its last image failed; "": none has */
    uint32_t from;             /* what its process went on from; 0: its beginning */
    enum images_restart restart;
    uint64_t fetch_ns; /* not before this */
    uint32_t breaks;   /* since it crashed: streams that broke off, */
    uint32_t away;     /* and fetches without an answer */
};

struct images_server {
    bool up;                            /* its session is open, and all that it holds was told */
    uint32_t requests[IMAGES_REQUESTS]; /* of its ranks, in each state but IMAGES_IDLE */
    uint32_t urgent; /* in this pass: ranks that come before others, and are to be asked yet */
};

/* What is to be done next; each comes once. */
enum images_action {
    IMAGES_NOTHING,
    IMAGES_ASK,     /* order: rank, number, base, servers */
    IMAGES_TRIM,    /* order: rank, number, point; images_trimmed follows, or it comes again */
    IMAGES_DROP,    /* order: rank, number, servers: this one and all before it */
    IMAGES_GIVE_UP, /* order: rank, number, why: it was not taken or stored in time */
    IMAGES_FETCH,   /* order: rank, number, servers: what it is restarted from, at one of these */
    IMAGES_BEGIN,   /* order: rank: it is restarted from its beginning */
    IMAGES_LOST,    /* order: rank: nothing is left to restart it from */
};

struct images_order {
    uint32_t rank;
    uint32_t number;
    uint32_t base;
    uint32_t servers; /* as bits */
    uint32_t set;     /* ASK, TRIM: that it belongs to; 0: none */
    struct cw_point point;
    const char *why; /* a constant */
};

struct images_config {
    uint32_t ranks;
    uint32_t servers;        /* at least 1 */
    const uint8_t *of_rank;  /* which of them each rank has first; NULL: they have them in turn */
    const uint8_t *of_group; /* images are taken in sets: which group each rank is of, below
                              * IMAGES_GROUPS_MAX; NULL: they are not */
    struct image_policy policy;
};

/* Ranks whose images are taken together: dispatcher/job/image_sets.h. */
struct images_group {
    uint32_t begun; /* sets */
    uint32_t whole; /* the newest that is, as of this pass; 0: none */
};

struct images {
    struct images_config config;
    struct images_rank *rank;
    struct images_server server[IMAGES_SERVERS_MAX];
    struct images_group group[IMAGES_GROUPS_MAX];
    uint64_t start_ns;
    uint32_t crashes;
    uint64_t mtbf_ns; /* of this pass */
    uint64_t due_ns;  /* when there may be something new by time alone */
    uint64_t pass_due_ns;
    bool changed;    /* since the last pass began */
    uint32_t first;  /* rank with which the next pass begins */
    bool passing;    /* a pass is under way: */
    uint32_t passed; /* ranks of it */
    bool skipped;    /* a rank of it was due and found no room: the next begins there */
    uint32_t skipped_rank;
};

/* `rank` is the caller's array of zeroed entries. */
void images_init(struct images *images, const struct images_config *config,
                 struct images_rank *rank, uint64_t now_ns);

/* Before anything else is said of the rank: a dispatcher before us gave this number to an image of
 * it; `begins`: at which the log begins, or a later one. */
void images_return(struct images *images, uint32_t rank, uint32_t number, bool begins);

/* --- ranks --- */
/* It lives, and has nothing to repeat: it can be asked. */
void images_rank_live(struct images *images, uint32_t rank, uint32_t incarnation, uint64_t now_ns);
/* It cannot any more: it has crashed, or is about to end well. What was asked for is not waited
 * for. */
void images_rank_down(struct images *images, uint32_t rank, bool crashed);
/* What its relay keeps of it. */
void images_log(struct images *images, uint32_t rank, uint64_t bytes);

/* --- an image on its way --- */
/* The request could not be passed on. It is made again soon. */
void images_not_asked(struct images *images, uint32_t rank, uint64_t now_ns);
/* Returns false for one that nobody waits for. */
bool images_taken(struct images *images, uint32_t rank, const struct cw_image_report *report,
                  uint64_t now_ns);
/* Well or not (`why`). Returns false when that is no news. */
bool images_ended(struct images *images, uint32_t rank, const struct cw_image_report *report,
                  const char *why, uint64_t now_ns);
/* This server has it. Returns whether all now have it that are to: false also when that was known,
 * or makes no sense. */
bool images_stored(struct images *images, uint32_t server, const struct cw_stored *stored,
                   uint64_t now_ns);
/* The places of this one in the rank's output and so on are known. */
void images_placed(struct images *images, uint32_t rank, uint32_t number);

/* --- what becomes of stored ones --- */
/* The relay's answer to TRIM. Returns the number of the image at which the log begins now; 0:
 * nothing has changed. */
uint32_t images_trimmed(struct images *images, const struct cw_trim *trimmed);
/* No process can go on from it; `why` is NULL where nobody is to know. Of none (0): why there will
 * be none. */
void images_fail(struct images *images, uint32_t rank, uint32_t number, const char *why);

/* --- servers --- */
/* The session with it is open, and begins with what it holds: images_held for each, and the end. */
void images_server_opens(struct images *images, uint32_t server);
void images_held(struct images *images, uint32_t server, const struct cw_stored *held,
                 uint64_t now_ns);
void images_held_end(struct images *images, uint32_t server);
void images_server_lost(struct images *images, uint32_t server);
/* It will not be there any more: of this rank, what it had is gone, and the next ones do not go
 * there. To be said of each rank. Returns the number of the newest image if that is gone with it,
 * else 0. */
uint32_t images_server_gone(struct images *images, uint32_t server, uint32_t rank);
/* The rank's next images go to these, as bits (0: none are taken). Where its newest one is not at
 * all of them, the next is due at once; it refers to none that one of them lacks. */
void images_assign(struct images *images, uint32_t rank, uint32_t servers);
/* What is to be fetched from it again is fetched now: it is there, or will not come back. */
void images_hurry(struct images *images, uint32_t server);
/* An image is due of a rank that has this server. */
bool images_wants_server(const struct images *images, uint32_t server, uint64_t now_ns);

/* --- restarts --- */
/* The rank is to be restarted: IMAGES_FETCH, IMAGES_BEGIN or IMAGES_LOST comes. */
void images_restart(struct images *images, uint32_t rank);
/* The fetch has come to its end, well or not. Returns false for one that nobody waits for. */
bool images_fetched(struct images *images, uint32_t rank);
/* This server does not have the image as it was: that counts for held there no more. Returns
 * whether another one has it. */
bool images_lacks(struct images *images, uint32_t rank, uint32_t number, uint32_t server);
/* An image did not come whole, or (`away`) its server did not answer: returns true when it is
 * fetched again after images_restart. False: that was tried too often; images_fail is to follow.
 * *tries gets how often. */
bool images_broke_off(struct images *images, uint32_t rank, bool away, uint64_t now_ns,
                      uint32_t *tries);
/* A process of the rank has started, from this image. */
void images_started(struct images *images, uint32_t rank, uint32_t number);
/* It goes on, or has crashed: what went wrong before is over. */
void images_restarted(struct images *images, uint32_t rank);

/* --- questions --- */
/* A person wants an image of each rank that lives, now. */
void images_demand_all(struct images *images);
/* None can come, unless it is on its way. */
void images_demand_fail(struct images *images, uint32_t rank, const char *why);

/* What the rank can be restarted from: the number of an image; 0: its beginning. Returns false when
 * nothing is left. */
bool images_choose(const struct images *images, uint32_t rank, uint32_t *number);

/* The entry of an image that is known and was not found unusable, or NULL; of number 0 the newest.
 */
const struct images_image *images_find(const struct images *images, uint32_t rank, uint32_t number);

/* It is stored, and of use once its places are known. */
bool images_waits_for_place(const struct images_image *image);

/* When images_next may have something new by time alone; UINT64_MAX: never. */
uint64_t images_deadline_ns(const struct images *images);
enum images_action images_next(struct images *images, uint64_t now_ns, struct images_order *order);

#endif
