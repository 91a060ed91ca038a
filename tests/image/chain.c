/* Ten generations, each restored from the image of the one before: the number of those that were
 * is kept in memory and in a file. */
#include "tests/image/taker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int *heap = calloc(100000, sizeof(*heap));
    int wanted = argc > 1 ? atoi(argv[1]) : 10;
    FILE *file = fopen("chain", "w");

    for (int generation = 0; generation < wanted; generation++) {
        for (int i = 0; i < 100000; i++)
            if (heap[i] != generation) {
                printf("generation %d: the heap is wrong\n", generation);
                return 1;
            }
        for (int i = 0; i < 100000; i++)
            heap[i]++;
        fprintf(file, "generation %d\n", generation);
        fflush(file);
        if (taker_take() == 0)
            return 0; /* the next generation goes on */
    }
    printf("%d generations\n", wanted);
    return 0;
}
