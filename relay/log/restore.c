#include "relay/log/restore.h"
#include "common/err.h"
#include "relay/log/held.h"

int restore(struct ledger_memory *memory, const struct relay_region *region, const uint8_t *bytes,
            const struct journal_summary *summary, struct cw_err *err)
{
    struct journal_reader reader = journal_read(bytes, summary->end);
    struct held held;
    int failed = CW_OK;

    if (held_open_anew(&held, memory, region) < 0)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    while (!failed && journal_next_part(&reader))
        failed = held_take(&held, &reader, err);
    if (!failed)
        held_finish(&held);
    held_close(&held);
    return failed;
}
