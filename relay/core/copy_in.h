/* The copies of other relays' logs that we keep: what their sessions bring becomes the memory that
 * their successors begin with. docs/protocol.md, "Copies". */
#ifndef RELAY_COPY_IN_H
#define RELAY_COPY_IN_H

#include "relay/core/core.h"
#include "relay/core/job.h"
#include "relay/log/held.h"

/* Of one relay. All zero: there is no memory for it. */
struct copy_in {
    struct ledger_memory *memory;
    struct relay_region region;
    struct held held;         /* while it is open */
    bool open;                /* a session has come, and it is not for the successor yet */
    bool closed;              /* it is, or was: nothing is taken any more */
    struct relay_job *job;    /* whose relay it is */
    struct relay_conn *conn;  /* the session; NULL: none */
    struct relay_block *part; /* that is coming in ... */
    uint32_t size;            /* ... and how much of it is here */
    uint64_t commit;          /* the part's ... */
    uint64_t whole;           /* ... and the last one that is in the memory */
    uint64_t number;          /* of the COPY by which the relay sends it */
};

/* The memory for them, by the number of the relay. False: none to keep account of it. The caller
 * frees set->copies. */
bool copy_in_open(struct job_set *set, const struct relay_copy_memory memory[CW_RELAYS_MAX]);
/* HELLO with COPY of a relay that has proven who it is. Returns 0, or a refusal with its reason in
 * *err. */
int copy_in_hello(struct relay_job *job, const struct cw_hello *hello, struct cw_err *err);
/* Its session is on this connection. */
void copy_in_up(struct relay_conn *conn, struct relay_job *job, const struct cw_hello *hello);
/* The session of a relay; NULL: there is none. */
struct relay_conn *copy_in_session(const struct relay_job *job, uint32_t relay);
/* It goes on over another connection. */
void copy_in_replace(struct relay_job *job, const struct relay_conn *old, struct relay_conn *conn);
/* The session is over. `why` NULL: nobody need know. */
void copy_in_down(struct relay_conn *conn, const char *why);
/* COPY_PART came, and then its bytes. */
void copy_in_part(struct relay_conn *conn, uint64_t commit);
void copy_in_input(struct relay_conn *conn, const uint8_t *at, uint32_t size);
/* COPY_CLOSE. */
struct cw_copy_closed copy_in_close(struct relay_job *job, const struct cw_copy_close *close);
/* The job ends. */
void copy_in_end(struct relay_job *job);
/* Memory that can go; false: none. */
bool copy_in_next_surplus(struct job_set *set, struct relay_pages *pages);

#endif
