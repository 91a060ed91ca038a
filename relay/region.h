/* A region of addresses for a core's blocks, in huge pages where the system has them. */
#ifndef RELAY_REGION_H
#define RELAY_REGION_H

#include "relay/engine/engine.h"

/* For at most `bytes` of blocks. All zero where the addresses cannot be had: do without. */
struct relay_region region_open(uint64_t bytes);
/* The same in a memfd that outlives this process, behind what *ledger says of it; all of it is
 * zero, or what a relay with the same `bytes` has left there. Errors: CW_ESYS; CW_EINVAL: of
 * another size.
 */
int region_open_outliving(int fd, uint64_t bytes, struct relay_region *region,
                          struct ledger_memory **ledger, struct cw_err *err);
void region_close_outliving(const struct relay_region *region, struct ledger_memory *ledger);
/* The core is freed. */
void region_close(const struct relay_region *region);

/* Gives the memory of these pages to the system; they are zero then. */
void region_give_back(const struct relay_pages *pages);

#endif
