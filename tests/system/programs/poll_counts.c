/* Ranks that spin, and tell how often: in each of argv[1] rounds (default 300) a rank receives from
   its left neighbour by MPI_Test, MPI_Iprobe or MPI_Improbe, and sends in its next message how many
   calls that took. argv[2] is test, iprobe or improbe; without it they take turns. */
#include "tell.h"

enum { WAYS = 3, COUNT_TAG = 1 };

static const char *const way_names[WAYS] = {"test", "iprobe", "improbe"};

/* Not all come at the same time, so that there is something to poll for. */
static void dawdle(uint64_t *random)
{
    volatile uint32_t turns = next_random(random) % 20000;

    while (turns)
        turns--;
}

static uint64_t by_test(int source, uint64_t *words, MPI_Status *status)
{
    MPI_Request request;
    uint64_t polls = 0;
    int flag = 0;

    MPI_Irecv(words, TELL_WORDS_MAX, MPI_UINT64_T, source, COUNT_TAG, MPI_COMM_WORLD, &request);
    while (!flag) {
        MPI_Test(&request, &flag, status);
        polls++;
    }
    return polls;
}

static uint64_t by_iprobe(int source, uint64_t *words, MPI_Status *status)
{
    uint64_t polls = 0;
    int flag = 0;

    while (!flag) {
        MPI_Iprobe(source, COUNT_TAG, MPI_COMM_WORLD, &flag, status);
        polls++;
    }
    MPI_Recv(words, TELL_WORDS_MAX, MPI_UINT64_T, source, COUNT_TAG, MPI_COMM_WORLD, status);
    return polls;
}

static uint64_t by_improbe(int source, uint64_t *words, MPI_Status *status)
{
    MPI_Message message;
    uint64_t polls = 0;
    int flag = 0;

    while (!flag) {
        MPI_Improbe(source, COUNT_TAG, MPI_COMM_WORLD, &flag, &message, status);
        polls++;
    }
    MPI_Mrecv(words, TELL_WORDS_MAX, MPI_UINT64_T, &message, status);
    return polls;
}

static uint64_t receive_polling(int way, int source, uint64_t *words, MPI_Status *status)
{
    static uint64_t (*const ways[WAYS])(int, uint64_t *, MPI_Status *) = {by_test, by_iprobe,
                                                                          by_improbe};

    return ways[way](source, words, status);
}

static void run_rounds(int rounds, int only)
{
    struct teller t = tell_start();
    uint64_t random = (uint64_t)check_rank, polls = 0;
    uint64_t out[TELL_WORDS_MAX], in[TELL_WORDS_MAX];
    MPI_Request request;
    MPI_Status status;
    int count;

    for (int round = 0; round < rounds; round++) {
        check_item = round;
        count = tell_prepare(&t, out, polls);
        dawdle(&random);
        MPI_Isend(out, count, MPI_UINT64_T, t.right, COUNT_TAG, MPI_COMM_WORLD, &request);
        polls = receive_polling(only < WAYS ? only : round % WAYS, t.left, in, &status);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        tell_hear(&t, in, count);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        tell_echo(&t);
    }
}

int main(int argc, char **argv)
{
    int way = 0;

    check_init(&argc, &argv);
    while (argc > 2 && way < WAYS && strcmp(argv[2], way_names[way]) != 0)
        way++;
    run_rounds(argc > 1 ? atoi(argv[1]) : 300, argc > 2 ? way : WAYS);
    return check_finish("poll_counts");
}
