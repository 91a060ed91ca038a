/* Jobs: the ranks that may speak to each other, under one dispatcher; and where they are at home.
 */
#ifndef RELAY_JOB_H
#define RELAY_JOB_H

#include "relay/core/requests.h"
#include "relay/core/transfer.h"

#include "common/cred.h"

#define JOB_CANCELS_MAX 64u /* further ones are forgotten: the engine finds out by itself */

/* What a relay keeps of one rank. Of a rank of another relay only what it sends. */
struct relay_rank {
    struct relay_mailbox mailbox;
    struct transfer transfer;
};

/* A job's link to another relay. */
struct job_link {
    struct relay_conn *conn; /* NULL while there is none */
    struct relay_dial *dial; /* how we open it; NULL: the other relay does */
    bool wanted;             /* the engine is to be asked to open it ... */
    bool asked;              /* ... and has been */
    bool linked;             /* it is there, or was: it is not opened again */
    uint32_t asks;           /* how often it was asked for */
    uint32_t incarnation;    /* of the other relay, as far as we know; 0: of any */
};

/* The ranks that share a channel memory, by their places there: those at home here. */
struct job_group {
    uint32_t count; /* 0: not known yet; above CW_CHANNEL_RANKS_MAX: there is no such memory */
    uint16_t rank[CW_CHANNEL_RANKS_MAX];
};

/* See decisions.h. */
struct decisions {
    struct relay_channel source;
    struct cw_followed memory; /* of the job at hand */
};

/* Who has copies of our log, and how much of it: copy_out.h. */
struct copy_out {
    uint64_t number; /* of the last COPY; 0: none came */
    uint32_t count;
    uint32_t peer[CW_COPIES_MAX];
    uint64_t acked[CW_COPIES_MAX]; /* the last commit that each has */
    uint64_t whole;                /* the first one with which all that is was sent; 0: none yet */
    struct relay_block *block;     /* that parts are made in, one behind the other; NULL: none */
    uint32_t used;                 /* bytes of it */
};

struct copy_in;

/* All jobs of a core, and what they share. */
struct job_set {
    struct decisions *decisions;
    struct relay_memory *memory;
    struct conn_set *conns;
    struct mailbox_shared *shared;
    const uint8_t *key; /* the relay key */
    uint32_t incarnation;
    struct copy_in *copies;                /* CW_RELAYS_MAX of them; NULL: none is kept here */
    void (*on_end)(struct relay_job *job); /* a job ends, and all of it is still there */
    LIST_HEAD(, relay_job) all;
    uint32_t count;
    uint32_t ranks; /* of all jobs */
    uint32_t dials; /* links that are wanted */
    uint32_t cancel_first;
    uint32_t cancel_count;
    uint8_t cancelled[JOB_CANCELS_MAX][CW_ID_SIZE]; /* a ring: jobs that ended amid opening links */
    bool relieving; /* a job's memory, or log, is being given up for another's sake: no other is */
};

struct relay_job {
    LIST_ENTRY(relay_job) of_set;
    struct job_set *set;
    struct relay_pool *pool; /* all that is held for the job */
    struct relay_conn *dispatcher;
    uint8_t id[CW_ID_SIZE];
    uint8_t key[CW_KEY_SIZE];
    uint32_t ranks;
    bool log;                   /* ranks may be started again */
    bool channel;               /* each rank is its own mailbox */
    bool images;                /* ... from images, to whose points their logs are trimmed */
    uint64_t resume_ns;         /* how long its sessions may be suspended; 0: they are not */
    uint64_t orphan_ns;         /* ... that of its dispatcher, which another one may take over */
    struct relay_rank **ranked; /* by number; NULL until first used */
    struct job_group group;

    /* of several relays */
    uint32_t relays;
    uint32_t self;    /* our number among them */
    uint8_t *homes;   /* the relay of each rank; NULL: we are alone */
    uint32_t routed;  /* ranks whose homes the dispatcher has told */
    bool settled;     /* a rank came, or a link: the homes stay as they are */
    bool told_linked; /* the dispatcher was told that all links are there */
    struct job_link links[CW_RELAYS_MAX];
    struct job_link copies[CW_RELAYS_MAX]; /* sessions with those that have copies of our log */
    struct copy_out copy_out;
    uint64_t cover; /* the token of a COVER that is to be answered ... */
    bool covers;    /* ... if there is one */

    /* where it outlives the process */
    struct ledger_entry entry;
    struct chain told; /* the ROUTE and LINK frames of its dispatcher */
};

struct relay_job *job_find(const struct job_set *set, const uint8_t id[CW_ID_SIZE]);
/* NULL without memory. There are fewer than RELAY_JOBS_MAX, and at most CW_RANKS_MAX ranks. */
struct relay_job *job_new(struct job_set *set, const uint8_t id[CW_ID_SIZE], uint32_t ranks);
void job_free(struct relay_job *job);

void job_set_images(struct relay_job *job, bool images);

/* Tells the dispatcher, if there is one. */
void job_notice(struct relay_job *job, uint32_t code, uint32_t rank, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* --- connections */
/* It has proven that it belongs to the job. */
void job_join(struct relay_job *job, struct relay_conn *conn);
/* It does not play its rank any more, if it did. */
void job_detach(struct relay_conn *conn);

/* --- ranks */
/* The number of a rank's home relay, and whether that is us. */
static inline uint32_t job_home(const struct relay_job *job, uint32_t rank)
{
    return job->homes ? job->homes[rank] : job->self;
}
static inline bool job_is_home(const struct relay_job *job, uint32_t rank)
{
    return job_home(job, rank) == job->self;
}
/* What is kept of a rank, made at first use; NULL without memory. */
struct relay_rank *job_rank(struct relay_job *job, uint32_t rank);
/* The same for one that was left in a cell of the ledger. */
struct relay_rank *job_rank_return(struct relay_job *job, uint32_t rank, uint32_t cell);

/* --- logs */
/* Gives a rank's log up: it cannot be started again; the dispatcher is told. Nothing happens where
 * none is kept. */
void job_unlog(struct relay_mailbox *mailbox, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
