/* What stands behind the last commit that counts. A commit that has not ended is torn there, and
 * the parts of an older journal; both are normal. A later commit that is whole is not: what stands
 * between was on disk before it, and is damaged now. */
#ifndef RELAY_INSPECT_TAIL_H
#define RELAY_INSPECT_TAIL_H

#include "relay/inspect/files.h"

#define INSPECT_PARTS_MAX 1024u /* parts behind the last commit whose sums are tried */

struct inspect_tail {
    bool lost;      /* a later commit is whole there: */
    int file;       /* in which journal ... */
    uint64_t at;    /* ... and where */
    uint64_t broke; /* in the same file: where what can be read ends */
};

/* Returns 0 or CW_ENOMEM. */
int inspect_tail(const struct inspect_files *files, struct inspect_tail *tail, struct cw_err *err);

#endif
