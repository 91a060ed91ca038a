/* The process that keeps a service on its host: it holds the lock of the service's directory, runs
 * the program, writes its log, starts it again if that was asked for, and ends it on SIGTERM. */
#ifndef DISPATCHER_SERVICE_KEEPER_H
#define DISPATCHER_SERVICE_KEEPER_H

#include "dispatcher/wire/service_format.h"

#define SERVICE_TERM_MS 10000u  /* to end after SIGTERM; then SIGKILL */
#define SERVICE_READY_MS 25000u /* for a program to be ready; then it is ended */

#define SERVICE_SAYS_READY '+' /* the first byte that is said to who waits */
#define SERVICE_SAYS_NOT '-'   /* ... before the text why not */

/* What it is started with: a request of service_format.h, and where one of the above is said, which
 * is closed then. */
#define SERVICE_KEEPER_REQUEST_FD 3
#define SERVICE_KEEPER_TOLD_FD 4

/* The program `causeway keep PATH`: keeps the service whose directory `path` is until it ends, in
 * the background. Returns the exit code; 2: it was not started by a node. */
int service_keeper_run(const char *path);

/* What a request comes to: hexadecimal digits, from which its secrets cannot be had. `version` of
 * Causeway. */
#define SERVICE_DIGEST_BYTES 33
void service_digest(const json_t *request, const char *version, char digest[SERVICE_DIGEST_BYTES]);

#endif
