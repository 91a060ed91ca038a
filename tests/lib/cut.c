/* Stands between clients and a server, both on sockets with a path, and breaks connections off:
 *
 *   cut LISTEN CONNECT BYTES TIMES [stand|other|up SEED]
 *
 * Passes on what comes on connections to LISTEN, and what the server at CONNECT answers. Of the
 * connections on which the server says BYTES bytes or more, the first TIMES are closed there, or
 * stand still (`stand`), and it prints a line for each. `other`: who asks for an image of rank 0
 * gets that of rank 1, and the other way round. `up`: every other connection, about,
 * is to be closed after a drawn number of bytes that the client says, at most BYTES; of those that
 * come so far the first TIMES are. Ends with its parent. */
#include "common/frame.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static atomic_long *left; /* connections that are to be broken off; of all processes */

static void bad(const char *what)
{
    perror(what);
    exit(1);
}

static int open_socket(const char *path, int (*use)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || use(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        bad(path);
    return fd;
}

/* A client waits for an answer before it says FETCH: that comes alone. */
static void change(char *bytes, ssize_t size)
{
    if (size == CW_FRAME_HEADER + CW_IMAGE_REF_SIZE && bytes[4] == CW_FRAME_FETCH)
        bytes[CW_FRAME_HEADER] ^= 1;
}

/* Returns how many bytes, at most `most`, went from one to the other; 0: that was the end. */
static long pass(int from, int to, bool changes, long most)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, most < (long)sizeof(bytes) ? (size_t)most : sizeof(bytes));

    if (changes)
        change(bytes, n);
    for (ssize_t at = 0, m; at < n; at += m) {
        m = send(to, bytes + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (m <= 0)
            return 0;
    }
    return n > 0 ? n : 0;
}

/* What the client says ends after `bytes`; if it was not to be broken off, the rest goes on. */
static void serve_up(int client, const char *connect_to, long bytes)
{
    int server = open_socket(connect_to, connect);
    struct pollfd both[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    long said = 0;

    while (poll(both, 2, -1) > 0) {
        long n = both[0].revents ? pass(client, server, false, bytes - said) : 0;

        if ((both[0].revents && n == 0) ||
            (both[1].revents && pass(server, client, false, LONG_MAX) == 0))
            return;
        said += n;
        if (said < bytes)
            continue;
        if (atomic_fetch_sub(left, 1) > 0) {
            printf("breaks off after %ld bytes\n", bytes);
            fflush(stdout);
            return;
        }
        bytes = LONG_MAX;
    }
}

static void serve(int client, const char *connect_to, long bytes, const char *how)
{
    int server = open_socket(connect_to, connect);
    struct pollfd both[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    long said = 0;
    int decided = 0;

    while (poll(both, 2, -1) > 0) {
        long n = both[1].revents ? pass(server, client, false, LONG_MAX) : 0;

        if ((both[1].revents && n == 0) ||
            (both[0].revents && pass(client, server, strcmp(how, "other") == 0, LONG_MAX) == 0))
            return;
        said += n;
        if (decided || said < bytes)
            continue;
        decided = 1;
        if (atomic_fetch_sub(left, 1) <= 0)
            continue;
        puts(strcmp(how, "stand") == 0 ? "stands still" : "breaks off");
        fflush(stdout);
        if (strcmp(how, "stand") != 0)
            return;
        for (;;)
            pause();
    }
}

int main(int argc, char **argv)
{
    bool up = argc > 6 && strcmp(argv[5], "up") == 0;
    int listener;

    if (argc < 5)
        return 2;
    srandom(up ? (unsigned)strtoul(argv[6], NULL, 10) : 1);
    signal(SIGCHLD, SIG_IGN);
    left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (left == MAP_FAILED)
        bad("mmap");
    atomic_store(left, atol(argv[4]));
    listener = open_socket(argv[1], bind);
    if (listen(listener, 64) < 0)
        bad("listen");
    for (;;) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        long drawn = random() % 2 ? 1 + random() % atol(argv[3]) : LONG_MAX;

        if (client >= 0 && fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(listener);
            if (up)
                serve_up(client, argv[2], drawn);
            else
                serve(client, argv[2], atol(argv[3]), argc > 5 ? argv[5] : "");
            _exit(0);
        }
        close(client);
    }
}
