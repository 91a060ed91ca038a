/* MPI_ANY_SOURCE and MPI_ANY_TAG: order of messages of a pair is kept whatever
   their sizes and tags, and wildcard and specific receives posted in any order,
   before or after the messages arrive, match as the standard says. */
#include "check.h"

enum { MANY = 1000, HALF = 20, TAGS = 3, MATCHES = 12, TRIALS = 30, BIG = 100000 };

static char *buffer;

/* Mostly small, every 50th beyond the eager limit. */
static int size_of(int i)
{
    return i % 50 == 49 ? BIG : 8 + i % 200;
}

static uint64_t seed_of(int source, int i)
{
    return (uint64_t)source * 65537 + (uint64_t)i;
}

/* Every rank, rank 0 too, sends MANY messages to rank 0. */
static void send_many(MPI_Request *requests, char *all)
{
    size_t at = 0;

    for (int i = 0; i < MANY; i++) {
        fill(all + at, (size_t)size_of(i), seed_of(check_rank, i));
        MPI_Isend(all + at, size_of(i), MPI_BYTE, 0, i % TAGS, MPI_COMM_WORLD, &requests[i]);
        at += (size_t)size_of(i);
    }
}

static void check_message(const char *what, const MPI_Status *status, int source, int i)
{
    check_item = i;
    CHECK_STATUS(what, status, source, i % TAGS, MPI_BYTE, size_of(i));
    CHECK_BYTES(what, buffer, (size_t)size_of(i), seed_of(source, i));
}

static void receive_any_any(void)
{
    int *next = calloc((size_t)check_size, sizeof *next);
    MPI_Status status;

    for (int k = 0; k < MANY * check_size; k++) {
        MPI_Recv(buffer, BIG, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        check_message("any source, any tag", &status, status.MPI_SOURCE, next[status.MPI_SOURCE]++);
    }
    free(next);
}

static void receive_any_source(void)
{
    int *next = calloc((size_t)check_size, sizeof *next);
    MPI_Status status;

    for (int tag = TAGS - 1; tag >= 0; tag--) {
        int count = (MANY - tag + TAGS - 1) / TAGS;

        for (int s = 0; s < check_size; s++)
            next[s] = tag;
        for (int k = 0; k < count * check_size; k++) {
            MPI_Recv(buffer, BIG, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
            check_message("any source", &status, status.MPI_SOURCE, next[status.MPI_SOURCE]);
            next[status.MPI_SOURCE] += TAGS;
        }
    }
    free(next);
}

static void receive_any_tag(void)
{
    MPI_Status status;

    for (int s = check_size - 1; s >= 0; s--)
        for (int i = 0; i < MANY; i++) {
            MPI_Recv(buffer, BIG, MPI_BYTE, s, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            check_message("any tag", &status, s, i);
        }
}

static void test_order(void (*receive)(void))
{
    MPI_Request *requests = must_alloc(MANY * sizeof *requests);
    size_t total = 0;
    char *all;

    for (int i = 0; i < MANY; i++)
        total += (size_t)size_of(i);
    all = must_alloc(total);
    send_many(requests, all);
    if (check_rank == 0)
        receive();
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    free(all);
    free(requests);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 posts HALF specific receives a source, then as many for anyone: the
   first half of each source must go to the specific ones, in order. */
static void test_specific_then_any(void)
{
    int n = 2 * HALF * check_size, value[2 * HALF];
    int *got = must_alloc((size_t)n * sizeof *got);
    int *next = must_alloc((size_t)check_size * sizeof *next);
    MPI_Request *requests = must_alloc((size_t)n * sizeof *requests), sends[2 * HALF];
    MPI_Status *statuses = must_alloc((size_t)n * sizeof *statuses);

    if (check_rank == 0)
        for (int k = 0; k < n; k++) {
            int source = k < n / 2 ? k % check_size : MPI_ANY_SOURCE;
            MPI_Irecv(&got[k], 1, MPI_INT, source, 5, MPI_COMM_WORLD, &requests[k]);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2 * HALF; i++) {
        value[i] = check_rank * 1000 + i;
        MPI_Isend(&value[i], 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &sends[i]);
    }
    if (check_rank == 0) {
        MPI_Waitall(n, requests, statuses);
        for (int s = 0; s < check_size; s++)
            next[s] = 0;
        for (int k = 0; k < n; k++) {
            int source = statuses[k].MPI_SOURCE;
            check_item = k;
            if (k < n / 2)
                CHECK("specific source", k % check_size, source);
            CHECK("specific, then any", source * 1000 + next[source]++, got[k]);
        }
    }
    MPI_Waitall(2 * HALF, sends, MPI_STATUSES_IGNORE);
    free(statuses);
    free(requests);
    free(next);
    free(got);
}

/* Draws the tags of MATCHES messages and of as many receives (-1: any tag) such
   that all match; match[m] is the receive message m must go to. */
static void draw_matching(uint64_t *state, int *tags, int *wanted, int *match)
{
    int matched = 0;

    while (matched < MATCHES) {
        int used[MATCHES] = {0};

        for (int k = 0; k < MATCHES; k++) {
            tags[k] = (int)(next_random(state) % TAGS);
            wanted[k] = next_random(state) % 2 ? (int)(next_random(state) % TAGS) : -1;
        }
        matched = 0;
        for (int m = 0; m < MATCHES; m++)
            for (int r = 0; r < MATCHES; r++)
                if (!used[r] && (wanted[r] < 0 || wanted[r] == tags[m])) {
                    used[r] = 1;
                    match[m] = r;
                    matched++;
                    break;
                }
    }
}

/* Rank 0 receives from source what draw_matching() says. Receives are posted
   before the messages are sent (early), or after. */
static void one_matching(int source, int early, uint64_t *state)
{
    int tags[MATCHES], wanted[MATCHES], match[MATCHES], values[MATCHES], got[MATCHES];
    MPI_Request receives[MATCHES], sends[MATCHES];
    MPI_Status statuses[MATCHES];

    draw_matching(state, tags, wanted, match);
    for (int step = 0; step < 2; step++) {
        if (check_rank == 0 && step == !early)
            for (int r = 0; r < MATCHES; r++)
                MPI_Irecv(&got[r], 1, MPI_INT, r % 2 ? source : MPI_ANY_SOURCE,
                          wanted[r] < 0 ? MPI_ANY_TAG : wanted[r], MPI_COMM_WORLD, &receives[r]);
        if (check_rank == source && step == early)
            for (int m = 0; m < MATCHES; m++) {
                values[m] = source * 100 + m;
                MPI_Isend(&values[m], 1, MPI_INT, 0, tags[m], MPI_COMM_WORLD, &sends[m]);
            }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (check_rank == 0) {
        MPI_Waitall(MATCHES, receives, statuses);
        for (int m = 0; m < MATCHES; m++) {
            CHECK_STATUS("mixed receives", &statuses[match[m]], source, tags[m], MPI_INT, 1);
            CHECK("mixed receives", source * 100 + m, got[match[m]]);
        }
    }
    if (check_rank == source)
        MPI_Waitall(MATCHES, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    uint64_t state = 4711;

    check_init(&argc, &argv);
    buffer = must_alloc(BIG);
    test_order(receive_any_any);
    test_order(receive_any_source);
    test_order(receive_any_tag);
    test_specific_then_any();
    for (int source = 0; source < check_size; source++)
        for (int trial = 0; trial < TRIALS; trial++) {
            check_item = trial;
            one_matching(source, trial % 2, &state);
        }
    free(buffer);
    return check_finish("wildcard");
}
