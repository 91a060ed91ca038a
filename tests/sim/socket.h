/* Connections: two sockets, and the bytes under way between them. */
#ifndef SIM_SOCKET_H
#define SIM_SOCKET_H

#include "tests/sim/pipe.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SOCKET_NAME_MAX 32

struct sim_memory;

struct socket {
    struct connection *of;
    struct pipe in;            /* bytes on their way here */
    struct sim_memory *passed; /* comes with the next bytes; NULL: nothing does */
    bool closed;               /* by its owner */
    bool ended;                /* nothing more comes, which is known ... */
    uint64_t ended_ns;         /* ... from then on */
    bool reset;                /* ... as an error */
};

/* Over which way it goes: ways.h. */
struct connection_way {
    bool known;
    uint32_t from, to, number;
};

struct connection {
    struct connection *next;
    char name[SOCKET_NAME_MAX];
    struct connection_way way;
    uint32_t host[2];     /* hosts.h */
    struct socket end[2]; /* of the client, of the relay that it connects to */
};

struct connection *connection_new(const char *name, size_t pipe_size);
void connections_fini(void);
/* The earliest time at which an end becomes known; UINT64_MAX: none is waited for. */
uint64_t connections_deadline_ns(void);
/* It breaks while both ends live: what was under way is lost from some byte on. */
void connection_break(struct connection *connection);

/* Like send() and recv(), non-blocking: -1 with errno. */
ssize_t socket_send(struct socket *socket, const void *bytes, size_t size);
ssize_t socket_recv(struct socket *socket, void *to, size_t size);
/* Of POLLIN and POLLOUT, those that poll() would tell. */
short socket_events(const struct socket *socket, short wanted);
struct socket *socket_other(const struct socket *socket);

void socket_close(struct socket *socket);
/* ... but its owner may still ask for its end. */
void socket_shut_down(struct socket *socket);
/* Its process dies: of what it wrote, the last may be lost. */
void socket_die(struct socket *socket, uint64_t news_delay_ns);

/* How much one call moves, of so much. */
size_t socket_some(size_t size);

#endif
