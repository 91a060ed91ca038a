/* Threads that do the same with each of many things. */
#ifndef DISPATCHER_CREW_H
#define DISPATCHER_CREW_H

#include <stdint.h>

#define CREW_MAX 32u /* threads */

/* Calls `work` for each number below `count`, by up to `threads` threads, at most CREW_MAX, of
 * which the calling one is one. Returns when all have been done. */
void crew_run(uint32_t count, uint32_t threads, void (*work)(void *ctx, uint32_t number),
              void *ctx);

#endif
