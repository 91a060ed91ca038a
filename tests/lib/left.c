#include "tests/lib/left.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct ledger_memory *left_new(void)
{
    void *at = mmap(NULL, sizeof(struct ledger_memory) + LEFT_REGION, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        abort();
    return at;
}

struct ledger_memory *left_copy(const struct ledger_memory *left)
{
    struct ledger_memory *copy = left_new();

    copy->header = left->header;
    memcpy(copy->cells, left->cells, left->header.cells_used * sizeof(*left->cells));
    memcpy(copy->extents, left->extents, left->header.extents_used * sizeof(*left->extents));
    memcpy(copy + 1, left + 1, left->header.carved);
    return copy;
}

void left_free(struct ledger_memory *left)
{
    if (left)
        munmap(left, sizeof(*left) + LEFT_REGION);
}
