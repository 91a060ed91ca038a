/* The asynchronous token ring of [MPICH-V] figure 8: in each round every rank posts a receive from
   its left neighbour and a send to its right one, and waits for both. Arguments: rounds (default
   1000), bytes of a token (default 64, at least 8), and "time" to print how long it took. */
#include "check.h"

struct ring {
    int left, right, rounds, bytes;
    char *out, *in;
};

/* The token names its rank and round; the rest of it was filled before. */
static void one_round(const struct ring *r, int round)
{
    int mine[2] = {check_rank, round}, seen[2];
    MPI_Request requests[2];

    memcpy(r->out, mine, sizeof mine);
    MPI_Irecv(r->in, r->bytes, MPI_BYTE, r->left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(r->out, r->bytes, MPI_BYTE, r->right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    memcpy(seen, r->in, sizeof seen);
    check_item = round;
    CHECK("rank of a token", r->left, seen[0]);
    CHECK("round of a token", round, seen[1]);
}

int main(int argc, char **argv)
{
    struct ring r;
    double start;
    size_t size;

    check_init(&argc, &argv);
    r.rounds = argc > 1 ? atoi(argv[1]) : 1000;
    r.bytes = argc > 2 && atoi(argv[2]) > 8 ? atoi(argv[2]) : argc > 2 ? 8 : 64;
    size = ((size_t)r.bytes + 7) / 8 * 8;
    r.left = (check_rank + check_size - 1) % check_size;
    r.right = (check_rank + 1) % check_size;
    r.out = must_alloc(size);
    r.in = guarded_alloc(size);
    fill(r.out, size, (uint64_t)check_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int round = 0; round < r.rounds; round++)
        one_round(&r, round);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0 && argc > 3 && strcmp(argv[3], "time") == 0)
        printf("time %.6f s, %d rounds of %d bytes\n", MPI_Wtime() - start, r.rounds, r.bytes);
    fill(r.out, size, (uint64_t)r.left);
    CHECK("rest of the last token", 0,
          r.rounds > 0 ? memcmp(r.out + 8, r.in + 8, (size_t)r.bytes - 8) : 0);
    free(r.out);
    free(r.in);
    return check_finish("token_ring");
}
