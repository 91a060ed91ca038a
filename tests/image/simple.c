/* Takes an image and goes on: the simplest one. */
#include "tests/image/taker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned char far_apart[8ul << 30];
static _Thread_local int of_thread = 7;

int main(void)
{
    char *heap = malloc(3000000);
    int restored;

    memset(heap, 5, 3000000);
    far_apart[5ul << 30] = 77;
    of_thread = 99;
    restored = taker_take();
    if (heap[2999999] != 5 || far_apart[5ul << 30] != 77 || far_apart[7ul << 30] != 0 ||
        of_thread != 99)
        return 4;
    printf("%s\n", restored ? "restored" : "went on");
    return 0;
}
