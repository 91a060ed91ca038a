/* Rank 0 looks for standard input in every way that a program has, without waiting for long, and
   tells its neighbour what it found, until the input ends. It prints the first line, which stdio
   takes with all that is there already; then how many bytes came after that, and a sum of them. */
#define _GNU_SOURCE
#include "tell.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

enum { INPUT_TAG = 3, PIECE = 7, PAUSE_US = 500, FEW_MS = 2 };

static struct {
    int again; /* a second descriptor of it */
    int set;   /* of epoll */
    int other[2];
    uint64_t bytes, sum;
    int ended;
} in;

/* What read() said; the bytes count where they come. */
static uint64_t took(const char *bytes, ssize_t n)
{
    in.ended |= n == 0;
    for (ssize_t i = 0; i < n; i++)
        in.sum = in.sum * 31 + (unsigned char)bytes[i];
    in.bytes += n > 0 ? (uint64_t)n : 0;
    return (uint64_t)n;
}

static uint64_t take(int fd, size_t size)
{
    char bytes[4096];

    return took(bytes, read(fd, bytes, size));
}

static uint64_t by_poll(int fd)
{
    struct pollfd set[] = {{.fd = in.other[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    int found = poll(set, 2, FEW_MS);

    return found > 0 ? take(fd, PIECE) << 8 ^ (uint64_t)set[1].revents : 1000;
}

static uint64_t by_select(int fd)
{
    struct timeval timeout = {.tv_usec = FEW_MS * 1000};
    struct timespec none = {0};
    fd_set set;
    uint64_t found;

    FD_ZERO(&set);
    FD_SET(fd, &set);
    found = (uint64_t)select(fd + 1, &set, NULL, NULL, &timeout);
    found = found << 32 ^ (uint64_t)timeout.tv_usec;
    FD_SET(fd, &set);
    if (pselect(fd + 1, &set, NULL, NULL, &none, NULL) > 0 && FD_ISSET(fd, &set))
        found ^= take(fd, PIECE) << 16;
    return found;
}

static uint64_t by_count(int fd)
{
    int there = 0;

    ioctl(fd, FIONREAD, &there);
    return there > 0 ? take(fd, (size_t)there / 2 + 1) << 16 ^ (uint64_t)there : 2000;
}

static uint64_t not_waiting(int fd)
{
    char a[PIECE], b[2 * PIECE];
    struct iovec to[] = {{a, sizeof(a)}, {b, sizeof(b)}};
    ssize_t n;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    n = readv(fd, to, 2);
    fcntl(fd, F_SETFL, 0);
    took(a, n < PIECE ? n : PIECE);
    if (n > PIECE)
        took(b, n - PIECE);
    return (uint64_t)n;
}

static uint64_t by_epoll(int fd)
{
    struct epoll_event found = {0};
    int count = epoll_wait(in.set, &found, 1, FEW_MS);

    return count > 0 ? take(fd, PIECE) << 8 ^ found.events ^ found.data.u64 : (uint64_t)count;
}

static uint64_t look(int round)
{
    static uint64_t (*const ways[])(int fd) = {by_poll, by_select, by_count, not_waiting, by_epoll};
    static const size_t count = sizeof(ways) / sizeof(*ways);

    return in.ended ? 0 : ways[(size_t)round % count]((size_t)round / count % 2 ? in.again : 0);
}

static void start(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77};
    char line[64];

    /* stdio takes more of it than a line, and keeps it */
    if (check_rank == 0 && fgets(line, sizeof(line), stdin)) {
        in.sum = (unsigned char)line[0];
        printf("%s", line);
        fflush(stdout);
    }
    in.again = dup(STDIN_FILENO);
    in.set = epoll_create1(0);
    epoll_ctl(in.set, EPOLL_CTL_ADD, STDIN_FILENO, &event);
    CHECK("pipe", 0, pipe(in.other));
}

int main(int argc, char **argv)
{
    uint64_t out[TELL_WORDS_MAX], into[TELL_WORDS_MAX];
    struct teller t;
    MPI_Status status;
    int all = 0;

    check_init(&argc, &argv);
    start();
    t = tell_start();
    for (int round = 0; !all; round++) {
        int count = tell_prepare(&t, out, check_rank ? (uint64_t)round : look(round));

        check_item = round;
        MPI_Sendrecv(out, count, MPI_UINT64_T, t.right, INPUT_TAG, into, TELL_WORDS_MAX,
                     MPI_UINT64_T, t.left, INPUT_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        tell_hear(&t, into, count);
        tell_echo(&t);
        all = in.ended;
        MPI_Bcast(&all, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(PAUSE_US);
    }
    if (check_rank == 0)
        printf("%llu bytes, sum %llx\n", (unsigned long long)in.bytes, (unsigned long long)in.sum);
    return check_finish("stdin_ways");
}
