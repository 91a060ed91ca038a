/* The programs that the ranks run: drawn from a seed, over the UCP functions that MPICH calls. Each
 * keeps a state into which goes all that it sees, and on which depends what it does next: whatever
 * differs once shows in all that follows. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "tests/sim/process.h"

#include <stdint.h>
#include <ucp/api/ucp.h>

#define PROGRAM_TAGS 4u    /* the program's own tags */
#define PROGRAM_OPEN_MAX 8 /* receives and synchronous sends under way */
#define PROGRAM_ACTIVE_HEADER 16u

/* A tag as the messages carry it: the program's tag, the sender, whether it is a closing message,
 * and the message's number at its sender, which no receive looks at. */
#define PROGRAM_TAG_CLOSING (1ull << 15)
#define PROGRAM_MASK_TAG 0x00ffull
#define PROGRAM_MASK_SRC 0x7f00ull
static inline uint64_t program_tag(uint32_t user, uint32_t src, uint64_t seq)
{
    return user | (uint64_t)src << 8 | seq << 16;
}
static inline uint32_t program_tag_user(uint64_t tag)
{
    return tag & PROGRAM_MASK_TAG & (PROGRAM_TAGS - 1);
}
static inline uint32_t program_tag_src(uint64_t tag)
{
    return (tag & PROGRAM_MASK_SRC) >> 8;
}
static inline uint32_t program_tag_seq(uint64_t tag)
{
    return (uint32_t)(tag >> 16);
}

/* A receive, or a synchronous send, that is under way. */
struct program_request {
    bool open;
    bool done;
    bool receiving;
    bool cancelled; /* it was asked to be */
    uint64_t act;
    uint64_t order; /* ORDERED: its place in the schedule */
    void *user;
    uint8_t *buffer;
    size_t capacity;
    bool generic;
    uint64_t tag; /* as posted */
    uint64_t mask;
    uint64_t got; /* of the message */
    uint64_t size;
};

/* What is to come before the program may end. */
struct program_due {
    uint64_t tagged;
    uint64_t active;
};

struct program {
    struct sim_process *process;
    ucp_worker_h worker;
    uint64_t random;
    uint64_t hash;     /* of all that it saw */
    uint64_t data;     /* of what it received alone */
    uint64_t data_sum; /* of active messages, whose order among senders is open */
    uint32_t ranks;
    uint32_t seq;
    uint32_t polls; /* since others had their turn last, at step `polls_step` */
    uint32_t polls_step;
    ucp_ep_h ep[16];
    struct program_request request[PROGRAM_OPEN_MAX];
    struct program_due due_to[16]; /* what each rank will be sent because of us */
    struct program_due due;        /* what we will be sent */
    struct program_due came;
    struct active *left; /* its handler has not asked for its data */
};

void program_main(void *process);
/* racy.c, ordered.c: what comes between opening and closing. */
void program_run_racy(struct program *g);
void program_run_ordered(struct program *g);

/* --- steps --- */
uint64_t program_choose(struct program *g, uint64_t bound); /* by random numbers and the state */
void program_see(struct program *g, uint64_t what);
void program_send(struct program *g, uint32_t kind, uint32_t dst, uint32_t user, size_t size);
void program_send_active(struct program *g, uint32_t dst, size_t size, uint32_t hops, bool tagged);
/* NULL when as many are open as can be. */
struct program_request *program_receive(struct program *g, uint64_t tag, uint64_t mask,
                                        size_t capacity, bool generic);
void program_cancel(struct program *g, struct program_request *request);
/* With `take`, what is found is received: then the receive, else NULL. */
struct program_request *program_probe(struct program *g, uint64_t tag, uint64_t mask, bool take);
void program_read_clock(struct program *g);
bool program_poll(struct program *g); /* true when something happened */
bool program_test(struct program *g);
/* Polls until it is done, and lets go of it. */
void program_wait(struct program *g, struct program_request *request);
size_t program_size(struct program *g); /* of a message */
/* All that was sent has come, here too. */
void program_close(struct program *g);

/* --- what the steps have in common --- */
/* Of the process that runs: the library, and its poll clock. */
static inline const struct library *program_library(void)
{
    return process_now()->library;
}
static inline uint64_t program_polls(void)
{
    return program_library()->device_look().polls;
}
#define PROGRAM_ACTIVE_ID 3 /* of active messages of one piece */
#define PROGRAM_PARTS_ID 4  /* of those of a header and data */
uint64_t program_mix(uint64_t hash, uint64_t what);
/* An act is about to be made; `clock` and `hash` are those of now. */
void program_acted(struct program *g, struct record_act act, uint64_t clock, uint64_t hash);
void program_happened(struct program *g, struct record_event event);
/* The device has counted as many acts as were recorded. */
void program_check_count(const struct program *g);
/* NULL when all are open but `spare`. */
struct program_request *program_open(struct program *g, int spare);
/* One message, as an act. The tag of an active message: so many of its bytes are its header. */
void program_put(struct program *g, uint32_t kind, uint32_t dst, uint64_t tag, const void *bytes,
                 size_t size);
/* DIVERGING: the send that is to be another one than the first time. Returns true when it is left
 * out; never an active message, for that one is missing cannot always be told. */
/* An active message to the rank itself: neither an act nor an event. */
bool program_is_own(const struct program *g, uint32_t kind, uint32_t dst);
bool program_alter(struct program *g, uint32_t *dst, bool tagged, size_t *size);
/* A program that was changed to do something else may be told anything. */
#define program_wrong(g, ...) ((g)->process->record.altered ? (void)0 : sim_fail(__VA_ARGS__))
ucs_status_t program_on_active(void *arg, void *data, size_t size, ucp_ep_h ep, unsigned flags);
ucs_status_t program_on_parts(void *arg, const void *header, size_t header_size, void *data,
                              size_t size, const ucp_am_recv_param_t *param);
/* Asks for the data of an active message that its handler has left. */
void program_ask_left(struct program *g);

#endif
