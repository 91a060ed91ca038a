/* What the system calls cost that a small message is made of, on this machine now: prints lines
 * "NAME NANOSECONDS". */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 300000
#define FRAME 49 /* bytes of a SEND or MESSAGE frame with one byte of payload */

static int sockets[2];
static int pipes[2];
static char bytes[4096];

static void yield(void)
{
    sched_yield();
}

static void read_nothing(void)
{
    recv(sockets[0], bytes, sizeof(bytes), MSG_DONTWAIT);
}

static void poll_nothing(void)
{
    struct pollfd fds[2] = {{.fd = sockets[0], .events = POLLIN},
                            {.fd = sockets[1], .events = POLLIN}};

    poll(fds, 2, 0);
}

static void through_socket(void)
{
    send(sockets[1], bytes, FRAME, MSG_DONTWAIT);
    recv(sockets[0], bytes, sizeof(bytes), MSG_DONTWAIT);
}

static void through_pipe(void)
{
    if (write(pipes[1], bytes, FRAME) < 0 || read(pipes[0], bytes, sizeof(bytes)) < 0)
        perror("pipe");
}

static void run_on(size_t core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void await(int fd)
{
    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
        sched_yield();
}

/* The answering side of an exchange, in a process of its own on a core of its own. */
static void answer(void)
{
    run_on(1);
    for (int i = 0; i < ROUNDS; i++) {
        await(sockets[1]);
        send(sockets[1], bytes, FRAME, MSG_DONTWAIT);
    }
    _exit(0);
}

static void across_cores(void)
{
    send(sockets[0], bytes, FRAME, MSG_DONTWAIT);
    await(sockets[0]);
}

static void measure(const char *name, void (*call)(void))
{
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < ROUNDS; i++)
        call();
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%s %.0f\n", name,
           ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / ROUNDS);
}

int main(void)
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0 || pipe2(pipes, O_NONBLOCK) < 0) {
        perror("primitives");
        return 1;
    }
    measure("sched_yield", yield);
    measure("recv-of-nothing", read_nothing);
    measure("poll-of-two", poll_nothing);
    measure("unix-socket-send-and-recv", through_socket);
    measure("pipe-write-and-read", through_pipe);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return 0;
    fflush(stdout);
    if (fork() == 0)
        answer();
    run_on(0);
    measure("unix-socket-round-trip-between-two-cores", across_cores);
    return 0;
}
