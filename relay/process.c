#include "relay/process.h"
#include "common/fd.h"
#include "common/keyfile.h"
#include "relay/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_MS 5000 /* for the relay to end */

int relay_kept_make(struct relay_kept *kept, const char *log_dir, struct cw_err *err)
{
    if (kept->state_fd >= 0)
        return CW_OK;
    kept->state_fd = memfd_create("causeway-log", MFD_CLOEXEC);
    if (kept->state_fd < 0)
        return cw_err_set(err, CW_ESYS, "starting the relay: memfd_create: %s", strerror(errno));
    if (log_dir)
        kept->disk_fd = disk_make_file(log_dir);
    return CW_OK;
}

void relay_kept_close(struct relay_kept *kept)
{
    cw_close(&kept->state_fd);
    cw_close(&kept->disk_fd);
}

int relay_pipes_open(struct relay_pipes *pipes, const uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    int key_pipe[2] = {-1, -1};
    int ready_pipe[2] = {-1, -1};
    int failed = CW_OK;

    if (pipe2(key_pipe, O_CLOEXEC) < 0 || pipe2(ready_pipe, O_CLOEXEC) < 0)
        failed = cw_err_set(err, CW_ESYS, "starting the relay: pipe: %s", strerror(errno));
    else
        failed = cw_key_write_fd(key_pipe[1], key, err);
    cw_close(&key_pipe[1]);
    *pipes = (struct relay_pipes){key_pipe[0], ready_pipe[1], ready_pipe[0]};
    if (failed)
        relay_pipes_close(pipes);
    return failed;
}

void relay_pipes_pass(struct relay_pipes *pipes)
{
    cw_close(&pipes->key_fd);
    cw_close(&pipes->ready_fd);
}

void relay_pipes_close(struct relay_pipes *pipes)
{
    relay_pipes_pass(pipes);
    cw_close(&pipes->listens_fd);
}

bool relay_process_listens(int listens_fd)
{
    char line[CW_TEXT_MAX];

    return read(listens_fd, line, sizeof(line)) > 0;
}

void relay_process_await_end(pid_t pid)
{
    struct timespec t = {.tv_nsec = 1000000};
    int status;

    for (int ms = 0; ms < END_MS; ms++) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            return;
        nanosleep(&t, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}
