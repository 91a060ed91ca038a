/* What the relay has handed over and the program has not taken: events in their order, and messages
 * whose bytes are still to come. Reads frames, and says where their payload goes; no I/O. For the
 * thread that calls MPI.
 *
 * Functions that read a frame return NULL, or what is wrong with it (a constant string). */
#ifndef RDEVICE_INBOX_H
#define RDEVICE_INBOX_H

#include "common/frame.h"
#include "rdevice/request.h"

#include <sys/uio.h>

/* An active message that has come, or is coming. */
struct am {
    struct event event; /* first */
    struct am *next_open;
    uint32_t stream;
    uint64_t id; /* which handler; the binding's */
    size_t total;
    size_t received;
    bool given; /* the binding has given its data to the program */
    bool kept;  /* the program is still to ask for its data */
    uint8_t bytes[];
};

struct inbox {
    uint64_t event;         /* number of the last event that came */
    struct event *happened; /* in order */
    struct event **happened_tail;
    uint64_t last_happened; /* number of the last of them */
    struct am *open_ams;    /* not whole yet */
    struct event *own; /* active messages to this rank itself, and what else the device has done
                          by itself, until the next poll */
    struct event **own_tail;
    struct event *ends; /* happens with the last byte of the payload at hand; NULL: more frames of
                           it follow */
};

void inbox_begin(struct inbox *b);

/* MESSAGE, whose fixed part is `body`, with `size` bytes of payload, which go to *to. When they are
 * there, also when they are none, inbox_payload_came() follows. */
const char *inbox_on_message(struct inbox *b, const struct request_table *requests,
                             const uint8_t *body, size_t size, uint8_t **to);
void inbox_payload_came(struct inbox *b);

/* The same of a message that did not come as a frame: its next event is number `event` + 1. */
const char *inbox_message(struct inbox *b, const struct request_table *requests,
                          const struct cw_message *m, size_t size, uint8_t **to);

/* The same in two steps: bytes of a message for a receive (NULL: there is no such one), and, at
 * some time after the last of them, its event. */
const char *inbox_place(struct request *request, const struct cw_message *m, size_t size,
                        uint8_t **to);
void inbox_received(struct inbox *b, struct request *request);

/* SENT or CANCELED; and when it did not come as a frame. */
const char *inbox_done(struct inbox *b, const struct request_table *requests, uint8_t type,
                       const struct cw_done *done);
const char *inbox_on_done(struct inbox *b, const struct request_table *requests, uint8_t type,
                          const uint8_t *body);

/* The relay begins anew after the last event that has come whole: messages of which a part has come
 * begin anew. */
void inbox_on_return(struct inbox *b, const struct request_table *requests);

/* Of what was offered, and was asked for, alone; `here`: also what is here and was not taken. */
void inbox_await_again(const struct request_table *requests, bool here);

/* The process goes on from an image that was taken of it: the relay begins anew after the last
 * event that was taken, whatever had come since. */
void inbox_on_restore(struct inbox *b, const struct request_table *requests);

/* Number of the last event that was taken. */
static inline uint64_t inbox_last_taken(const struct inbox *b)
{
    return b->happened ? b->happened->number - 1 : b->event - (b->ends != NULL);
}

/* Number of the last event that has happened and was not taken; 0: none. */
static inline uint64_t inbox_happened(const struct inbox *b)
{
    return b->happened ? b->last_happened : 0;
}

/* An active message of this rank to itself. Copies the pieces, `count` of them. */
void inbox_add_own(struct inbox *b, uint64_t id, const struct iovec *pieces, int count);

/* A request that needs nothing of the relay completes, at the next poll. */
void inbox_complete_own(struct inbox *b, struct request *request);

/* All that has happened until now, after the rank's own active messages; NULL: nothing. The caller
 * owns the list. */
struct event *inbox_take(struct inbox *b);

#endif
