/* Ranks in a ring that tell each other what only they know: how often they polled, what a clock
   said. Each rank keeps a sum of what it told its right neighbour and of what its left neighbour
   told it; tell_echo() gives the latter back and compares. A rank that is killed and repeats itself
   must come to the sums that its neighbours were told before. */
#ifndef TELL_H
#define TELL_H

#include "check.h"

enum { TELL_ECHO_TAG = 900, TELL_WORDS_MAX = 64 };

struct teller {
    int left, right;
    uint64_t told, heard; /* sums, in which the order counts */
};

static inline uint64_t tell_mix(uint64_t sum, uint64_t value)
{
    return pattern_word(sum, value);
}

static inline struct teller tell_start(void)
{
    return (struct teller){
        .left = (check_rank + check_size - 1) % check_size,
        .right = (check_rank + 1) % check_size,
    };
}

/* A length that depends on what is told, in words: at least 2. A wrong one is seen by its length.
 */
static inline int tell_words(uint64_t value)
{
    return 2 + (int)(tell_mix(0, value) % (TELL_WORDS_MAX - 1));
}

/* Fills a message of tell_words(value) words. */
static inline int tell_prepare(struct teller *t, uint64_t *words, uint64_t value)
{
    int count = tell_words(value);

    fill(words, (size_t)count * sizeof *words, value);
    words[0] = value;
    t->told = tell_mix(t->told, value);
    words[1] = t->told;
    return count;
}

static inline void tell_hear(struct teller *t, const uint64_t *words, int count)
{
    CHECK("words told", tell_words(words[0]), count);
    t->heard = tell_mix(t->heard, words[0]);
    CHECK("sum of what was told", t->heard, words[1]);
}

static inline void tell_echo(const struct teller *t)
{
    uint64_t back = 0;

    MPI_Sendrecv(&t->heard, 1, MPI_UINT64_T, t->left, TELL_ECHO_TAG, &back, 1, MPI_UINT64_T,
                 t->right, TELL_ECHO_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK("sum that the neighbour heard", t->told, back);
}

#endif
