/* Addresses and stream sockets: unix:PATH and tcp:HOST:PORT, behind one table of transports. */
#ifndef CW_TRANSPORT_H
#define CW_TRANSPORT_H

#include "common/err.h"

#include <sys/socket.h>
#include <sys/un.h>

#define CW_ADDRESS_MAX 300 /* bytes of an address as text */
#define CW_LISTEN_BACKLOG 1024

struct cw_transport;

struct cw_address {
    const struct cw_transport *transport;
    char text[CW_ADDRESS_MAX]; /* as the user gave it; the resolved form after cw_listen */
    struct sockaddr_storage sockaddr;
    socklen_t sockaddr_size;
};

/* One kind of stream socket. */
struct cw_transport {
    const char *scheme; /* "unix", "tcp" */
    /* Fills sockaddr from what follows "scheme:". May block (name resolution). Errors: CW_EINVAL.
     */
    int (*parse)(struct cw_address *address, const char *rest, struct cw_err *err);
    /* Before bind: takes away what a killed listener left. Errors: CW_ESYS, CW_EINVAL (in use). */
    int (*claim)(const struct cw_address *address, struct cw_err *err);
    /* Options of a connected socket; failures are of no consequence. */
    void (*tune)(int fd);
    /* After the listener is closed: takes away what it left in the file system. */
    void (*release)(const struct cw_address *address);
};

/* Errors: CW_EINVAL, naming the address and what was expected. */
int cw_address_parse(struct cw_address *address, const char *text, struct cw_err *err);

/* Returns a non-blocking listening socket (close-on-exec), or a negative code. With tcp port 0 the
 * kernel chooses; `address` is updated to where it listens. */
int cw_listen(struct cw_address *address, struct cw_err *err);

/* Closes a listener and removes what it left. */
void cw_unlisten(int fd, const struct cw_address *address);

/* Returns a connected, tuned, non-blocking, close-on-exec socket, or a negative code: CW_ESYS. */
int cw_connect(const struct cw_address *address, struct cw_err *err);

/* Returns the next waiting connection, tuned and non-blocking; -errno when there is none. */
int cw_accept(int listener, const struct cw_address *address);

#endif
