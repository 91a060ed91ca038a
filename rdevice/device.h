/* The R-device: a rank's life with its home relay, docs/protocol.md. One per process; MPICH calls
 * it under its lock, so that one thread at a time is inside. It knows nothing of UCP; ucp.c stands
 * on it. Whatever goes wrong ends the process, after a report to the dispatcher. */
#ifndef RDEVICE_DEVICE_H
#define RDEVICE_DEVICE_H

#include "common/setup.h"
#include "rdevice/act.h"
#include "rdevice/checkpoint.h"
#include "rdevice/exchange.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define DEVICE_PIECES_MAX EXCHANGE_PIECES_MAX /* vectors a message may be gathered from */

/* device.c's own. Others use the functions below. */
struct device {
    struct cw_setup setup;
    int control_fd; /* to the dispatcher */
    struct exchange exchange;
    struct checkpoint checkpoint;
    uint64_t skip; /* bytes of the message at hand that the relay has already */
    pthread_t thread;
    bool threads; /* more than one thread calls */
    bool leaves;  /* MPI_Finalize has nothing more to send */
    uint8_t setup_record[CW_SETUP_MAX];
};

#define DEVICE_BEFORE                                                                              \
    {                                                                                              \
        .control_fd = -1, .exchange = {.session = SESSION_BEFORE }                                 \
    }
extern struct device device;

/* Reads the setup and connects. */
void device_open(void);
/* BYE; everything is at the relay when it returns. */
void device_close(void);

/* Also before device_open() and after device_close(). */
static inline bool device_is_open(void)
{
    return session_is_open(&device.exchange.session);
}

static inline uint32_t device_rank(void)
{
    return device.setup.rank;
}

static inline uint32_t device_ranks(void)
{
    return device.setup.ranks;
}

/* The poll clock: calls for progress, and probes. */
static inline uint64_t device_polls(void)
{
    return journal_polls(&device.exchange.journal);
}

/* Sends, receives, probes that found, and cancels, of all incarnations. */
static inline uint64_t device_acts(void)
{
    return journal_acts(&device.exchange.journal);
}

/* Requests of the program that are under way; to be set up once. */
static inline struct request_table *device_requests(void)
{
    return &device.exchange.requests;
}

/* --- messages, receives and probes --- */

/* Sends one message; it is written to the relay when this returns. See act_send(). */
void device_send(const struct act_target *to, const struct iovec *pieces, int count);
/* The same in steps: the first chunk of `total` bytes, then the others. */
void device_send_first(const struct act_target *to, uint64_t total, const void *first, size_t size);
void device_send_more(const void *bytes, size_t size);
/* An active message to this rank itself, to be taken at the next call for progress. */
void device_send_own(uint64_t id, const struct iovec *pieces, int count);
/* A request of which the relay knows nothing: it completes at the next call for progress. */
void device_completes(struct request *request);

/* Queues a frame that is an act (RECV, MRECV, CANCEL). Returns where its body goes; NULL: an
 * earlier incarnation has made it. */
uint8_t *device_act(uint8_t type, size_t size);

/* Asks the mailbox; .found says whether a message waits there. `remove`: it is taken out. */
struct cw_probed device_probe(uint64_t tag, uint64_t mask, bool remove);

/* Writes what is queued. */
void device_flush(void);
/* The same, for the last time before device_close(). */
void device_leave(void);

/* The calling thread is about to wait until `fd` can be read: returns then. Within MPI_Init and
 * MPI_Finalize, where MPICH waits so for the dispatcher, the session is served meanwhile; elsewhere
 * returns at once. */
void device_beside(int fd);

/* --- progress --- */

struct device_poll {
    struct event *events; /* that are taken now; the caller's */
    bool repeated;        /* as an earlier incarnation took them */
    bool came;            /* bytes have come, perhaps of a message that is not whole yet */
};

/* A call for progress begins: what has happened by now. */
struct device_poll device_poll(void);
/* This event is about to be told to the program. */
void device_take(const struct event *event);
/* The call ends, after the program was told of all events: `count` of them. */
void device_polled(const struct device_poll *poll, unsigned count);

/* --- readings: libc_ask.c --- */

/* A reading is wanted. True: the rank was repeating, the next of its log was READINGS, and
 * clock_repeat() has it. False: there is no more to repeat, the answer is a new one. */
bool device_readings_wanted(void);

/* What clock_repeat() was given is used up. */
void device_readings_used(void);

/* What is pending fills its buffer: sends it now. */
void device_send_readings(void);

#endif
