/* The parts of the suite that every engine must pass. */
#ifndef CONFORMANCE_SUITE_H
#define CONFORMANCE_SUITE_H

#include "tests/conformance/site.h"

#include <CUnit/CUnit.h>

#define LARGE (8u << 20)

/* The bytes that the core may hold: `waiting` bytes of messages that wait for their receiver, in
 * blocks of which a quarter may stay empty (a block is left when less than 64 KiB of it are free);
 * the free blocks that the core keeps; and for each connection one block to read into and one to
 * write from. */
#define MEMORY_BOUND(waiting, connections)                                                         \
    ((waiting) / 3ull * 4 + (RELAY_BLOCKS_KEPT + 2ull * (connections)) * sizeof(struct relay_block))

/* The engine of the suite that runs. */
const struct relay_engine_ops *engine(void);

void add_client_tests(CU_pSuite suite);
void add_exchange_tests(CU_pSuite suite);
void add_crowd_tests(CU_pSuite suite);
void add_random_exchange_tests(CU_pSuite suite);
void add_engine_resume_tests(CU_pSuite suite);
void add_engine_disk_tests(CU_pSuite suite);
/* For an engine that offers rings. */
void add_ring_client_tests(CU_pSuite suite);

#endif
