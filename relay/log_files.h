/* The files of a relay's logs, as its options say: one without a name, or, where the log is to
 * survive the loss of power, a directory. */
#ifndef RELAY_LOG_FILES_H
#define RELAY_LOG_FILES_H

#include "relay/disk.h"
#include "relay/log_dir.h"
#include "relay/options.h"

struct log_files {
    struct disk *disk;  /* NULL: there is none */
    struct log_dir dir; /* open where the log survives the loss of power */
};

/* Opens them, and fills in `config` log_disk and journal; its key, region and ledger are set.
 * `file`: -1, or what is kept for the log by who started the relay (disk_make_file); `kept`:
 * somebody keeps it. What was left in the directory is in config->ledger then. Nothing is opened
 * where none is wanted, or where nobody asked for it by name and it cannot be had.
 * Errors, with nothing left open: those of disk_open, log_dir_open and log_dir_restore. */
int log_files_open(struct log_files *files, const struct relay_settings *settings, int file,
                   bool kept, struct relay_core_config *config, struct cw_err *err);

/* What a relay with these options will have for logs on disk, as far as can be said without making
 * a file there; 0: none. From any process. */
uint64_t log_files_disk_bytes(const struct relay_settings *settings);

/* Writes no more. To be called before the core is freed. */
void log_files_settle(struct log_files *files);
/* `keep`: what is in the directory is for who comes after us. */
void log_files_close(struct log_files *files, bool keep);

#endif
