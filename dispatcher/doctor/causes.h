/* Why a launcher could not start something on a host, by what it said. Pure. */
#ifndef DISPATCHER_CAUSES_H
#define DISPATCHER_CAUSES_H

#include <stdbool.h>
#include <stdint.h>

/* What to do about it; NULL when nothing is known of it. */
const char *causes_advice(const char *said);

/* Whether a tunnel failed since nobody listens at that place, behind the gateway that it names; or
 * that gateway does not know the name. */
bool causes_nobody_listens(const char *said, const char *host, uint16_t port);

#endif
