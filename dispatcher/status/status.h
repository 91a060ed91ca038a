/* The socket of a running job where anybody of the same user learns how it stands: whoever connects
 * gets one JSON document (status_document.h) and the end of the stream. Never blocks.
 *
 *   status_step() says that somebody new waits -> ask the relay for fresh counters
 *   the counters are in, or status_due()       -> status_answer() with a new document
 */
#ifndef DISPATCHER_STATUS_H
#define DISPATCHER_STATUS_H

#include "common/transport.h"
#include "dispatcher/status/status_document.h"

#include <stdbool.h>
#include <stdint.h>

#define STATUS_NAME "status"            /* of the socket, in the job's directory */
#define STATUS_IMAGES_NAME "demand"     /* of the socket where images are asked for */
#define STATUS_IMAGES_NS 60000000000ull /* that none comes on; then what became of them is told */
#define STATUS_CLIENTS_MAX 8            /* further ones wait in the kernel's queue */
#define STATUS_FRESH_NS 200000000ull    /* for the relay's counters; then the last known are told */
#define STATUS_READ_NS 5000000000ull    /* for a client to read all; then it is dropped */
#define STATUS_RETRY_NS 1000000000ull   /* before accepting again, when a descriptor was wanting */

struct status_client {
    int fd;            /* -1: none */
    uint64_t since_ns; /* when it came; once answered, when it was */
    char *text;        /* NULL: it waits for its answer */
    size_t size;
    size_t sent;
};

struct status_server {
    int fd; /* watch it for EPOLLIN; -1 when closed */
    int listener;
    uint64_t fresh_ns;    /* that a client waits at most for fresh news */
    uint64_t retry_at_ns; /* 0: clients are accepted */
    struct cw_address address;
    struct status_client clients[STATUS_CLIENTS_MAX];
};

/* Listens on DIR/NAME, which only its user may reach. A client waits for its answer for `fresh_ns`
 * at most. With `fd` -1 in a zeroed server the other functions do nothing. Errors: CW_ESYS,
 * CW_EINVAL, naming the socket.
 */
int status_open(struct status_server *server, const char *dir, const char *name, uint64_t fresh_ns,
                struct cw_err *err);

/* To be called when `fd` is readable and when the deadline has come. True: somebody new waits for
 * an answer. */
bool status_step(struct status_server *server, uint64_t now_ns);

/* Somebody waits for an answer; status_due(): and has waited long enough. */
bool status_waiting(const struct status_server *server);
bool status_due(const struct status_server *server, uint64_t now_ns);

/* Who waits has as much time again: there was progress. */
void status_renew(struct status_server *server, uint64_t now_ns);

/* When to call status_step() and status_due() at the latest; UINT64_MAX: no need. */
uint64_t status_deadline_ns(const struct status_server *server);

/* Gives `document` (the reference stays the caller's; NULL: there is no memory for one) to all that
 * wait. */
void status_answer(struct status_server *server, const json_t *document, uint64_t now_ns);

void status_close(struct status_server *server);

#endif
