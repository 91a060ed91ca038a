/* Why a launcher could not start something on a host, by what it said. Pure. */
#ifndef DISPATCHER_CAUSES_H
#define DISPATCHER_CAUSES_H

/* What to do about it; NULL when nothing is known of it. */
const char *causes_advice(const char *said);

#endif
