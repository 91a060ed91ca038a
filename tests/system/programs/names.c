/* What came of operations on names, the names that libc draws, and what it tells of the host, are
   told to the neighbour, in argv[1] rounds (default 40), before MPI_Init too. Each rank has files
   of its own in the working directory. */
#define _GNU_SOURCE
#include "tell.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { NAME_TAG = 2, NAME_MAX_BYTES = 100 };

static char own[NAME_MAX_BYTES]; /* a directory */

static uint64_t of_bytes(uint64_t sum, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = tell_mix(sum, ((const unsigned char *)bytes)[i]);
    return sum;
}

static uint64_t of_text(uint64_t sum, const char *text)
{
    return of_bytes(sum, text, strlen(text));
}

/* 0, or why it failed. */
static uint64_t came_of(uint64_t sum, int result)
{
    return tell_mix(sum, result < 0 ? (uint64_t)errno : 0);
}

static void in_own(char *to, const char *name)
{
    snprintf(to, 2 * NAME_MAX_BYTES, "%s/%s", own, name);
}

static uint64_t drawn(uint64_t sum)
{
    char name[2 * NAME_MAX_BYTES];
    char *other;
    int fd;

    in_own(name, "dXXXXXX");
    if (!mkdtemp(name))
        CHECK("mkdtemp", 0, errno);
    sum = of_text(sum, name);
    sum = came_of(sum, rmdir(name));
    in_own(name, "fXXXXXX.dat");
    fd = mkstemps(name, 4);
    CHECK("bytes written to a drawn file", 3, write(fd, "abc", 3));
    CHECK("its size", 3, lseek(fd, 0, SEEK_END));
    close(fd);
    sum = of_text(sum, name);
    sum = came_of(sum, unlink(name));
    other = tempnam(own, "t");
    sum = of_text(sum, other);
    free(other);
    return sum;
}

static uint64_t made(uint64_t sum)
{
    char dir[2 * NAME_MAX_BYTES], file[2 * NAME_MAX_BYTES], moved[2 * NAME_MAX_BYTES];
    FILE *f;
    int fd;

    in_own(dir, "made");
    in_own(file, "made/file");
    in_own(moved, "made/moved");
    sum = came_of(sum, mkdir(dir, 0700));
    sum = came_of(sum, mkdir(dir, 0700));
    fd = open(file, O_CREAT | O_EXCL | O_RDWR, 0600);
    sum = came_of(sum, fd);
    CHECK("a new file is empty", 0, lseek(fd, 0, SEEK_END));
    CHECK("bytes written", 5, write(fd, "hello", 5));
    close(fd);
    f = fopen(file, "wx");
    sum = came_of(sum, f ? 0 : -1);
    sum = came_of(sum, symlink("file", moved));
    sum = came_of(sum, symlink("file", moved));
    sum = came_of(sum, rename(file, moved));
    sum = came_of(sum, unlink(file));
    sum = came_of(sum, unlink(moved));
    f = fopen(file, "wx");
    sum = came_of(sum, f ? 0 : -1);
    if (f)
        fclose(f);
    sum = came_of(sum, remove(file));
    return came_of(sum, rmdir(dir));
}

/* How often it had expired when it was asked, without waiting. */
static uint64_t of_timer(uint64_t sum)
{
    static int fd = -1;
    struct itimerspec often = {.it_value.tv_nsec = 1000, .it_interval.tv_nsec = 1000};
    uint64_t times = 0;

    if (fd < 0) {
        fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        timerfd_settime(fd, 0, &often, NULL);
    }
    sum = came_of(sum, read(fd, &times, sizeof(times)) < 0 ? -1 : 0);
    return tell_mix(sum, times);
}

static uint64_t of_host(uint64_t sum)
{
    struct itimerval left = {.it_value.tv_sec = 1000}, old;
    struct utsname host;
    cpu_set_t cores;
    char name[NAME_MAX_BYTES];

    uname(&host);
    gethostname(name, sizeof(name));
    sum = of_text(of_text(sum, host.nodename), name);
    sum = tell_mix(sum, (uint64_t)sysconf(_SC_AVPHYS_PAGES));
    sum = tell_mix(sum, (uint64_t)get_nprocs() << 32 ^ (uint64_t)get_avphys_pages());
    sum = tell_mix(sum, (uint64_t)sched_getcpu());
    sched_getaffinity(0, sizeof(cores), &cores);
    sum = of_bytes(sum, &cores, sizeof(cores));
    setitimer(ITIMER_VIRTUAL, &left, NULL);
    getitimer(ITIMER_VIRTUAL, &old);
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){.it_value.tv_sec = 0}, &left);
    sum = tell_mix(sum, (uint64_t)(old.it_value.tv_usec ^ left.it_value.tv_usec << 20));
    return of_timer(sum);
}

int main(int argc, char **argv)
{
    uint64_t early = of_bytes(of_host(1), (void *)getauxval(AT_RANDOM), 16);
    uint64_t out[TELL_WORDS_MAX], in[TELL_WORDS_MAX];
    struct teller t;
    MPI_Status status;
    int count, rounds;

    check_init(&argc, &argv);
    rounds = argc > 1 ? atoi(argv[1]) : 40;
    snprintf(own, sizeof(own), "names.%d", check_rank);
    mkdir(own, 0700);
    t = tell_start();
    for (int round = 0; round < rounds; round++) {
        uint64_t value = tell_mix(drawn(made(of_host((uint64_t)round))), round ? 0 : early);

        check_item = round;
        count = tell_prepare(&t, out, value);
        MPI_Sendrecv(out, count, MPI_UINT64_T, t.right, NAME_TAG, in, TELL_WORDS_MAX, MPI_UINT64_T,
                     t.left, NAME_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        tell_hear(&t, in, count);
        tell_echo(&t);
    }
    /* the directory stays: a rank that goes on from an image does not make it again */
    return check_finish("names");
}
