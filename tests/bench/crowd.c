/* Many connections to a relay that do nothing.
 *
 *   crowd ADDRESS COUNT RATE SECONDS [KEY-FILE [--rings]]
 *
 * Makes COUNT connections, RATE of them a second (0: at once), waits until each has heard the
 * relay's CHALLENGE or was closed, and stays for SECONDS. The relay closes who has said nothing for
 * 10 s; with the relay's key they are the ranks of a job, say HELLO, and may stay for longer. They
 * speak through sockets, or with --rings through the memory that the relay offers. Prints
 *
 *   served N         heard CHALLENGE, and WELCOME with a key
 *   refused N        could not connect, or were closed before
 *   last_ms T        from the first connect to the last CHALLENGE
 *   rings N          took the relay's memory
 *   there            now it stays
 */
#include "common/clock.h"
#include "common/cred.h"
#include "common/hello.h"
#include "common/keyfile.h"
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
static int with_rings;
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

/* Returns whether it is welcome. */
static bool say_hello(struct cw_wire *wire, struct cw_hello *hello, const uint8_t *key)
{
    struct cw_session session = {0};
    struct cw_welcome welcome;
    struct cw_err err = {0};

    if (cw_hello_open(wire, &session, hello, key, PATIENCE_MS, &welcome, &err) == CW_OK)
        return true;
    fprintf(stderr, "crowd: %s\n", err.text);
    return false;
}

/* What it maps stays until the end of the process, as its socket does. */
static void join_job(int i, const uint8_t *job_key, bool rings)
{
    struct cw_hello hello = {.role = CW_ROLE_RANK, .rank = (uint32_t)i, .incarnation = 1};
    struct cw_wire wire = {.fd = fds[i].fd};
    uint8_t key[CW_KEY_SIZE];

    cw_cred_rank_key(key, job_key, hello.rank, hello.incarnation);
    if (rings)
        cw_wire_want(&wire, NULL);
    if (!say_hello(&wire, &hello, key))
        give_up("a rank is not welcome");
    served++;
    with_rings += wire.mode == CW_WIRE_RINGS;
}

/* A job of as many ranks as there are to be connections. */
static void connect_job(const struct cw_address *address, const char *key_file, bool rings)
{
    struct cw_hello hello = {
        .role = CW_ROLE_DISPATCHER, .rank = (uint32_t)count, .flags = CW_HELLO_LOG};
    uint8_t relay_key[CW_KEY_SIZE];
    uint8_t job_key[CW_KEY_SIZE];
    struct cw_err err = {0};
    struct cw_wire dispatcher = {.fd = cw_connect(address, &err)};

    if (dispatcher.fd < 0 || cw_key_load(key_file, relay_key, &err) < 0)
        give_up(err.text);
    cw_cred_job_key(job_key, relay_key, hello.job);
    if (!say_hello(&dispatcher, &hello, job_key))
        give_up("the relay does not open a job");
    for (int i = 0; i < count; i++) {
        connect_one(address, i);
        if (fds[i].fd >= 0)
            join_job(i, job_key, rings);
    }
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

    count = argc >= 5 && argc <= 7 ? atoi(argv[2]) : 0;
    if (count < 1 || count > COUNT_MAX || (argc == 7 && strcmp(argv[6], "--rings") != 0))
        give_up("usage: crowd ADDRESS COUNT RATE SECONDS [KEY-FILE [--rings]], with COUNT from 1 "
                "to 100000");
    if (cw_address_parse(&address, argv[1], &err) < 0)
        give_up(err.text);
    raise_descriptor_limit();
    if (argc >= 6)
        connect_job(&address, argv[5], argc == 7);
    else
        connect_all(&address, strtoull(argv[3], NULL, 10));
    printf("served %d\nrefused %d\nlast_ms %.1f\n", served, refused, (double)last_ns / 1e6);
    printf("rings %d\nthere\n", with_rings);
    fflush(stdout);
    sleep((unsigned)atoi(argv[4]));
    return 0;
}
