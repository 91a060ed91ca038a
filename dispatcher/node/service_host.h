/* Services on this host: what is done about a request. */
#ifndef DISPATCHER_SERVICE_HOST_H
#define DISPATCHER_SERVICE_HOST_H

#include "dispatcher/wire/service_format.h"

#define SERVICE_END_MS 15000u   /* for who keeps a service to end it; then SIGKILL */
#define SERVICE_KILLED_MS 3000u /* for a killed process to be gone */
#define SERVICE_STEP_MS 20u     /* between two looks whether it is */
#define SERVICE_TOLD_MS 40000   /* for who keeps a service to say whether it runs */

/* Carries a request out, and says what came of it. Blocks, for a bounded time. To be called by a
 * process of one thread, which waits for its children. */
void service_carry_out(const json_t *request, struct service_answer *answer);

#endif
