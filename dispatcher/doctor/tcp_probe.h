/* Whether two hosts reach each other over TCP. One listens, and tells whoever connects its token:
 * so that one knows who it is. The relays of a job do the same. */
#ifndef DISPATCHER_TCP_PROBE_H
#define DISPATCHER_TCP_PROBE_H

#include "common/transport.h"

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define TCP_PROBE_TOKEN 16u                                   /* bytes */
#define TCP_PROBE_OTHER "somebody else seems to listen there" /* of an error: so it says */
#define TCP_PROBE_CONNECT_MS 5000                             /* for a connection */
#define TCP_PROBE_ANSWER_MS 2000                              /* for an answer */

/* At one place while it listens. */
struct tcp_probe_server {
    uint16_t port; /* 0: there is none */
    int listener;
    pthread_t thread;
    uint8_t token[TCP_PROBE_TOKEN];
};

/* Starts a thread that listens on all addresses of this machine. Errors: CW_ESYS. */
int tcp_probe_serve(struct tcp_probe_server *server, const uint8_t token[TCP_PROBE_TOKEN],
                    struct cw_err *err);
void tcp_probe_end(struct tcp_probe_server *server);

/* Connects to an address, as of cw_address_parse, also through SSH. There is a connection within
 * `time_ms`, beside the resolution of a name, or it fails. Errors: CW_EINVAL, CW_ESYS, CW_ETIME,
 * CW_ECLOSED: the one who listens is not that server. */
int tcp_probe_ask(const char *address, uint32_t time_ms, const uint8_t token[TCP_PROBE_TOKEN],
                  struct cw_err *err);

/* The address of a host, a name or a number, and a port of it. */
void tcp_probe_address(const char *host, uint16_t port, char text[CW_ADDRESS_MAX]);

/* A request to a host (NODE_ASK): to listen, with `op` "listen", or to connect to `address`, with
 * "reach". The caller's; NULL: no memory. */
json_t *tcp_probe_request(const char *op, const uint8_t token[TCP_PROBE_TOKEN],
                          const char *address);
/* Its token. False: it has none. */
bool tcp_probe_token(const json_t *request, uint8_t token[TCP_PROBE_TOKEN]);

#endif
