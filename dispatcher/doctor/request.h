/* What a host is asked once its report is ready: one line each, to the standard input of
 * `causeway doctor --report`. docs/protocol.md, "Reports of hosts". Pure. */
#ifndef DISPATCHER_REQUEST_H
#define DISPATCHER_REQUEST_H

#include "dispatcher/doctor/tcp_probe.h"

#define REQUEST_LINE_MAX 1100u   /* bytes */
#define REQUEST_ADDRESS_MAX 999u /* bytes of one */

enum request_type {
    REQUEST_TIME,   /* "done NS": what its clock shows, since 1970 */
    REQUEST_LISTEN, /* "done PORT" */
    REQUEST_REACH,  /* "done": connects; "failed WHY" */
    REQUEST_TUNNEL  /* the same through SSH: `address` has all of it, "ssh:.../HOST:PORT" */
};

struct request {
    enum request_type type;
    uint8_t token[TCP_PROBE_TOKEN];
    char address[REQUEST_ADDRESS_MAX + 1]; /* a name or number */
    uint16_t port;
};

/* Writes a line without its end. */
void request_print(const struct request *request, char line[REQUEST_LINE_MAX]);

/* Returns false when the line, without its end, is no request. */
bool request_read(const char *line, struct request *request);

#endif
