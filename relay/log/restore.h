/* Makes of a journal the memory that a relay leaves which is killed: ledger.h. What then follows is
 * the same. Pure, but that it takes memory. */
#ifndef RELAY_RESTORE_H
#define RELAY_RESTORE_H

#include "relay/log/journal.h"
#include "relay/log/ledger.h"

struct cw_err;

/* `memory` is all zero, or what an earlier attempt has left, with the region behind it; `bytes` are
 * a file whose commits count. Errors: CW_ENOMEM, CW_EPROTO: it makes no sense (of another version,
 * or damaged in a way that its sums do not show); CW_EINVAL: the region is too small for it. */
int restore(struct ledger_memory *memory, const struct relay_region *region, const uint8_t *bytes,
            const struct journal_summary *summary, struct cw_err *err);

#endif
