#include "tests/image/taker.h"
#include "rdevice/image/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct cw_err error;
static uint32_t number;
static char path[4096];
static pid_t reader; /* of the copy */
const char *taker_error = error.text;
struct image_outcome taker_outcome;
int taker_control = -1;

/* A slow way to the file: some 60 MB/s. */
static int behind_a_reader(int file)
{
    static char bytes[65536];
    int ends[2];
    ssize_t n;

    if (pipe(ends) < 0)
        return -1;
    reader = fork();
    if (reader > 0) {
        close(ends[0]);
        close(file);
        return ends[1];
    }
    close(ends[1]);
    while ((n = read(ends[0], bytes, sizeof(bytes))) > 0 && write(file, bytes, (size_t)n) == n)
        usleep(1000);
    _exit(n == 0 ? 0 : 1);
}

static int open_file(void *ctx, uint64_t bytes, uint32_t *base, struct cw_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    (void)ctx;
    (void)bytes;
    (void)base; /* as ordered */
    if (fd >= 0 && getenv("SLOW"))
        fd = behind_a_reader(fd);
    if (fd < 0)
        cw_err_set(err, CW_ESYS, "%s: %s", path, strerrordesc_np(errno));
    return fd;
}

static int finish(void *ctx, int fd, struct cw_err *err)
{
    int status = 0;

    (void)ctx;
    if (close(fd) == 0 && (reader == 0 || (waitpid(reader, &status, 0) == reader && status == 0)))
        return 0;
    return cw_err_set(err, CW_ESYS, "%s: %s", path, strerrordesc_np(errno));
}

void taker_name_standard(struct image_setting *setting)
{
    struct stat st;

    for (int fd = 0; fd < 3; fd++)
        setting->standard[fd] = fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static int await_end(void)
{
    enum image_state state;

    while ((state = image_poll(&taker_outcome)) == IMAGE_ON_ITS_WAY)
        usleep(1000);
    if (state == IMAGE_STORED)
        return 0;
    error = taker_outcome.err;
    return -1;
}

int taker_take_with(struct image_setting *setting)
{
    struct image_order order = {.ranks = 4,
                                .rank = 1,
                                .incarnation = 1,
                                .number = number + 1,
                                .base = getenv("BASE") ? number : 0};
    const char *name = getenv("IMAGE");
    int pair[2];

    number++;
    if (image_probe(&error))
        return -1;
    snprintf(path, sizeof(path), "%s.%u", name ? name : "image", number);
    setting->open = open_file;
    setting->finish = finish;
    taker_name_standard(setting);
    if (getenv("CONTROL") && taker_control < 0 &&
        socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0) {
        taker_control = pair[0];
        setting->closed[setting->closed_count++] = pair[1];
        setting->given[setting->given_count++] = taker_control;
    }
    memcpy(order.job, "a job of a test", sizeof(order.job));
    switch (image_take(&order, setting, &error)) {
    case IMAGE_RESTORED:
        for (uint32_t i = 0; image_remark(i); i++)
            printf("remark: %s\n", image_remark(i));
        return 1;
    case IMAGE_BEGUN:
        return await_end();
    default:
        return -1;
    }
}

int taker_take(void)
{
    struct image_setting setting = {0};
    int taken = taker_take_with(&setting);

    if (taken >= 0)
        return taken;
    fprintf(stderr, "no image: %s\n", taker_error);
    exit(3);
}
