/* The states of jobs, ranks and sessions in the ledger, for who comes after us:
 * docs/log-format.md. */
#ifndef RELAY_SAVED_H
#define RELAY_SAVED_H

#include "relay/core/job.h"

#define SAVED_NONE UINT32_MAX

struct saved_job {
    uint8_t id[CW_ID_SIZE];
    uint64_t resume_ns;
    uint64_t orphan_ns;
    uint32_t ranks;
    uint32_t channel;
    struct chain_end told;
    uint32_t covers; /* a COVER is to be answered ... */
    uint64_t cover;  /* ... with this token */
};

struct saved_rank {
    uint32_t job; /* its cell */
    uint32_t rank;
    uint32_t incarnation;
    uint32_t ended;
    uint64_t acts;
    uint64_t act_clock;
    uint64_t room;
    uint64_t handed;
    struct chain_end records;
    struct chain_end payload;
    uint32_t payload_solid; /* before this segment of it some may have been let go of */
    uint32_t kept;          /* 1: its log is */
    struct log_points_left points;
    struct log_decided_left decided;
    struct cw_follow follow;
    uint32_t lost;
    /* the message that it is sending */
    uint32_t to;   /* the rank whose mailbox it goes to; SAVED_NONE: to none */
    uint32_t link; /* the relay that it is forwarded to; SAVED_NONE */
    uint64_t left;
    uint64_t record; /* of the message in that mailbox's log */
};

struct saved_conn {
    uint32_t job; /* its cell */
    uint32_t state;
    uint32_t rank;   /* or SAVED_NONE */
    uint32_t peer;   /* of a link */
    uint32_t source; /* the rank whose message the payload at hand is of, or SAVED_NONE */
    uint32_t payload_left;
    struct cw_session session;
    uint64_t acted; /* bytes of the other side's stream */
    struct out_saved out;
    uint32_t owes_ack;
};

/* For ledger_return and conn_outlive. */
void saved_job(const void *job, void *body);
void saved_rank(const void *rank, void *body);
void saved_conn(const void *conn, void *body);
/* From now on they outlive the process, where there is a ledger. False: there is no room. */
bool saved_enter_job(struct relay_job *job);
bool saved_enter_rank(struct relay_rank *rank);

#endif
