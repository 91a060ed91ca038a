/* Addresses and stream sockets: unix:PATH and tcp:HOST:PORT, behind one table of transports, to
 * which a program may add one. */
#ifndef CW_TRANSPORT_H
#define CW_TRANSPORT_H

#include "common/err.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CW_ADDRESS_MAX 1000 /* bytes of an address as text */
#define CW_LISTEN_BACKLOG 1024
#define CW_ALIVE_IDLE_S 60
#define CW_ALIVE_ASK_S 10
#define CW_ALIVE_ASKS_MAX 6
#define CW_SOCKADDRS_MAX 8 /* socket addresses of one host name */

struct cw_transport;

struct cw_sockaddr {
    struct sockaddr_storage storage;
    socklen_t size;
};

struct cw_address {
    const struct cw_transport *transport;
    char text[CW_ADDRESS_MAX]; /* as the user wrote it; with the actual port after cw_listen */
    struct cw_sockaddr at[CW_SOCKADDRS_MAX]; /* tried in this order */
    int count;                               /* at least 1 */
};

/* One kind of stream socket, or what looks like one. */
struct cw_transport {
    const char *scheme; /* "unix", "tcp", "ssh" */
    /* Fills `at` from `rest`, the text after "scheme:". May block (name resolution).
     * Errors: CW_EINVAL. */
    int (*parse)(struct cw_address *address, const char *rest, struct cw_err *err);
    /* Before bind: removes the file of a killed listener. Errors: CW_ESYS, CW_EINVAL (in use). */
    int (*claim)(const struct cw_address *address, struct cw_err *err);
    /* Sets options of a connected socket. Failures are ignored. */
    void (*tune)(int fd);
    /* After the listener is closed: removes its file, if it has one. */
    void (*release)(const struct cw_address *address);
    /* In place of connect(2), as cw_connect_begin and cw_connect_end; NULL: that is what is done.
     */
    int (*begin)(const struct cw_address *address, struct cw_err *err);
    int (*end)(int fd, const struct cw_address *address, int timeout_ms, struct cw_err *err);
};

/* Of a TCP socket of cw_connect or cw_accept on which nothing is under way: its other side is asked
 * whether it is there after CW_ALIVE_IDLE_S, then every CW_ALIVE_ASK_S, and is gone after
 * CW_ALIVE_ASKS_MAX questions without an answer. How slowly it reads does not matter. Failures are
 * ignored. */
void cw_keep_alive(int fd);

/* Adds one to unix and tcp: once, before any thread. */
void cw_transport_add(const struct cw_transport *transport);

/* Parses unix:PATH or tcp:HOST:PORT. May block (name resolution). Errors: CW_EINVAL; the text names
 * the address and what was expected. */
int cw_address_parse(struct cw_address *address, const char *text, struct cw_err *err);

/* Returns a listening socket (non-blocking, close-on-exec) at the first socket address of `address`
 * that this machine has, or a negative code. With tcp port 0 the kernel chooses the port; `address`
 * is updated to it. */
int cw_listen(struct cw_address *address, struct cw_err *err);

/* `wanted`, and where that is tcp:HOST:0, with a port that is free now: for a process that is to
 * listen there, and for its successors. Errors: CW_EINVAL; CW_ESYS: this machine has no such HOST.
 */
int cw_address_choose_port(const char *wanted, char chosen[CW_ADDRESS_MAX], struct cw_err *err);

/* Closes a listener and removes its file, if it has one. */
void cw_unlisten(int fd, const struct cw_address *address);

/* Tries the socket addresses of `address` in order. Returns the first connected socket (tuned,
 * non-blocking, close-on-exec), or CW_ESYS with the error of the last address. Blocks for at most
 * 10 s per address. */
int cw_connect(const struct cw_address *address, struct cw_err *err);

/* The same, but blocks for at most `time_ms` for all of them. */
int cw_connect_within(const struct cw_address *address, uint32_t time_ms, struct cw_err *err);

/* cw_connect in two steps, to the socket address `place` (from 0) alone. cw_connect_begin returns a
 * socket that is not connected yet, or CW_ESYS. cw_connect_end waits for at most `timeout_ms` and
 * tunes the socket; it returns 0 or CW_ESYS. The caller closes the socket in both cases. */
int cw_connect_begin(const struct cw_address *address, int place, struct cw_err *err);
int cw_connect_end(int fd, const struct cw_address *address, int timeout_ms, struct cw_err *err);

/* Accepts a connection. Returns its socket (tuned, non-blocking, close-on-exec), or -errno. */
int cw_accept(int listener, const struct cw_address *address);

#endif
