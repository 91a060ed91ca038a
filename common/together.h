/* Threads that do the same with each of many things. */
#ifndef CW_TOGETHER_H
#define CW_TOGETHER_H

#include <stdint.h>

#define CW_TOGETHER_MAX 32u /* threads */

/* Calls `work` for each number below `count`, by up to `threads` threads, at most CW_TOGETHER_MAX,
 * of which the calling one is one. Returns when all have been done. */
void cw_together(uint32_t count, uint32_t threads, void (*work)(void *ctx, uint32_t number),
                 void *ctx);

#endif
