/* A directory of logs that survive the loss of power, read while no relay uses it. All that is in
 * it is hostile: reads are bounded by what proves to be a journal.
 *
 * Thread rule: one caller at a time. */
#ifndef RELAY_INSPECT_FILES_H
#define RELAY_INSPECT_FILES_H

#include "common/err.h"
#include "relay/log/journal.h"

#define INSPECT_JOURNALS 2

struct inspect_journal {
    int fd;         /* -1: there is no such file */
    uint64_t size;  /* of the file */
    uint8_t *bytes; /* its first ones, no more than its parts and a piece behind them ... */
    uint64_t here;  /* ... so many */
    uint64_t mapped;
    struct journal_summary summary;
};

struct inspect_files {
    int dir;
    int lock;     /* held, so that no relay begins; -1: there is no such file */
    int segments; /* -1: there is no such file */
    struct inspect_journal journals[INSPECT_JOURNALS];
    int counts; /* the journal that does; -1: none */
};

/* Errors: CW_ENOTFOUND: it is not there, or is no directory of logs; CW_EBUSY: a relay uses it;
 * CW_EPROTO: of another version, or no journal; CW_ESYS, CW_ENOMEM. Nothing is open then. */
int inspect_files_open(struct inspect_files *files, const char *path, struct cw_err *err);
void inspect_files_close(struct inspect_files *files);

/* Reads the first `size` bytes of a segment's place. Returns 0 or an errno; ENODATA: the file ends
 * before. */
int inspect_files_segment(void *files, uint32_t extent, uint8_t *to, uint32_t size);

/* What stands behind the last commit that counts. A commit that has not ended is torn there, and
 * the parts of an older journal; both are normal. A later commit that is whole is not: what stands
 * between was on disk before it, and is damaged now. */
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
