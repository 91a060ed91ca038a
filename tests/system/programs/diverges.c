/* A program that does not repeat itself. Each process of the last rank reads a number from the file
   argv[2], and leaves one more in it; the message that it then sends to rank 0 depends on the
   number, by argv[1]: its length, its tag, its dst (destination), or that it is sent at all
   (count). With argv[1] "disk" the length depends on how many files the file system of argv[2] has
   room for, which is one less once argv[2] is there; that is recorded, so that it repeats itself
   all the same. With argv[1] "clock" the first process asks for the time before it waits for two
   answers of rank 0, and the others do not. Or it depends on it what the message carries: 8 bytes
   (contents), 64 KiB (large), the end of a vector of 600 KiB, which is followed by another message
   (vector), or bytes that an active message brings to a window (put). With "random" these are 8
   bytes that the kernel has given by a system call of the program's own, and the file is left
   alone; with "threads" the process has another thread. With
   "inputs" two messages are sent, between which the rank is told something of each kind that a
   divergence names; the number makes the second one differ. When all have heard of it the last rank
   kills itself, as often as argv[4] says (once), of which it keeps count in the file argv[3].
   Without arguments every process behaves alike.
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { NUMBER_TAG = 10 };

static int read_and_count(const char *path)
{
    FILE *file = fopen(path, "r");
    int number = 0;

    if (file) {
        if (fscanf(file, "%d", &number) != 1)
            number = 0;
        fclose(file);
    }
    file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "diverges: cannot write %s\n", path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    } else {
        fprintf(file, "%d\n", number + 1);
        fclose(file);
    }
    return number;
}

static int room_for_files(const char *path)
{
    char dir[4096];
    struct statfs s;

    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = 0;
    if (statfs(dir, &s) < 0) {
        fprintf(stderr, "diverges: cannot ask about %s\n", dir);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return (int)(s.f_ffree % 512);
}

static void send_number(const char *how, int number)
{
    static const char bytes[1024];
    int length = 8, tag = NUMBER_TAG, to = 0;

    if (strcmp(how, "length") == 0 || strcmp(how, "disk") == 0)
        length += number;
    if (strcmp(how, "tag") == 0)
        tag += number;
    if (strcmp(how, "dst") == 0)
        to = number % 2;
    for (int i = 0; i < (strcmp(how, "count") == 0 && number > 0 ? 2 : 1); i++)
        MPI_Send(bytes, length, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

/* The same bytes each time, but for the last one of them. */
static void send_contents(const char *how, int number)
{
    static unsigned char bytes[2 * 600 << 10];
    int large = strcmp(how, "large") == 0;
    MPI_Datatype every_other;

    if (strcmp(how, "vector") == 0) {
        bytes[sizeof bytes - 2] = (unsigned char)number;
        MPI_Type_vector(sizeof bytes / 2, 1, 2, MPI_BYTE, &every_other);
        MPI_Type_commit(&every_other);
        MPI_Send(bytes, 1, every_other, 0, NUMBER_TAG, MPI_COMM_WORLD);
        MPI_Type_free(&every_other);
        MPI_Send(bytes, 8, MPI_BYTE, 0, NUMBER_TAG, MPI_COMM_WORLD);
        return;
    }
    bytes[large ? 65535 : 7] = (unsigned char)number;
    if (strcmp(how, "random") == 0 && syscall(SYS_getrandom, bytes, 8, 0) != 8)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Send(bytes, large ? 65536 : 8, MPI_BYTE, 0, NUMBER_TAG, MPI_COMM_WORLD);
}

static void put_number(int number)
{
    static int window[64];
    MPI_Win win;

    MPI_Win_create(window, sizeof window, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    if (check_rank == check_size - 1)
        MPI_Put(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void *sit(void *arg)
{
    pause();
    return arg;
}

/* The second one comes late: what the log holds of the first is at the relay by then. */
static void answer(void)
{
    struct timespec pause = {0, 100000000};

    for (int i = 0; i < 2; i++) {
        MPI_Send("", 1, MPI_BYTE, check_size - 1, NUMBER_TAG, MPI_COMM_WORLD);
        thrd_sleep(&pause, NULL);
    }
}

static void await_answers(int number)
{
    MPI_Request request[2];
    char byte[2];

    for (int i = 0; i < 2; i++)
        MPI_Irecv(&byte[i], 1, MPI_BYTE, 0, NUMBER_TAG, MPI_COMM_WORLD, &request[i]);
    if (number == 0)
        time(NULL);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}

static void die_once_more(const char *count, int times)
{
    if (read_and_count(count) < times)
        raise(SIGKILL);
}

/* 17 times, 2 random numbers, 2 operations on file names, of which one fails, and a message, also
 * looked for. */
static void be_told(const char *path)
{
    char dir[4096], byte;

    for (int i = 0; i < 17; i++)
        time(NULL);
    for (int i = 0; i < 2; i++)
        CHECK("random number", 1, getrandom(&byte, 1, 0));
    snprintf(dir, sizeof dir, "%s.dir", path);
    mkdir(dir, 0700);
    rmdir(dir);
    rmdir(dir);
    MPI_Probe(0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&byte, 1, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_after_inputs(const char *path, int number)
{
    static unsigned char bytes[8];

    MPI_Send(bytes, 8, MPI_BYTE, 0, NUMBER_TAG, MPI_COMM_WORLD);
    be_told(path);
    bytes[7] = (unsigned char)number;
    MPI_Send(bytes, 8, MPI_BYTE, 0, NUMBER_TAG, MPI_COMM_WORLD);
}

static bool is_about_contents(const char *how)
{
    static const char *const these[] = {"contents", "large", "vector", "random", "threads"};
    bool found = false;

    for (size_t i = 0; i < sizeof these / sizeof *these; i++)
        found |= strcmp(how, these[i]) == 0;
    return found;
}

static void act_as_last(const char *how, char **argv, int argc)
{
    bool random = strcmp(how, "random") == 0;
    int room = strcmp(how, "disk") == 0 ? room_for_files(argv[2]) : 0;
    int number = argc > 2 && !random ? read_and_count(argv[2]) : 0;
    pthread_t thread;

    if (strcmp(how, "threads") == 0)
        pthread_create(&thread, NULL, sit, NULL);
    if (strcmp(how, "inputs") == 0)
        send_after_inputs(argv[2], number);
    else if (is_about_contents(how))
        send_contents(how, number);
    else
        send_number(how, strcmp(how, "disk") == 0 ? room : number);
    if (strcmp(how, "put") == 0)
        put_number(number);
    if (strcmp(how, "clock") == 0)
        await_answers(number);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "length";
    static char bytes[600 << 10];

    check_init(&argc, &argv);
    if (check_rank == check_size - 1)
        act_as_last(how, argv, argc);
    else if (strcmp(how, "put") == 0)
        put_number(0);
    if (check_rank == 0) {
        MPI_Recv(bytes, sizeof bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (strcmp(how, "inputs") == 0)
            MPI_Send("", 1, MPI_BYTE, check_size - 1, 7, MPI_COMM_WORLD);
        if (strcmp(how, "vector") == 0 || strcmp(how, "inputs") == 0)
            MPI_Recv(bytes, sizeof bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (strcmp(how, "clock") == 0)
            answer();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == check_size - 1 && argc > 3)
        die_once_more(argv[3], argc > 4 ? atoi(argv[4]) : 1);
    MPI_Barrier(MPI_COMM_WORLD);
    return check_finish("diverges");
}
