/* given_up WHAT: an image that does not come to its end; then one that does. */
#include "tests/image/taker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const char *what;

/* Which nobody reads, as the device opens one. */
static int open_stalled(void)
{
    struct timeval bound = {.tv_usec = 200000};
    int ends[2], room = 4096;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 ||
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) < 0 ||
        setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound)) < 0)
        return -1;
    return ends[0];
}

static int open_it(void *ctx, uint64_t bytes, uint32_t *base, struct cw_err *err)
{
    (void)ctx;
    (void)bytes;
    *base = 0;
    if (!strcmp(what, "failed"))
        return cw_err_set(err, CW_ESYS, "the image has nowhere to go");
    if (!strcmp(what, "unfinished"))
        return open("/dev/null", O_WRONLY);
    if (!strcmp(what, "stalled"))
        return open_stalled();
    if (!strcmp(what, "killed"))
        raise(SIGKILL);
    for (;;)
        pause();
}

static int finish(void *ctx, int fd, struct cw_err *err)
{
    (void)ctx;
    (void)fd;
    return cw_err_set(err, CW_ESYS, "it is not safe");
}

static void begin(void)
{
    struct image_order order = {.ranks = 1, .number = 1};
    struct image_setting setting = {.open = open_it, .finish = finish};
    struct image_outcome outcome;
    struct cw_err err = {0};
    enum image_state state;

    taker_name_standard(&setting);
    if (image_take(&order, &setting, &err) != IMAGE_BEGUN) {
        printf("not begun: %s\n", err.text);
        exit(1);
    }
    if (!strcmp(what, "orphan"))
        _exit(0);
    if (!strcmp(what, "busy")) {
        if (image_take(&order, &setting, &err) == IMAGE_REFUSED)
            printf("%s\n", err.text);
    }
    if (!strcmp(what, "busy") || !strcmp(what, "cancelled")) {
        image_cancel();
        printf("state %d\n", image_poll(&outcome));
        return;
    }
    while ((state = image_poll(&outcome)) == IMAGE_ON_ITS_WAY)
        usleep(1000);
    printf("state %d: %s\n", state, outcome.err.text);
}

int main(int argc, char **argv)
{
    struct image_setting setting = {0};
    int restored;

    if (argc < 2)
        return 2;
    what = argv[1];
    begin();
    restored = taker_take_with(&setting);
    if (restored < 0) {
        printf("%s\n", taker_error);
        return 1;
    }
    printf("the next one: %s\n", restored ? "restored" : "went on");
    return 0;
}
