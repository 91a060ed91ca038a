/* What each process did and was handed, and what must hold of it. */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum record_type {
    RECORD_SEND = 1, /* `kind` is that of the message */
    RECORD_RECV,
    RECORD_MRECV,
    RECORD_CANCEL,
    RECORD_PROBE, /* that found something */
};

/* `hash` is the program's state: all that it has seen. */
struct record_act {
    uint32_t type;
    uint32_t kind;
    uint32_t dst;
    uint32_t seq; /* SEND: of the sender */
    uint64_t tag;
    uint64_t mask;
    uint64_t size; /* or capacity */
    uint64_t clock;
    uint64_t hash;
};

enum record_event_type { RECORD_RECEIVED = 1, RECORD_ACTIVE, RECORD_SENT, RECORD_CANCELED };

struct record_event {
    uint32_t type;
    uint32_t status;
    uint64_t tag; /* names sender and message; of an active message: made of its bytes */
    uint64_t size;
    uint64_t act; /* number of the receive, probe or send that it ends */
    uint64_t clock;
    uint64_t hash;
};

struct record {
    struct record_act *acts;
    size_t act_count;
    size_t act_size;
    struct record_event *events;
    size_t event_count;
    size_t event_size;
    bool up;             /* its relay let it in */
    uint64_t acts_known; /* when it did: acts and events to repeat */
    uint64_t events_known;
    bool probing; /* it asks: its relay may know the answer, and it not yet */
    bool polling; /* it takes events: its relay may know of more than it has seen */
    bool live;
    bool whole; /* the program has come to its end */
    bool altered;
    uint64_t altered_act;
    bool other_bytes; /* what it sends is not what it is to send */
    uint64_t hash;    /* at its end */
};

struct sim_process;

void record_act(struct sim_process *p, const struct record_act *act);
void record_event(struct sim_process *p, const struct record_event *event);
void record_fini(struct record *r);

/* What the dispatcher has read of its output: a line for each event, which others may rely on. */
struct process_line;
void record_line_seen(struct sim_process *p, const struct process_line *line);

/* Its relay let this incarnation in, and knows so much of those before. */
void record_up(struct sim_process *p, uint64_t acts, uint64_t events);
void record_live(struct sim_process *p);

/* The job has ended well: every message came once, whole and in order. */
void record_check_all(void);

#endif
