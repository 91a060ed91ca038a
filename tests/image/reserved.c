/* Takes an image of a program that reserves 16 TB of addresses, and uses three pages of them. */
#include "tests/image/taker.h"

#include <stdio.h>
#include <sys/mman.h>

#define SIZE (16ul << 40)
#define FAR (5ul << 40)
#define FARTHER ((15ul << 40) + 4096 * 3)

int main(void)
{
    char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    int restored;

    if (at == MAP_FAILED)
        return 3;
    at[0] = 1;
    at[FAR] = 2;
    at[FARTHER] = 3;
    restored = taker_take();
    if (at[0] != 1 || at[FAR] != 2 || at[FARTHER] != 3 || at[1ul << 40] || at[SIZE - 1])
        return 4;
    printf("%s\n", restored ? "restored" : "went on");
    return 0;
}
