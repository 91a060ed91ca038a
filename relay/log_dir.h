/* The directory of a log that survives the loss of power: two files of journals, one of segments,
 * and one that is locked by who uses them. docs/log-format.md. */
#ifndef RELAY_LOG_DIR_H
#define RELAY_LOG_DIR_H

#include "relay/log/journal.h"
#include "relay/log/ledger.h"

#define LOG_DIR_LOCK "lock"
#define LOG_DIR_SEGMENTS "segments"
#define LOG_DIR_JOURNAL "journal.%u" /* 0 or 1 */

struct cw_err;
struct relay_journal;

struct log_dir {
    const char *path;
    int dir; /* -1: it is not open */
    int lock;
    int segments;
    int journals[2];
};

#define LOG_DIR_CLOSED                                                                             \
    ((struct log_dir){.dir = -1, .lock = -1, .segments = -1, .journals = {-1, -1}})

/* Makes it where there is none, and its files, and locks it. `path` stays. Errors: CW_ESYS,
 * CW_EBUSY: another relay uses it; CW_EINVAL: it is in memory, or others may write to it or own its
 * files. */
int log_dir_open(struct log_dir *dir, const char *path, struct cw_err *err);

/* Finds the journal that counts, and in *journal where the next one goes; `relay` is the mark of
 * our key. Unless something was left in `memory`: makes of the journal what a relay leaves there.
 * Errors: as restore; CW_EINVAL: it is another relay's, or of another version. */
int log_dir_restore(const struct log_dir *dir, uint64_t relay, struct ledger_memory *memory,
                    const struct relay_region *region, struct relay_journal *journal,
                    struct cw_err *err);

/* Returns 0 or an errno: ENODATA where the file ends before. */
int log_dir_read_at(int file, uint8_t *to, uint64_t size, uint64_t offset);

/* `keep`: its files stay, for who comes after us; else they go, and the directory too where we
 * made it and nothing else is in it. */
void log_dir_close(struct log_dir *dir, bool keep);

#endif
