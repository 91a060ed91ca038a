/* The parts of the suite that every engine passes. */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include "tests/conformance/site.h"

#include <CUnit/CUnit.h>

#define LARGE (8u << 20)

/* What the core may hold, in bytes: those that wait for their receiver, in blocks of which a
 * quarter may stay empty, for one is left when less than 64 KiB of it are free; and beside them the
 * free blocks that are kept, and of each connection one block to read into and one to write from.
 */
#define MEMORY_BOUND(waiting, connections)                                                         \
    ((waiting) / 3ull * 4 + (RELAY_BLOCKS_KEPT + 2ull * (connections)) * sizeof(struct relay_block))

/* That of the suite which runs. */
const struct relay_engine_ops *engine(void);

void add_client_tests(CU_pSuite suite);
void add_exchange_tests(CU_pSuite suite);
void add_crowd_tests(CU_pSuite suite);
void add_random_exchange_tests(CU_pSuite suite);
/* Of an engine that has rings, and offers them. */
void add_ring_client_tests(CU_pSuite suite);

#endif
