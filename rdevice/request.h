/* Requests of the program that are under way: receives and synchronous sends, in slots of a table.
 * The number of a slot names the request on the wire. For the thread that calls MPI. */
#ifndef RDEVICE_REQUEST_H
#define RDEVICE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Something that has happened to this rank: a request has completed, or an active message has come.
 * It waits to be taken at a call for progress. */
struct event {
    struct event *next;
    uint64_t number; /* given by the relay; 0: of an active message to this rank itself */
    bool active;     /* part of a struct am, else of a struct request */
};

enum request_status { REQUEST_OK, REQUEST_TRUNCATED, REQUEST_CANCELED };

/* Of a receive of a rank that is its own mailbox: what was offered to it comes from the relay. */
enum request_offered {
    REQUEST_NOT_OFFERED,
    REQUEST_AWAITED, /* the relay was asked, or is about to be */
    REQUEST_HERE     /* all of it is here, and not taken */
};

struct request {
    struct event event; /* first: found by its address */
    uint32_t id;
    bool busy;      /* the relay may still speak of it */
    bool receiving; /* a receive; else a synchronous send */
    bool begun;     /* its first MESSAGE frame has come */
    bool completed; /* the binding has told the program */
    bool released;  /* the program has let go of it */
    bool staged;    /* `target` is a staging buffer, made when the size is known */
    enum request_status status;
    enum request_offered offered;
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

/* Grows by chunks; slots are reused last out, first in. */
struct request_table {
    uint8_t **chunks;
    uint32_t chunk_count;
    size_t stride;
    void (*user_init)(void *user);
    struct request *free; /* by event.next */
};

/* `user_size` bytes of user area for every request; `init` (or NULL) runs once on each. */
void request_setup(struct request_table *t, size_t user_size, void (*init)(void *user));

/* Ends the process when too many are open. */
struct request *request_new(struct request_table *t, bool receiving);
void request_free(struct request_table *t, struct request *request);

/* All that the relay may speak of. */
void request_each(const struct request_table *t, void (*give)(void *ctx, struct request *request),
                  void *ctx);
/* NULL unless there is a request of this number that the relay may speak of. */
struct request *request_find(const struct request_table *t, uint32_t id);
struct request *request_of_user(void *user);

#endif
