/* Images between parallel regions of OpenMP, and the same sums afterwards in both processes. The
 * threads of the pool wait for the next region meanwhile. */
#include "tests/image/taker.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 100000

static double numbers[COUNT];
static int own;
#pragma omp threadprivate(own)

static long sum_up(void)
{
    long sum = 0;

#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = numbers[i] * 0.5 + i;
        sum += (long)numbers[i];
    }
    return sum;
}

static int count_lost(void)
{
    int lost = 0;

#pragma omp parallel reduction(+ : lost)
    lost += own != omp_get_thread_num() + 1;
    return lost;
}

int main(void)
{
    long first[50], sum = 0;
    int failures = 0, restored;

#pragma omp parallel
    own = omp_get_thread_num() + 1;
    for (int i = 0; i < 50; i++)
        first[i] = sum_up();
    for (int i = 0; i < COUNT; i++)
        numbers[i] = 0;
    for (int i = 0; i < 20; i++)
        sum = sum_up();
    failures += sum != first[19];
    restored = taker_take();
    for (int i = 20; i < 50; i++)
        failures += sum_up() != first[i];
    failures += count_lost() + (omp_get_max_threads() < 2);
    omp_set_num_threads(7); /* further ones are made */
    failures += sum_up() == 0;
    printf("%s, %d failures\n", restored ? "restored" : "went on", failures);
    return failures != 0;
}
