/* Many connections to a relay that say nothing.
 *
 *   crowd ADDRESS COUNT RATE SECONDS
 *
 * Makes COUNT connections, evenly over a second's RATE of them (0: at once), waits until each has
 * heard the relay's CHALLENGE or was closed, and stays for SECONDS. A rank would say HELLO within
 * 10 s, and so the relay closes who does not: stay for less. Prints
 *
 *   served N         heard CHALLENGE
 *   refused N        could not connect, or were closed before
 *   last_ms T        from the first connect to the last CHALLENGE
 *   there            all of this is so; then it stays
 */
#include "common/clock.h"
#include "common/frame.h"
#include "common/transport.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define COUNT_MAX 100000
#define PATIENCE_MS 30000 /* without news of anybody */
#define CHALLENGE_BYTES (CW_FRAME_HEADER + CW_CHALLENGE_SIZE)

static struct pollfd fds[COUNT_MAX];
static size_t got[COUNT_MAX];
static int count;
static int served;
static int refused;
static uint64_t last_ns;

static void give_up(const char *what)
{
    fprintf(stderr, "crowd: %s\n", what);
    exit(1);
}

static void leave(int i)
{
    close(fds[i].fd);
    fds[i].fd = -1;
    refused++;
}

static void hear(int i)
{
    char bytes[CHALLENGE_BYTES];
    ssize_t n = recv(fds[i].fd, bytes, sizeof(bytes) - got[i], MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        leave(i);
        return;
    }
    got[i] += (size_t)n;
    if (got[i] == sizeof(bytes)) {
        served++;
        fds[i].events = 0;
        last_ns = cw_clock_ns();
    }
}

/* Returns false when nobody has news within the time. */
static bool listen_to_all(int made, int wait_ms)
{
    int n = poll(fds, (nfds_t)made, wait_ms);

    for (int i = 0; n > 0 && i < made; i++)
        if (fds[i].fd >= 0 && got[i] < CHALLENGE_BYTES && fds[i].revents)
            hear(i);
    return n > 0;
}

static void connect_one(const struct cw_address *address, int i)
{
    struct cw_err err = {0};

    fds[i].fd = cw_connect(address, &err);
    fds[i].events = POLLIN;
    if (fds[i].fd < 0) {
        fprintf(stderr, "crowd: %s\n", err.text);
        refused++;
    }
}

static void connect_all(const struct cw_address *address, uint64_t rate)
{
    uint64_t start = cw_clock_ns();

    for (int i = 0; i < count; i++) {
        uint64_t due = rate ? start + (uint64_t)i * 1000000000 / rate : start;

        while (cw_clock_ns() < due)
            listen_to_all(i, 1);
        connect_one(address, i);
    }
    while (served + refused < count)
        if (!listen_to_all(count, PATIENCE_MS))
            give_up("the relay neither answers nor closes a connection");
    last_ns = last_ns > start ? last_ns - start : 0;
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    struct cw_address address;
    struct cw_err err = {0};

    count = argc == 5 ? atoi(argv[2]) : 0;
    if (count < 1 || count > COUNT_MAX)
        give_up("usage: crowd ADDRESS COUNT RATE SECONDS, with COUNT from 1 to 100000");
    if (cw_address_parse(&address, argv[1], &err) < 0)
        give_up(err.text);
    raise_descriptor_limit();
    connect_all(&address, strtoull(argv[3], NULL, 10));
    printf("served %d\nrefused %d\nlast_ms %.1f\nthere\n", served, refused, (double)last_ns / 1e6);
    fflush(stdout);
    sleep((unsigned)atoi(argv[4]));
    return 0;
}
