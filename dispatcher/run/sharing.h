/* Files that ranks share, and whose restart is no longer safe because of it: what ranks report of
 * the files that they open, in words. */
#ifndef DISPATCHER_SHARING_H
#define DISPATCHER_SHARING_H

#include "common/setup.h"
#include "dispatcher/job/files.h"

#include <stdbool.h>

#define SHARING_TEXT_MAX (CW_PATH_TOLD + 96)

struct sharing {
    struct files *files; /* owned; NULL: it does not matter in this job */
    bool *shares; /* of each rank: others open files that it writes, or the other way round */
    bool trusted; /* that hinders no restart */
    /* `rank` can no longer be restarted, because of `why`; also when that was known. `own`: by what
     * it has opened itself just now. */
    void (*unsafe)(void *ctx, uint32_t rank, bool own, const char *why);
    void *ctx;
};

/* A rank reports that it opens a file. */
void sharing_take(struct sharing *sharing, uint32_t rank, const struct cw_report *report);

#endif
