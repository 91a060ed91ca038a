/* NetPIPE's method for many pairs at once ([Relay] 5.1): rank i speaks with rank N - 1 - i.
 *
 *   pairs SECONDS VOLUME PERTURBATION BYTES...
 *
 * A size takes about SECONDS and moves at most VOLUME bytes, its perturbed neighbours (BYTES -
 * PERTURBATION, BYTES + PERTURBATION) included. Prints for each size a line
 *
 *   pairs BYTES REPETITIONS OVERALL SUM FAIRNESS LATENCY
 *
 * of the best of TRIALS trials: bandwidths in Mb/s (that of the slowest pair times the number of
 * pairs, and the sum over pairs), the slowest pair's by the fastest one's (over all trials: who
 * starts first matters less then), and the mean time of one way in microseconds. Or "skipped
 * BYTES", when VOLUME does not allow the trials. Ends with "end".
 *
 * More ranks than cores are bound to them in turn, as mpiexec -bind-to core does. Where the
 * scheduler chooses, a pair may get a better place than others for seconds, and several times their
 * bandwidth: that would be measured instead of the relay.
 */
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIALS 3
#define TRIPS_MIN (1 + 1 + TRIALS) /* checked, calibrated, and one in each trial */
#define TRIPS_GOOD (1 + 1 + TRIALS * TRIPS_WANTED)
#define TRIPS_MAX 1000000 /* in one trial */
#define TRIPS_WANTED 4    /* in one trial: pairs leave a barrier one after the other */
#define CALIBRATION_GROWTH 4
#define CALIBRATION_SHARE 0.1 /* of the time and the volume of a size */
#define MESSAGE_OVERHEAD 64   /* bytes of a log for each message, beyond its payload */
#define BYTES_MAX (1 << 30)

struct site {
    int rank, size, pairs, peer;
    uint8_t *outgoing, *incoming; /* of the largest size */
    double *seconds;              /* of each rank, in the trial that ended last */
    double *total;                /* likewise, in all trials of a size */
};

struct budget {
    double seconds;
    double volume; /* bytes, of all pairs */
};

struct figures {
    double slowest, overall_mbps, sum_mbps, latency_us;
};

static void fail(const struct site *site, const char *what)
{
    fprintf(stderr, "pairs: rank %d: %s\n", site->rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* --- one pair ----------------------------------------------------------------------------------
 */

static void round_trips(struct site *site, int bytes, int count)
{
    bool first = site->rank < site->peer;

    for (int i = 0; i < count; i++) {
        if (first)
            MPI_Send(site->outgoing, bytes, MPI_BYTE, site->peer, 0, MPI_COMM_WORLD);
        MPI_Recv(site->incoming, bytes, MPI_BYTE, site->peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!first)
            MPI_Send(site->outgoing, bytes, MPI_BYTE, site->peer, 0, MPI_COMM_WORLD);
    }
}

static uint8_t pattern(int rank, int bytes, int at)
{
    uint32_t mixed = ((uint32_t)rank * 2654435761u) ^ ((uint32_t)(at + bytes) * 2246822519u);

    return (uint8_t)(mixed >> 24);
}

/* One round trip whose bytes are looked at; also the first touch of whatever a size needs. */
static void check_payload(struct site *site, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        site->outgoing[i] = pattern(site->rank, bytes, i);
        site->incoming[i] = (uint8_t)~pattern(site->peer, bytes, i);
    }
    round_trips(site, bytes, 1);
    for (int i = 0; i < bytes; i++)
        if (site->incoming[i] != pattern(site->peer, bytes, i))
            fail(site, "received other bytes than were sent");
}

/* --- all pairs ---------------------------------------------------------------------------------
 */

/* Returns the seconds of the slowest pair, the same in all ranks. */
static double run_trial(struct site *site, int bytes, int count)
{
    double start, mine, slowest = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    round_trips(site, bytes, count);
    mine = MPI_Wtime() - start;
    MPI_Allgather(&mine, 1, MPI_DOUBLE, site->seconds, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < site->pairs; i++) /* the first of each pair waits for the last answer */
        if (site->seconds[i] > slowest)
            slowest = site->seconds[i];
    return slowest;
}

static double trip_volume(const struct site *site, int bytes)
{
    return 2.0 * site->pairs * (bytes + MESSAGE_OVERHEAD);
}

/* Returns the round trips of a trial, the same in all ranks. */
static int calibrate(struct site *site, int bytes, const struct budget *budget)
{
    double trips = budget->volume / trip_volume(site, bytes) - 1; /* the checked one is gone */
    double trips_share = trips * CALIBRATION_SHARE, wanted;
    double took = run_trial(site, bytes, 1);
    int count = 1;

    trips -= count;
    while (took < budget->seconds * CALIBRATION_SHARE && count * CALIBRATION_GROWTH < trips_share &&
           count * CALIBRATION_GROWTH < TRIPS_MAX) {
        count *= CALIBRATION_GROWTH;
        took = run_trial(site, bytes, count);
        trips -= count;
    }
    wanted = budget->seconds / TRIALS * count / took;
    if (wanted < TRIPS_WANTED)
        wanted = fmin(TRIPS_WANTED, wanted * CALIBRATION_GROWTH);
    wanted = fmin(wanted, fmin(trips / TRIALS, TRIPS_MAX));
    return (int)fmax(wanted, 1);
}

static double fairness(const struct site *site)
{
    double fastest = site->total[0], slowest = site->total[0];

    for (int i = 1; i < site->pairs; i++) {
        fastest = fmin(fastest, site->total[i]);
        slowest = fmax(slowest, site->total[i]);
    }
    return fastest / slowest;
}

static struct figures compute_figures(const struct site *site, int bytes, int count)
{
    struct figures f = {0};

    for (int i = 0; i < site->pairs; i++) {
        double one_way = site->seconds[i] / count / 2;

        if (one_way > f.slowest)
            f.slowest = one_way;
        f.sum_mbps += bytes * 8e-6 / one_way;
        f.latency_us += one_way * 1e6 / site->pairs;
    }
    f.overall_mbps = bytes * 8e-6 / f.slowest * site->pairs;
    return f;
}

static void measure(struct site *site, int bytes, const struct budget *budget)
{
    struct figures best = {0};
    int count;

    check_payload(site, bytes);
    count = calibrate(site, bytes, budget);
    memset(site->total, 0, (size_t)site->size * sizeof(*site->total));
    for (int i = 0; i < TRIALS; i++) {
        struct figures f;

        run_trial(site, bytes, count);
        for (int k = 0; k < site->pairs; k++)
            site->total[k] += site->seconds[k];
        f = compute_figures(site, bytes, count);
        if (i == 0 || f.slowest < best.slowest)
            best = f;
    }
    if (site->rank == 0) {
        printf("pairs %d %d %.6g %.6g %.4f %.3f\n", bytes, count, best.overall_mbps, best.sum_mbps,
               fairness(site), best.latency_us);
        fflush(stdout); /* what a run that does not end has measured counts */
    }
}

/* A size and its neighbours, as NetPIPE does; the size alone where it is too small to have any, or
 * a third of the volume would make the trials too short. */
static void measure_around(struct site *site, int bytes, int perturbation,
                           const struct budget *budget)
{
    double trips = budget->volume / trip_volume(site, bytes + perturbation);
    struct budget third = {budget->seconds / 3, budget->volume / 3};

    if (perturbation > 0 && bytes / 2 > perturbation + 1 && trips / 3 >= TRIPS_GOOD) {
        for (int i = -1; i <= 1; i++)
            measure(site, bytes + i * perturbation, &third);
    } else if (trips >= TRIPS_MIN) {
        measure(site, bytes, budget);
    } else if (site->rank == 0) {
        printf("skipped %d\n", bytes);
        fflush(stdout);
    }
}

/* --- the job -----------------------------------------------------------------------------------
 */

static int take_bytes(const struct site *site, const char *text)
{
    char *end;
    long bytes = strtol(text, &end, 10);

    if (*end || bytes < 1 || bytes > BYTES_MAX)
        fail(site, "expected sizes of 1 byte to 1 GiB");
    return (int)bytes;
}

/* An error leaves the choice to the scheduler. */
static void bind_rank(const struct site *site)
{
    cpu_set_t all, mine;
    int turn;

    if (sched_getaffinity(0, sizeof(all), &all) < 0 || CPU_COUNT(&all) >= site->size)
        return;
    turn = site->rank % CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all) || turn-- > 0)
            continue;
        CPU_ZERO(&mine);
        CPU_SET(cpu, &mine);
        sched_setaffinity(0, sizeof(mine), &mine);
        return;
    }
}

static void open_site(struct site *site, int largest)
{
    site->outgoing = malloc((size_t)largest);
    site->incoming = malloc((size_t)largest);
    site->seconds = calloc((size_t)site->size, sizeof(*site->seconds));
    site->total = calloc((size_t)site->size, sizeof(*site->total));
    if (!site->outgoing || !site->incoming || !site->seconds || !site->total)
        fail(site, "no memory for two messages");
    /* zeros are copied faster, out of one page of the kernel's, and written to memory faster */
    memset(site->outgoing, 1, (size_t)largest);
}

static void close_site(struct site *site)
{
    free(site->outgoing);
    free(site->incoming);
    free(site->seconds);
    free(site->total);
}

int main(int argc, char **argv)
{
    struct budget budget;
    struct site site = {0};
    int perturbation, largest = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &site.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &site.size);
    site.pairs = site.size / 2;
    site.peer = site.size - 1 - site.rank;
    if (argc < 5 || site.size % 2)
        fail(&site, "usage: pairs SECONDS VOLUME PERTURBATION BYTES..., an even number of ranks");
    budget = (struct budget){.seconds = atof(argv[1]), .volume = atof(argv[2])};
    perturbation = atoi(argv[3]);
    for (int i = 4; i < argc; i++)
        if (take_bytes(&site, argv[i]) + perturbation > largest)
            largest = take_bytes(&site, argv[i]) + perturbation;
    open_site(&site, largest);
    bind_rank(&site);
    for (int i = 4; i < argc; i++)
        measure_around(&site, take_bytes(&site, argv[i]), perturbation, &budget);
    if (site.rank == 0) {
        puts("end");
        fflush(stdout);
    }
    close_site(&site);
    usleep(200000); /* stock MPICH over UCX may hang when ranks reach MPI_Finalize at once */
    MPI_Finalize();
    return 0;
}
