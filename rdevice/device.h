/* The R-device: a rank's life with its home relay, docs/protocol.md. One per process; MPICH calls
 * it under its lock, so that one thread at a time is inside. It knows nothing of UCP; ucp.c stands
 * on it. Whatever goes wrong ends the process, after a report to the dispatcher. */
#ifndef RDEVICE_DEVICE_H
#define RDEVICE_DEVICE_H

#include "common/setup.h"
#include "rdevice/checkpoint.h"
#include "rdevice/operation.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define DEVICE_PIECES_MAX EXCHANGE_PIECES_MAX /* vectors a message may be gathered from */

/* device.c's own; others read `setup` and `exchange`. */
struct device {
    struct cw_setup setup;
    int control_fd; /* to the dispatcher */
    int pmi_fd;     /* likewise; -1: none */
    struct exchange exchange;
    struct checkpoint checkpoint;
    pthread_t thread;
    bool threads; /* more than one thread calls */
    bool leaves;  /* MPI_Finalize has nothing more to send */
    uint8_t setup_record[CW_SETUP_MAX];
};

#define DEVICE_BEFORE                                                                              \
    {                                                                                              \
        .control_fd = -1, .pmi_fd = -1, .exchange = {.session = SESSION_BEFORE }                   \
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

/* Calls of MPI come from a thread that is not the first. */
void device_second_thread(void) __attribute__((noinline, cold));

/* First of all in whatever makes an operation, or polls: for functions of operation.h. */
static inline struct exchange *device_enter(void)
{
    if (__builtin_expect(!device.threads && !pthread_equal(device.thread, pthread_self()), 0))
        device_second_thread();
    return &device.exchange;
}

/* Writes what is queued, for the last time before device_close(). */
void device_leave(void);

/* Before a read() of pmi_fd: within MPI_Init and MPI_Finalize, which wait so for all ranks and ask
 * for no progress meanwhile, returns when there is something to read, and serves the session until
 * then. A relay that dies, and is back, must not wait for the others: it may not have read what
 * this rank has sent last. Elsewhere returns at once. */
void device_beside_pmi(void);

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

#endif
