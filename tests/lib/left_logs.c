/* Makes a directory of logs, as a relay leaves it that has lost power:
 *
 *   left_logs DIR [KEY-FILE [trimmed]]
 *
 * A job of two relays, with messages that wait, are on their way, and are logged in the journal and
 * on disk. The key of the relay is written to KEY-FILE. `trimmed`: a rank's log begins at an image.
 */
#include "common/cred.h"
#include "common/keyfile.h"
#include "relay/log/store.h"
#include "tests/lib/left_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION (256ull << 20)
#define MEMORY_MAX (200u << 20)
#define LOG_MEMORY (2u << 20)
#define LOG_DISK (64u << 20)
#define MESSAGES 60u

static int files[STORE_FILES];

static int carry_out(const struct relay_log_io *io)
{
    ssize_t n = io->write ? pwrite(files[io->file], io->at, io->size, (off_t)io->offset)
                          : pread(files[io->file], io->at, io->size, (off_t)io->offset);

    return n < 0 ? errno : n == (ssize_t)io->size ? 0 : EIO;
}

static int open_files(const char *dir)
{
    static const char *const names[STORE_FILES] = {"segments", "journal.0", "journal.1"};
    int at = open(dir, O_RDONLY | O_DIRECTORY);
    int failed = at < 0 || openat(at, "lock", O_WRONLY | O_CREAT, 0600) < 0;

    for (int i = 0; i < STORE_FILES && !failed; i++) {
        files[i] = openat(at, names[i], O_RDWR | O_CREAT | O_TRUNC, 0600);
        failed = files[i] < 0;
    }
    return failed;
}

static int write_key(const char *path)
{
    struct cw_err err = {0};
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd >= 0 && cw_key_write_fd(fd, left_job_key, &err) == CW_OK)
        return close(fd);
    return -1;
}

static int make(bool trimmed)
{
    struct relay_core_config config = {.memory_max = MEMORY_MAX,
                                       .log_memory = LOG_MEMORY,
                                       .log_disk = LOG_DISK,
                                       .journal.number = 1,
                                       .journal.relay = cw_cred_mark(left_job_key)};

    config.ledger = mmap(NULL, sizeof(struct ledger_memory) + REGION, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (config.ledger == MAP_FAILED)
        return -1;
    config.region = (struct relay_region){.start = (uint8_t *)(config.ledger + 1), .size = REGION};
    left_job_open(&config, carry_out);
    left_job_begin(MESSAGES, trimmed ? MESSAGES : 0);
    return left_job_leave() ? 0 : -1; /* nothing of it is given back */
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fputs("usage: left_logs DIR [KEY-FILE [trimmed]]\n", stderr);
        return 2;
    }
    if (open_files(argv[1]) || (argc > 2 && write_key(argv[2])) || make(argc > 3)) {
        fprintf(stderr, "left_logs: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    return 0;
}
