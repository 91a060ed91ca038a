/* A program that does not repeat itself. Each process of the last rank reads a number from the file
   argv[2], and leaves one more in it; the message that it then sends to rank 0 depends on the
   number, by argv[1]: its length, its tag, its dst (destination), or that it is sent at all
   (count). With argv[1] "disk" the length depends on how many files the file system of argv[2] has
   room for, which is one less once argv[2] is there; that is recorded, so that it repeats itself
   all the same. With argv[1] "clock" the first process asks for the time before it waits for two
   answers of rank 0, and the others do not. Then the last rank waits until the file argv[3] is
   there, so that it can be killed before. Without arguments every process behaves alike. */
#include "check.h"

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

static void await(const char *path)
{
    struct timespec pause = {0, 10000000};

    while (access(path, F_OK) < 0)
        thrd_sleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "length";
    char bytes[1024];

    check_init(&argc, &argv);
    if (check_rank == check_size - 1) {
        int room = strcmp(how, "disk") == 0 ? room_for_files(argv[2]) : 0;
        int number = argc > 2 ? read_and_count(argv[2]) : 0;

        send_number(how, strcmp(how, "disk") == 0 ? room : number);
        if (strcmp(how, "clock") == 0)
            await_answers(number);
    }
    if (check_rank == 0) {
        MPI_Recv(bytes, sizeof bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        if (strcmp(how, "clock") == 0)
            answer();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == check_size - 1 && argc > 3)
        await(argv[3]);
    MPI_Barrier(MPI_COMM_WORLD);
    return check_finish("diverges");
}
