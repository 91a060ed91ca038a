/* Shared by the test programs: counts failures, fills and verifies buffers,
   and reports the result of all ranks. Every CHECK_ macro that fails prints one
   line to stderr (up to CHECK_MAX_LINES a rank) and lets the program go on. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

/* gcc takes MPICH's MPI_STATUSES_IGNORE, a pointer to 1, for a buffer. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

enum { CHECK_MAX_LINES = 50, CHECK_GUARD = 0xA5 };

static atomic_int check_failures;
static int check_rank, check_size;

/* Printed with each failure: a size, a round, whatever the loop runs over. */
static _Thread_local long check_item;

/* CHECK: two integers are equal. CHECK_BYTES: n bytes are as fill() left them.
   CHECK_GUARDED: n bytes are as guard() left them. CHECK_STATUS: source, tag
   and count of a status. CHECK_CLASS: an error code is of an error class. */
#define CHECK(what, expected, seen)                                                                \
    check_equal(__FILE__, __LINE__, what, (long long)(expected), (long long)(seen))
#define CHECK_BYTES(what, buf, n, seed) check_bytes(__FILE__, __LINE__, what, buf, n, seed)
#define CHECK_GUARDED(what, buf, n) check_guarded(__FILE__, __LINE__, what, buf, n)
#define CHECK_STATUS(what, status, source, tag, type, count)                                       \
    check_status(__FILE__, __LINE__, what, status, source, tag, type, count)
#define CHECK_CLASS(what, expected, code) CHECK(what, expected, check_class(code))

static inline int check_equal(const char *file, int line, const char *what, long long expected,
                              long long seen)
{
    if (expected == seen)
        return 1;
    if (atomic_fetch_add(&check_failures, 1) < CHECK_MAX_LINES)
        fprintf(stderr, "FAIL rank %d %s:%d %s (item %ld): expected %lld, saw %lld\n", check_rank,
                file, line, what, check_item, expected, seen);
    return 0;
}

static inline uint64_t pattern_word(uint64_t seed, uint64_t index)
{
    uint64_t x = (index + 1 + seed * 0x100000001B3u) * 0x9E3779B97F4A7C15u;

    return x ^ (x >> 29);
}

static inline void fill(void *buf, size_t n, uint64_t seed)
{
    unsigned char *p = buf;

    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = pattern_word(seed, i / 8);
        memcpy(p + i, &word, n - i < 8 ? n - i : 8);
    }
}

static inline int check_bytes(const char *file, int line, const char *what, const void *buf,
                              size_t n, uint64_t seed)
{
    const unsigned char *p = buf;

    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = pattern_word(seed, i / 8);
        unsigned char want[8];
        size_t len = n - i < 8 ? n - i : 8;

        memcpy(want, &word, 8);
        if (memcmp(p + i, want, len) == 0)
            continue;
        for (size_t k = 0; k < len; k++)
            if (p[i + k] != want[k]) {
                fprintf(stderr, "first bad byte at %zu of %zu: ", i + k, n);
                return check_equal(file, line, what, want[k], p[i + k]);
            }
    }
    return 1;
}

static inline void guard(void *buf, size_t n)
{
    memset(buf, CHECK_GUARD, n);
}

static inline int check_guarded(const char *file, int line, const char *what, const void *buf,
                                size_t n)
{
    const unsigned char *p = buf;

    for (size_t i = 0; i < n; i++)
        if (p[i] != CHECK_GUARD)
            return check_equal(file, line, what, CHECK_GUARD, p[i]);
    return 1;
}

static inline int check_status(const char *file, int line, const char *what,
                               const MPI_Status *status, int source, int tag, MPI_Datatype type,
                               int count)
{
    int seen, good;
    char text[128];

    MPI_Get_count(status, type, &seen);
    snprintf(text, sizeof text, "%s: source", what);
    good = check_equal(file, line, text, source, status->MPI_SOURCE);
    snprintf(text, sizeof text, "%s: tag", what);
    good &= check_equal(file, line, text, tag, status->MPI_TAG);
    snprintf(text, sizeof text, "%s: count", what);
    return good & check_equal(file, line, text, count, seen);
}

static inline int check_class(int code)
{
    int class;

    MPI_Error_class(code, &class);
    return class;
}

static inline void *must_alloc(size_t n)
{
    void *p = malloc(n ? n : 1);

    if (!p) {
        fprintf(stderr, "out of memory for %zu bytes\n", n);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    return p;
}

static inline void *guarded_alloc(size_t n)
{
    void *p = must_alloc(n);

    guard(p, n);
    return p;
}

/* A small generator, the same on every machine. */
static inline uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline void check_start(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
}

static inline void check_init(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    check_start();
}

/* MPI_Finalize of MPICH 4.0.2 over UCX and TCP hangs now and then: closing a
   connection waits for an answer of the peer, which a peer that already sits in
   the PMI barrier does not give (MPICH pull request 6596 removed that barrier).
   It gets there too early only when a slower rank, still busy with the call
   before MPI_Finalize, has answered it. So all ranks pause in between. */
static inline void finalize_after_pause(void)
{
    struct timespec pause = {0, 200000000};

    thrd_sleep(&pause, NULL);
    MPI_Finalize();
}

/* Ends MPI. The value is for main to return. */
static inline int check_finish(const char *name)
{
    int mine = check_failures, all;

    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (check_rank == 0 && all == 0) {
        printf("ok %s\n", name);
        fflush(stdout);
    }
    finalize_after_pause();
    return all != 0;
}

#endif
