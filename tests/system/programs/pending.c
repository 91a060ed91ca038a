/* Brings ranks into each state that MPI calls pending, holds it, completes it and looks at what
   came of it: pending [DIR STATE...]. With DIR a rank that holds makes the file DIR/held.RANK, and
   goes on when DIR/go is there: it polls meanwhile, or waits inside an MPI call for rank 0, which
   polls. Without DIR nobody waits, and all states run but those whose names need a DIR. At least 3
   ranks. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALL = 100, LARGE = 1500000, HALF = 8 << 20, WORDS = 50000 };

static const char *place; /* DIR, or NULL */
static MPI_Comm quiet;    /* no message ever comes there */

/* --- holding ---------------------------------------------------------------------------------- */

static bool may_go_on(void)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/go", place);
    return access(path, F_OK) == 0;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* What follows is a call that waits for rank 0. */
static void held(void)
{
    char path[4096];

    if (!place)
        return;
    snprintf(path, sizeof path, "%s/held.%d", place, check_rank);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void hold(void)
{
    int there;

    if (!place)
        return;
    held();
    while (!may_go_on()) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, quiet, &there, MPI_STATUS_IGNORE);
        CHECK("nothing is there", 0, there);
        nap();
    }
}

/* --- messages --------------------------------------------------------------------------------- */

static uint64_t seed_of(int source, int tag)
{
    return (uint64_t)(source * 1000 + tag);
}

static char *filled(int tag, int size)
{
    char *p = must_alloc((size_t)size);

    fill(p, (size_t)size, seed_of(check_rank, tag));
    return p;
}

static void send_now(int to, int tag, int size)
{
    char *p = filled(tag, size);

    MPI_Send(p, size, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    free(p);
}

/* A message of `size` bytes has come, or must have. */
static void came(const char *what, const MPI_Status *status, int source, int tag, const char *p,
                 int size)
{
    CHECK_STATUS(what, status, source, tag, MPI_BYTE, size);
    CHECK_BYTES(what, p, (size_t)size, seed_of(source, tag));
}

static void receive_now(const char *what, int from, int tag, int size)
{
    char *p = guarded_alloc((size_t)size);
    MPI_Status status;

    MPI_Recv(p, size, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
    came(what, &status, from, tag, p, size);
    free(p);
}

static void come_in(const char *what, MPI_Request *request, int source, int tag, char *p, int size)
{
    MPI_Status status;

    MPI_Wait(request, &status);
    came(what, &status, source, tag, p, size);
    free(p);
}

static MPI_Request post(char **p, int from, int tag, int size)
{
    MPI_Request request;

    *p = guarded_alloc((size_t)size);
    MPI_Irecv(*p, size, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    return request;
}

/* Every other word. */
static MPI_Datatype sparse_type(void)
{
    MPI_Datatype type;

    MPI_Type_vector(WORDS, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void check_sparse(const int *words)
{
    for (check_item = 0; check_item < WORDS; check_item++) {
        CHECK("a word", check_item, words[2 * check_item]);
        CHECK("between words", -1, words[2 * check_item + 1]);
    }
    check_item = 0;
}

/* --- states: messages ------------------------------------------------------------------------- */

static void posted_sends(void)
{
    static int words[WORDS];

    for (int i = 0; i < WORDS; i++)
        words[i] = i;
    for (int to = 1; to < check_size; to++) {
        MPI_Send(words, WORDS, MPI_INT, to, 5, MPI_COMM_WORLD);
        send_now(to, 4, LARGE);
        send_now(to, 2, SMALL);
        send_now(to, 1, SMALL);
        send_now(to, 3, LARGE);
    }
}

/* Receives for one source, for any, of a datatype, and for whatever comes. */
static void posted(void)
{
    static int words[2 * WORDS];
    char *p[4];
    MPI_Request requests[4], sparse;
    MPI_Datatype type;

    if (check_rank == 0) {
        hold();
        posted_sends();
        return;
    }
    type = sparse_type();
    memset(words, -1, sizeof words);
    requests[0] = post(&p[0], 0, 1, SMALL);
    requests[1] = post(&p[1], MPI_ANY_SOURCE, 2, SMALL);
    requests[2] = post(&p[2], 0, 4, LARGE);
    MPI_Irecv(words, 1, type, 0, 5, MPI_COMM_WORLD, &sparse);
    requests[3] = post(&p[3], MPI_ANY_SOURCE, MPI_ANY_TAG, LARGE);
    hold();
    come_in("of any tag", &requests[3], 0, 3, p[3], LARGE);
    come_in("of one source", &requests[0], 0, 1, p[0], SMALL);
    come_in("of any source", &requests[1], 0, 2, p[1], SMALL);
    come_in("a large one", &requests[2], 0, 4, p[2], LARGE);
    MPI_Wait(&sparse, MPI_STATUS_IGNORE);
    check_sparse(words);
    MPI_Type_free(&type);
}

/* Nobody has posted a receive for what others have sent. */
static void unexpected(void)
{
    MPI_Request requests[2];
    char *p[2], *attached;
    int size;

    if (check_rank == 0) {
        hold();
        for (int from = check_size - 1; from > 0; from--) {
            receive_now("buffered", from, 3, LARGE);
            receive_now("large", from, 2, LARGE);
            receive_now("small", from, 1, SMALL);
        }
        return;
    }
    attached = must_alloc(LARGE + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(attached, LARGE + MPI_BSEND_OVERHEAD);
    for (int i = 0; i < 2; i++) {
        p[i] = filled(1 + i, i ? LARGE : SMALL);
        MPI_Isend(p[i], i ? LARGE : SMALL, MPI_BYTE, 0, 1 + i, MPI_COMM_WORLD, &requests[i]);
    }
    char *buffered = filled(3, LARGE);
    MPI_Bsend(buffered, LARGE, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    hold();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Buffer_detach(&attached, &size);
    free(attached);
    free(buffered);
    free(p[0]);
    free(p[1]);
}

/* Synchronous sends without their match. */
static void synchronous(void)
{
    MPI_Request requests[2];
    char *p[2];
    int done;

    if (check_rank == 0) {
        hold();
        for (int from = 1; from < check_size; from++) {
            receive_now("large", from, 2, LARGE);
            receive_now("small", from, 1, SMALL);
        }
        return;
    }
    for (int i = 0; i < 2; i++) {
        p[i] = filled(1 + i, i ? LARGE : SMALL);
        MPI_Issend(p[i], i ? LARGE : SMALL, MPI_BYTE, 0, 1 + i, MPI_COMM_WORLD, &requests[i]);
    }
    if (place) {
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        CHECK("without a match", 0, done);
    }
    hold();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    free(p[0]);
    free(p[1]);
}

/* Ranks inside calls that wait: the first in MPI_Ssend, the second in MPI_Probe, others in
 * MPI_Recv. */
static void blocked(void)
{
    MPI_Status status;
    char *p = filled(1, LARGE);

    if (check_rank == 0) {
        hold();
        receive_now("MPI_Ssend", 1, 1, LARGE);
        for (int to = 2; to < check_size; to++)
            send_now(to, 2, LARGE);
    } else if (check_rank == 1) {
        held();
        MPI_Ssend(p, LARGE, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    } else if (check_rank == 2) {
        held();
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK_STATUS("MPI_Probe", &status, 0, 2, MPI_BYTE, LARGE);
        receive_now("MPI_Recv", 0, 2, LARGE);
    } else {
        held();
        receive_now("MPI_Recv", 0, 2, LARGE);
    }
    free(p);
}

static void take_matched(MPI_Message *message, int from, int tag, int size)
{
    char *p = guarded_alloc((size_t)size);
    MPI_Status status;

    MPI_Mrecv(p, size, MPI_BYTE, message, &status);
    came("matched", &status, from, tag, p, size);
    free(p);
}

/* Messages that a probe has matched and nobody has received; others have the same tags. */
static void probed(void)
{
    MPI_Message matched[2];

    if (check_rank != 0) {
        for (int i = 0; i < 2; i++) {
            send_now(0, 1, SMALL);
            send_now(0, 2, LARGE);
        }
        hold();
        return;
    }
    MPI_Mprobe(1, 1, MPI_COMM_WORLD, &matched[0], MPI_STATUS_IGNORE);
    MPI_Mprobe(1, 2, MPI_COMM_WORLD, &matched[1], MPI_STATUS_IGNORE);
    hold();
    receive_now("the second, large", 1, 2, LARGE);
    receive_now("the second, small", 1, 1, SMALL);
    take_matched(&matched[1], 1, 2, LARGE);
    take_matched(&matched[0], 1, 1, SMALL);
    for (int from = 2; from < check_size; from++)
        for (int i = 0; i < 2; i++) {
            receive_now("large", from, 2, LARGE);
            receive_now("small", from, 1, SMALL);
        }
}

/* One request of a kind is active, one is not: tags 1 and 2 come from rank 0, 3 and 4 go there. */
static void persistent(void)
{
    bool late = check_rank == 0;
    int peers = late ? check_size - 1 : 1;
    MPI_Request *requests = must_alloc(4 * (size_t)peers * sizeof *requests);
    char **p = must_alloc(4 * (size_t)peers * sizeof *p);

    if (late)
        hold();
    for (int i = 0; i < 4 * peers; i++) {
        int peer = late ? 1 + i / 4 : 0, tag = 1 + i % 4;

        if (late == (tag <= 2)) {
            p[i] = filled(tag, LARGE);
            MPI_Send_init(p[i], LARGE, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]);
        } else {
            p[i] = guarded_alloc(LARGE);
            MPI_Recv_init(p[i], LARGE, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]);
        }
        if (tag % 2)
            MPI_Start(&requests[i]);
    }
    if (!late)
        hold();
    MPI_Waitall(4 * peers, requests, MPI_STATUSES_IGNORE);
    for (int round = 0; round < 2; round++) {
        MPI_Startall(4 * peers, requests);
        MPI_Waitall(4 * peers, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 4 * peers; i++) {
        CHECK_BYTES("again", p[i], LARGE,
                    seed_of(late == (i % 4 < 2) ? check_rank : (late ? 1 + i / 4 : 0), 1 + i % 4));
        MPI_Request_free(&requests[i]);
        free(p[i]);
    }
    free(p);
    free(requests);
}

/* One receive is cancelled and over, one is cancelled and not yet, and one waits behind both. */
static void cancelled(void)
{
    MPI_Request requests[3];
    MPI_Status status;
    char *p[3];
    int flag;

    if (check_rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        hold();
        for (int to = 1; to < check_size; to++)
            send_now(to, 1, LARGE);
        return;
    }
    for (int i = 0; i < 3; i++)
        requests[i] = post(&p[i], 0, 1, LARGE);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK("cancelled before", 1, flag);
    MPI_Cancel(&requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    hold();
    MPI_Wait(&requests[1], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK("cancelled after", 1, flag);
    come_in("behind both", &requests[2], 0, 1, p[2], LARGE);
    for (int i = 0; i < 2; i++) {
        CHECK_GUARDED("of a cancelled receive", p[i], LARGE);
        free(p[i]);
    }
}

/* --- states: collectives ---------------------------------------------------------------------- */

/* Of which rank 0 has begun none. */
static void collectives(void)
{
    MPI_Request requests[4];
    char *p = check_rank ? guarded_alloc(LARGE) : filled(1, LARGE);
    long *mine = must_alloc(WORDS * sizeof *mine), *all = must_alloc(WORDS * sizeof *all);
    int one = check_rank, *gathered = must_alloc((size_t)check_size * sizeof *gathered);
    int sum = check_size * (check_size - 1) / 2;

    for (int i = 0; i < WORDS; i++)
        mine[i] = (long)check_rank * (i + 1);
    if (check_rank == 0)
        hold();
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(p, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Iallreduce(mine, all, WORDS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
    MPI_Iallgather(&one, 1, MPI_INT, gathered, 1, MPI_INT, MPI_COMM_WORLD, &requests[3]);
    if (check_rank)
        hold();
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK_BYTES("MPI_Ibcast", p, LARGE, seed_of(0, 1));
    for (check_item = 0; check_item < WORDS; check_item++)
        CHECK("MPI_Iallreduce", sum * (check_item + 1), all[check_item]);
    for (check_item = 0; check_item < check_size; check_item++)
        CHECK("MPI_Iallgather", check_item, gathered[check_item]);
    check_item = 0;
    free(gathered);
    free(all);
    free(mine);
    free(p);
}

static void wait_for_rank_0(void)
{
    if (check_rank == 0)
        hold();
    else
        held();
}

static void in_barrier(void)
{
    wait_for_rank_0();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void in_allreduce(void)
{
    long *mine = must_alloc(WORDS * sizeof *mine), *all = must_alloc(WORDS * sizeof *all);

    for (int i = 0; i < WORDS; i++)
        mine[i] = check_rank + i;
    wait_for_rank_0();
    MPI_Allreduce(mine, all, WORDS, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    for (check_item = 0; check_item < WORDS; check_item++)
        CHECK("MPI_Allreduce", check_size - 1 + check_item, all[check_item]);
    check_item = 0;
    free(all);
    free(mine);
}

static void in_split(void)
{
    MPI_Comm half;
    int mine = 1, sum;

    wait_for_rank_0();
    MPI_Comm_split(MPI_COMM_WORLD, check_rank % 2, check_rank, &half);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, half);
    CHECK("ranks of the half", (check_size + 1 - check_rank % 2) / 2, sum);
    MPI_Comm_free(&half);
}

/* --- states: memory of others ----------------------------------------------------------------- */

/* Of each rank: a word that all add to, then one of each rank. */
static long *words;
static MPI_Win window;
static long got[2];
static long *large; /* that are put */

static void make_window(void)
{
    MPI_Aint bytes = (MPI_Aint)((size_t)(1 + check_size + check_size * WORDS) * sizeof *words);

    MPI_Win_allocate(bytes, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
    large = must_alloc(WORDS * sizeof *large);
    for (int i = 0; i < WORDS; i++)
        large[i] = check_rank * 7 + i;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, check_rank, 0, window);
    memset(words, 0, (size_t)bytes);
    words[1 + check_rank] = 5 + check_rank;
    MPI_Win_unlock(check_rank, window);
    got[0] = got[1] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Puts, gets and adds at rank `at`. What was there before the addition is not known yet. */
static void reach(int at)
{
    static const long one = 1;

    MPI_Put(large, WORDS, MPI_LONG, at, 1 + check_size + check_rank * WORDS, WORDS, MPI_LONG,
            window);
    MPI_Get(&got[0], 1, MPI_LONG, at, 1 + at, 1, MPI_LONG, window);
    MPI_Accumulate(&one, 1, MPI_LONG, at, 0, 1, MPI_LONG, MPI_SUM, window);
    MPI_Fetch_and_op(&one, &got[1], MPI_LONG, at, 0, MPI_SUM, window);
}

static void check_got(int at)
{
    CHECK("MPI_Get", 5 + at, got[0]);
    CHECK("MPI_Fetch_and_op", 1, got[1] >= 0 && got[1] < 2 * check_size);
}

/* `origins` ranks from FIRST on have reached this one, which has looked after all of them. */
static void check_reached(int first, int origins)
{
    CHECK("the sum", 2 * origins, words[0]);
    for (int from = first; from < first + origins; from++)
        for (check_item = 0; check_item < WORDS; check_item++)
            CHECK("MPI_Put", from * 7 + check_item,
                  words[1 + check_size + from * WORDS + check_item]);
    check_item = 0;
}

static void free_window(void)
{
    MPI_Win_free(&window);
    free(large);
}

static void in_fence(void)
{
    make_window();
    MPI_Win_fence(0, window);
    reach((check_rank + 1) % check_size);
    hold();
    MPI_Win_fence(0, window);
    check_got((check_rank + 1) % check_size);
    check_reached((check_rank + check_size - 1) % check_size, 1);
    free_window();
}

static MPI_Group origins_or_target(void)
{
    MPI_Group all, some;
    int zero = 0;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    if (check_rank == 0)
        MPI_Group_excl(all, 1, &zero, &some);
    else
        MPI_Group_incl(all, 1, &zero, &some);
    MPI_Group_free(&all);
    return some;
}

/* Rank 0 has posted, and others have not completed; or, when it is late, they wait in
 * MPI_Win_start. */
static void in_pscw(bool late)
{
    MPI_Group group = origins_or_target();

    make_window();
    if (check_rank == 0) {
        if (late)
            hold();
        MPI_Win_post(group, 0, window);
        if (!late)
            hold();
        MPI_Win_wait(window);
        check_reached(1, check_size - 1);
    } else {
        if (late)
            held();
        MPI_Win_start(group, 0, window);
        reach(0);
        if (!late)
            hold();
        MPI_Win_complete(window);
        check_got(0);
    }
    MPI_Group_free(&group);
    free_window();
}

static void in_exposure(void)
{
    in_pscw(false);
}

static void in_start(void)
{
    in_pscw(true);
}

/* Rank 0 has locked what others want to lock. */
static void in_lock(void)
{
    make_window();
    if (check_rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
        MPI_Barrier(MPI_COMM_WORLD);
        reach(2);
        hold();
        MPI_Win_unlock(2, window);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        held();
        MPI_Win_lock(check_rank == 1 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 2, 0, window);
        reach(2);
        MPI_Win_unlock(2, window);
    }
    check_got(2);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, window);
    if (check_rank == 2)
        check_reached(0, check_size);
    MPI_Win_unlock(check_rank, window);
    free_window();
}

/* Locked for all, with requests that are not looked at and more that was not flushed. */
static void in_flush(void)
{
    int at = (check_rank + 1) % check_size;
    MPI_Request requests[2];

    make_window();
    MPI_Win_lock_all(0, window);
    MPI_Rput(large, WORDS, MPI_LONG, at, 1 + check_size + check_rank * WORDS, WORDS, MPI_LONG,
             window, &requests[0]);
    MPI_Rget(&got[0], 1, MPI_LONG, at, 1 + at, 1, MPI_LONG, window, &requests[1]);
    reach(at);
    hold();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush(at, window);
    MPI_Win_unlock_all(window);
    check_got(at);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, check_rank, 0, window);
    check_reached((check_rank + check_size - 1) % check_size, 1);
    MPI_Win_unlock(check_rank, window);
    free_window();
}

/* --- a message of which a half is there ------------------------------------------------------- */

static char *half_buffer;

/* Where the sender comes to the page in the middle of what it sends. */
static void on_fault(int number)
{
    (void)number;
    held();
    while (!may_go_on())
        nap();
    mprotect(half_buffer + HALF / 2, 4096, PROT_READ | PROT_WRITE);
}

static void await_half(void)
{
    uint64_t word = pattern_word(seed_of(1, 1), HALF / 4 / sizeof word);
    int there;

    while (memcmp(half_buffer + HALF / 4, &word, sizeof word) != 0)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, quiet, &there, MPI_STATUS_IGNORE);
}

/* Rank 1 is in the middle of MPI_Send; rank 2 has what was sent so far. Over rings alone: the
 * kernel does not wait for a signal handler. */
static void half_sent(void)
{
    MPI_Request request;

    half_buffer = mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (check_rank == 1) {
        signal(SIGSEGV, on_fault);
        fill(half_buffer, HALF, seed_of(1, 1));
        mprotect(half_buffer + HALF / 2, 4096, PROT_NONE);
        MPI_Send(half_buffer, HALF, MPI_BYTE, 2, 1, MPI_COMM_WORLD);
    } else if (check_rank == 2) {
        MPI_Irecv(half_buffer, HALF, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
        await_half();
        hold();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK_BYTES("half sent", half_buffer, HALF, seed_of(1, 1));
    } else {
        hold();
    }
    munmap(half_buffer, HALF);
}

/* --- all -------------------------------------------------------------------------------------- */

static const struct state {
    const char *name;
    void (*run)(void);
    bool alone; /* with DIR only */
} states[] = {
    {"posted", posted, false},
    {"unexpected", unexpected, false},
    {"synchronous", synchronous, false},
    {"blocked", blocked, false},
    {"probed", probed, false},
    {"persistent", persistent, false},
    {"cancelled", cancelled, false},
    {"collectives", collectives, false},
    {"barrier", in_barrier, false},
    {"allreduce", in_allreduce, false},
    {"split", in_split, false},
    {"fence", in_fence, false},
    {"exposure", in_exposure, false},
    {"start", in_start, false},
    {"lock", in_lock, false},
    {"flush", in_flush, false},
    {"half", half_sent, true},
};

static bool wanted(const struct state *state, int count, char **names)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], state->name) == 0)
            return true;
    return count == 0 && !state->alone;
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    place = argc > 1 ? argv[1] : NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (wanted(&states[i], argc > 2 ? argc - 2 : 0, argv + 2)) {
            states[i].run();
            MPI_Barrier(MPI_COMM_WORLD);
        }
    MPI_Comm_free(&quiet);
    return check_finish("pending");
}
