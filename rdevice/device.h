/* The R-device's inside: one per process, used by one thread at a time (MPICH holds its lock around
 * every call). It speaks docs/protocol.md to the home relay and knows nothing of UCP; ucp.c stands
 * on it. */
#ifndef RDEVICE_DEVICE_H
#define RDEVICE_DEVICE_H

#include "common/frame.h"
#include "common/setup.h"
#include "common/spin.h"
#include "common/wire.h"
#include "rdevice/replay.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define DEVICE_IN_BYTES (64u << 10)
#define DEVICE_OUT_BYTES (64u << 10)
#define DEVICE_COPY_MAX (8u << 10) /* bytes: a smaller message is copied behind its header */
#define DEVICE_PIECES_MAX 8        /* vectors a message may be gathered from */
#define DEVICE_NONE_KNOWN 8        /* probes whose answer "none" is remembered */

enum device_status { DEVICE_OK, DEVICE_TRUNCATED, DEVICE_CANCELED };

/* Something that has happened and waits to be taken at a call for progress. */
struct device_event {
    struct device_event *next;
    uint64_t number; /* given by the relay */
    bool active;     /* a struct device_am, else a struct device_request */
};

/* A receive, or a synchronous send, that is under way. Slots of a table; `id` names one on the
 * wire. */
struct device_request {
    struct device_event event; /* first: found by its address */
    uint32_t id;
    bool busy;      /* the relay may still speak of it */
    bool receiving; /* a receive; else a synchronous send */
    bool begun;     /* its first MESSAGE frame has come */
    bool completed; /* the binding has told the program */
    bool released;  /* the program has let go of it */
    bool staged;    /* `target` is a staging buffer, made when the size is known */
    enum device_status status;
    uint8_t *target;
    size_t capacity; /* bytes of the receive */
    size_t staging_size;
    size_t received;   /* bytes so far */
    uint64_t want_tag; /* as posted, for CANCEL */
    uint64_t want_mask;
    uint64_t tag;                /* of the message */
    uint64_t total;              /* bytes of the message */
    void *binding[6];            /* the binding's own */
    _Alignas(16) uint8_t user[]; /* the binding's program's own */
};

/* An active message that has come, or is coming. */
struct device_am {
    struct device_event event; /* first */
    struct device_am *next_open;
    uint32_t stream;
    uint64_t id; /* which handler */
    size_t total;
    size_t received;
    uint8_t bytes[];
};

struct device_probe {
    bool found;
    uint32_t msg;
    uint64_t tag;
    uint64_t total;
};

/* Grows by chunks; slots are reused last out, first in. */
struct request_table {
    uint8_t **chunks;
    uint32_t chunk_count;
    size_t stride;
    void (*user_init)(void *user);
    struct device_request *free; /* by event.next */
};

struct device {
    struct cw_setup setup;
    int control_fd;      /* to the dispatcher */
    struct cw_wire wire; /* to the relay; its fd is -1 before */
    struct cw_session session;
    struct cw_rank_stats stats;
    uint64_t event; /* number of the last event received */

    /* recovery: stats.polls is the poll clock */
    bool logged;   /* the relay wants determinants */
    uint64_t acts; /* sends, receives, probes that found, and cancels; of all incarnations */
    struct replay replay;

    uint8_t *out;
    size_t out_used;
    bool out_urgent;   /* something there wants to go out soon; determinants can wait */
    uint64_t out_skip; /* bytes of the message at hand that the relay has already */
    uint8_t *in;
    size_t in_start;
    size_t in_end;

    /* the payload at hand: where its next bytes go */
    uint8_t *sink;
    size_t sink_left;
    struct device_event *sink_event; /* completed when the payload ends; NULL: not the last frame */
    bool amid;                       /* more frames of the message that came last are to come */

    struct device_event *happened; /* in order */
    struct device_event **happened_tail;
    uint64_t last_happened;     /* number of the last of them */
    struct device_am *open_ams; /* not whole yet */
    struct request_table requests;

    /* probing */
    bool probe_answered;
    struct cw_probe asked;
    struct device_probe probe;
    struct cw_probe none[DEVICE_NONE_KNOWN]; /* answered "none", and nothing has come since */
    uint32_t none_count;
    bool mailbox_empty; /* nothing at all waits in the mailbox */

    bool farewell;
    uint8_t setup_record[CW_SETUP_MAX];

    /* waiting */
    struct cw_spin spin;
    uint64_t active_ns; /* when an event was last taken */
    uint64_t streak_ns; /* since when calls for progress follow each other closely */
    uint64_t return_ns; /* when the last of them returned */
    bool slept;         /* ... and before that slept */
    uint64_t moved_ns;  /* when it last left the relay's core */
    uint64_t amid_at;   /* bytes that had come through the ring amid large payload */
    uint64_t amid_ns;   /* ... and since when no more */
    pthread_t thread;
    bool threads;  /* more than one thread calls */
    bool defers;   /* woken, it lets others go on first */
    uint32_t calm; /* sleeps since the last one amid large payload */
};

#define DEVICE_BEFORE                                                                              \
    {                                                                                              \
        .control_fd = -1, .wire = {.fd = -1 }                                                      \
    }
#ifdef DEVICE_MANY /* tests/sim: a process plays many ranks, each with a device */
extern struct device *sim_device;
#define device (*sim_device)
#else
extern struct device device;
#endif

/* Calls of MPI come from a thread that is not the first. */
void device_second_thread(void);
/* To be called first by whatever makes an act, or polls. */
static inline void device_enter(void)
{
    if (__builtin_expect(!device.threads && !pthread_equal(device.thread, pthread_self()), 0))
        device_second_thread();
}

/* device.c: life */
void device_open(void);  /* connects; ends the process when that is impossible */
void device_close(void); /* BYE; everything is at the relay when it returns */
/* Reports to the dispatcher and ends the process. */
void device_fatal(uint32_t kind, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
/* A drill, --fault kill:RANK@event:N: the process kills itself. */
void device_drill(void) __attribute__((noreturn));
void *device_alloc(size_t size); /* from the arena; never NULL */

/* request.c */
/* `user_size` bytes of user area for every request; `init` runs once on each. */
void request_setup(size_t user_size, void (*init)(void *user));
struct device_request *request_new(bool receiving);
void request_free(struct device_request *request);
struct device_request *request_find(uint32_t id); /* NULL unless busy */
struct device_request *request_of_user(void *user);

/* output.c */
/* Sends one message, gathered from `pieces`, and returns when it is written to the relay. */
void output_message(uint32_t dst, uint32_t kind, uint64_t tag, uint32_t req,
                    const struct iovec *pieces, int count);
/* The same in steps, for a message that is packed chunk by chunk: begin, then data until `total`
 * bytes are out; each chunk at most CW_FRAME_DATA_MAX bytes. */
void output_begin(uint32_t dst, uint32_t kind, uint64_t tag, uint32_t req, uint64_t total,
                  const void *first, size_t size);
void output_data(const void *bytes, size_t size);
/* Queues a small frame; it goes out with the next flush. Returns where its body goes. */
uint8_t *output_frame(uint8_t type, size_t size);
/* Queues a frame that is an act; NULL when it was made by an earlier incarnation. */
uint8_t *output_act(uint8_t type, size_t size);
/* Queues what clocks have told the program since the last time. */
void output_readings(void);
/* Queues PROBE; whether it is an act is known with its answer. */
uint8_t *output_probe(void);
/* Queues what must be logged before anything that follows: events up to `event` were taken now. */
void output_taken(uint64_t event);
void output_flush(void);

/* input.c */
/* Takes what the socket has, without waiting. Returns true when something came. Nothing is told to
 * the program: completed things are queued in device.happened. */
bool input_read(void);
/* While repeating: the type of the relay's next frame, and acting on it; both wait for it. */
uint8_t input_next_type(void);
void input_take_frame(void);

/* wait.c */
/* A call for progress found nothing: yields, or sleeps a bounded while when it goes on so. */
void wait_idle(void);
/* Inside a call that cannot return yet: waits for the socket to be readable (or writable);
 * `since_ns` is when the waiting began. */
void wait_socket(bool writable, uint64_t since_ns);

/* probe.c */
struct device_probe device_probe(uint64_t tag, uint64_t mask, bool remove);

#endif
