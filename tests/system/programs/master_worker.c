/* Rank 0 hands out argv[1] tasks (default 400) and takes the results by MPI_ANY_SOURCE as they
   come. How long a task takes and what it yields is drawn from a generator that starts from the
   clock. With every answer a worker is told the place that its result has in the order of rank 0,
   and the checksum there; at the end rank 0 compares its own order with what the workers were told.
   With "log" as argv[2] rank 0 prints a line for each result. */
#include "check.h"

#include <time.h>

enum { TASK_TAG = 1, RESULT_TAG = 2, PADDING_MAX = 64, NO_TASK = -1 };

struct result {
    int32_t worker, task;
    uint32_t value;
    int32_t padding; /* words that follow: so that lengths depend on what was drawn */
};

/* What the worker is told; the task is the next one. */
struct answer {
    int32_t task, place;
    uint32_t value, checksum;
};

enum { RESULT_WORDS = sizeof(struct result) / 4, ANSWER_WORDS = sizeof(struct answer) / 4 };

/* kills.sh computes it too. */
static uint32_t checksum_add(uint32_t checksum, const struct result *r)
{
    return (uint32_t)(((uint64_t)checksum * 31 + (uint64_t)r->worker * 7 + r->value) % 1000003);
}

static uint64_t seed_from_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)time(NULL) * 1000000007 + (uint64_t)now.tv_nsec * 31 + (uint64_t)check_rank;
}

static void work(uint32_t draw)
{
    volatile uint32_t turns = draw % 100000;

    while (turns)
        turns--;
}

/* --- the worker -------------------------------------------------------------------- */

/* Does tasks until there are none. Returns what it was told, in *count answers. */
static struct answer *run_worker(int tasks, int *count)
{
    struct answer *told = must_alloc((size_t)tasks * sizeof *told), next;
    uint32_t message[RESULT_WORDS + PADDING_MAX] = {0};
    uint64_t random = seed_from_clock();

    *count = 0;
    MPI_Recv(&next, ANSWER_WORDS, MPI_INT32_T, 0, TASK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (next.task != NO_TASK) {
        struct result r = {.worker = check_rank, .task = next.task};

        r.value = next_random(&random) % 1000000;
        r.padding = (int32_t)(next_random(&random) % PADDING_MAX);
        work(next_random(&random));
        memcpy(message, &r, sizeof r);
        MPI_Send(message, RESULT_WORDS + r.padding, MPI_INT32_T, 0, RESULT_TAG, MPI_COMM_WORLD);
        MPI_Recv(&next, ANSWER_WORDS, MPI_INT32_T, 0, TASK_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK("value that rank 0 took", r.value, next.value);
        if (CHECK("number of answers", 1, *count < tasks))
            told[(*count)++] = next;
    }
    return told;
}

/* --- the master -------------------------------------------------------------------- */

static void hand_out(int worker, int *next_task, int tasks, struct answer answer)
{
    answer.task = *next_task < tasks ? (*next_task)++ : NO_TASK;
    MPI_Send(&answer, ANSWER_WORDS, MPI_INT32_T, worker, TASK_TAG, MPI_COMM_WORLD);
}

static struct result take_result(void)
{
    uint32_t message[RESULT_WORDS + PADDING_MAX];
    struct result r;
    MPI_Status status;
    int words;

    MPI_Recv(message, RESULT_WORDS + PADDING_MAX, MPI_INT32_T, MPI_ANY_SOURCE, RESULT_TAG,
             MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT32_T, &words);
    memcpy(&r, message, sizeof r);
    CHECK("worker of a result", status.MPI_SOURCE, r.worker);
    CHECK("words of a result", RESULT_WORDS + r.padding, words);
    return r;
}

/* Returns the order in which the results came: what the workers were told. */
static struct answer *run_master(int tasks, int log)
{
    struct answer *order = must_alloc((size_t)tasks * sizeof *order);
    uint32_t checksum = 0;
    int next_task = 0;

    for (int worker = 1; worker < check_size; worker++)
        hand_out(worker, &next_task, tasks, (struct answer){0});
    for (int place = 0; place < tasks; place++) {
        struct result r = take_result();

        checksum = checksum_add(checksum, &r);
        order[place] = (struct answer){r.task, place, r.value, checksum};
        if (log)
            printf("line %d: worker %d, task %d, value %u, checksum %u\n", place + 1, r.worker,
                   r.task, r.value, checksum);
        fflush(stdout);
        hand_out(r.worker, &next_task, tasks, order[place]);
    }
    return order;
}

/* Each place was told once, and as it was. */
static void compare(const struct answer *order, const struct answer *told, int tasks)
{
    char *seen = must_alloc((size_t)tasks);

    memset(seen, 0, (size_t)tasks);
    for (int i = 0; i < tasks; i++) {
        int place = told[i].place;

        check_item = place;
        if (!CHECK("place in range", 1, place >= 0 && place < tasks))
            continue;
        CHECK("times that a place was told", 0, seen[place]++);
        CHECK("value at this place", order[place].value, told[i].value);
        CHECK("checksum at this place", order[place].checksum, told[i].checksum);
    }
    free(seen);
}

static void gather_and_compare(const struct answer *mine, int count, int tasks)
{
    int *words = must_alloc((size_t)check_size * sizeof *words);
    int *at = must_alloc((size_t)check_size * sizeof *at);
    struct answer *all = must_alloc((size_t)tasks * sizeof *all);
    int send = check_rank == 0 ? 0 : count * ANSWER_WORDS, sum = 0;

    MPI_Gather(&send, 1, MPI_INT, words, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int rank = 0; rank < check_size && check_rank == 0; rank++) {
        at[rank] = sum;
        sum += words[rank];
    }
    if (check_rank == 0 && !CHECK("answers told", tasks * ANSWER_WORDS, sum))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Gatherv(mine, send, MPI_INT32_T, all, words, at, MPI_INT32_T, 0, MPI_COMM_WORLD);
    if (check_rank == 0)
        compare(mine, all, tasks);
    free(all);
    free(at);
    free(words);
}

int main(int argc, char **argv)
{
    int tasks, count = 0;
    struct answer *mine;

    check_init(&argc, &argv);
    tasks = argc > 1 ? atoi(argv[1]) : 400;
    if (check_size < 2 || tasks < check_size) {
        fprintf(stderr, "master_worker: expected at least 2 ranks, and as many tasks as ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (check_rank == 0)
        mine = run_master(tasks, argc > 2 && strcmp(argv[2], "log") == 0);
    else
        mine = run_worker(tasks, &count);
    gather_and_compare(mine, count, tasks);
    free(mine);
    return check_finish("master_worker");
}
