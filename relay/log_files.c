#include "relay/log_files.h"
#include "common/cred.h"
#include "common/err.h"
#include "common/tree.h"

#include <stdio.h>
#include <unistd.h>

static uint64_t bytes_of(const struct relay_settings *settings, const struct disk *disk)
{
    return settings->log_disk != RELAY_LOG_DISK_SHARE
               ? settings->log_disk
               : (disk_free(relay_settings_log_dir(settings)) + disk_held(disk)) / 2;
}

/* --- without a name ------------------------------------------------------------------------------
 */

/* A log that is to outlive the relay is in a file that does. */
static struct disk *open_kept(const char *dir, int file, bool kept, struct cw_err *err)
{
    struct disk *disk = disk_open(dir, file, err);

    if (disk && kept && file < 0) {
        cw_err_set(err, CW_ESYS, "--log-dir %s: who started the relay could make no file there",
                   dir);
        disk_close(disk);
        disk = NULL;
    }
    return disk;
}

static int open_unnamed(struct log_files *files, const struct relay_settings *settings, int file,
                        bool kept, struct cw_err *err)
{
    const char *dir = relay_settings_disk_dir(settings);
    bool asked = settings->log_dir || settings->log_disk != RELAY_LOG_DISK_SHARE;
    struct cw_err why = {0};

    if (!dir)
        return CW_OK;
    if (disk_in_memory(dir)) {
        if (!asked)
            return CW_OK;
        return cw_err_set(err, CW_EINVAL,
                          "--log-dir %s: its files are kept in memory, of which the log is to be "
                          "relieved; choose a directory on a disk, or --log-disk 0",
                          dir);
    }
    files->disk = open_kept(dir, file, kept, &why);
    if (files->disk)
        return CW_OK;
    if (asked)
        return cw_err_set(err, why.code, "%s", why.text);
    fprintf(stderr, "causeway relay: the logs have no disk: %s\n", why.text);
    return CW_OK;
}

/* --- a directory ---------------------------------------------------------------------------------
 */

static int open_named(struct log_files *files, const struct relay_settings *settings,
                      struct relay_core_config *config, struct cw_err *err)
{
    if (log_dir_open(&files->dir, settings->log_dir, err) < 0)
        return err->code;
    if (log_dir_restore(&files->dir, cw_cred_mark(config->key), config->ledger, &config->region,
                        &config->journal, err) < 0)
        return err->code;
    files->disk = disk_open(settings->log_dir, files->dir.segments, err);
    return files->disk ? disk_keep_journals(files->disk, files->dir.journals, err) : err->code;
}

int log_files_open(struct log_files *files, const struct relay_settings *settings, int file,
                   bool kept, struct relay_core_config *config, struct cw_err *err)
{
    int failed;

    *files = (struct log_files){.dir = LOG_DIR_CLOSED};
    failed = settings->log_safety == RELAY_LOG_SYNCED
                 ? open_named(files, settings, config, err)
                 : open_unnamed(files, settings, file, kept, err);
    if (failed)
        log_files_close(files, true);
    else if (files->disk)
        config->log_disk = bytes_of(settings, files->disk);
    return failed;
}

uint64_t log_files_disk_bytes(const struct relay_settings *settings)
{
    bool synced = settings->log_safety == RELAY_LOG_SYNCED;
    const char *dir = synced ? settings->log_dir : relay_settings_disk_dir(settings);

    if (!dir || (!synced && (disk_in_memory(dir) || access(dir, W_OK | X_OK) < 0)))
        return 0;
    if (settings->log_disk != RELAY_LOG_DISK_SHARE)
        return settings->log_disk;
    return (disk_free(dir) + (synced ? cw_tree_bytes(dir) : 0)) / 2;
}

void log_files_settle(struct log_files *files)
{
    disk_close(files->disk);
    files->disk = NULL;
}

void log_files_close(struct log_files *files, bool keep)
{
    log_files_settle(files);
    log_dir_close(&files->dir, keep);
}
