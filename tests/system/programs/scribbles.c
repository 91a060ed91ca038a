/* Rank 0 writes what cannot be into the channel memory, where rank 1 takes it for a message or for
 * room (docs/protocol.md, "Channel memory"). The others wait for what never comes.
 *
 *   scribbles size | type | more | beyond | total | sent | taken | all */
#include "check.h"

#include <stdbool.h>
#include <unistd.h>

enum {
    LINE = 64,
    HEAD = 128,
    STREAM_HEAD = 192,
    PIECE_HEAD = 40,
    BLOCK = 131072,
    BLOCK_MIN = 32768
};
enum { TAG, SYNC, AM, MORE, SENT, NO_TYPE = 99 };

struct piece {
    _Atomic uint64_t stamp;
    uint16_t size;
    uint16_t type;
    uint32_t req;
    uint64_t tag;
    uint64_t total;
    uint64_t decided;
};

static unsigned char *memory;
static size_t bytes;

static void find_memory(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long from = 0, to = 0;
    char line[512];

    while (maps && fgets(line, sizeof line, maps) && !memory)
        if (strstr(line, "causeway-channel") && sscanf(line, "%lx-%lx", &from, &to) == 2) {
            memory = (unsigned char *)from;
            bytes = to - from;
        }
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 98);
    fclose(maps);
}

static unsigned char *stream(int from, int to)
{
    return memory + HEAD + check_size * LINE + (to * check_size + from) * STREAM_HEAD;
}

static unsigned char *block(uint32_t number)
{
    size_t heads = HEAD + (size_t)check_size * LINE +
                   (size_t)(check_size * check_size + check_size) * STREAM_HEAD;

    return memory + (heads + BLOCK_MIN - 1) / BLOCK_MIN * BLOCK_MIN + (size_t)number * BLOCK;
}

/* Where the next piece from rank 0 to rank 1 will be. Few were put: all are in one block. */
static struct piece *next_piece(uint64_t *at)
{
    uint64_t first = *(_Atomic uint64_t *)(stream(0, 1) + 8);
    unsigned char *begin = block((uint32_t)first - 1);
    size_t offset = 0;

    for (*at = (first >> 32) * BLOCK;
         ((struct piece *)(begin + offset))->stamp == *at + offset + 1;)
        offset += (PIECE_HEAD + ((struct piece *)(begin + offset))->size + LINE - 1) / LINE * LINE;
    *at += offset;
    return (struct piece *)(begin + offset);
}

static void put(uint16_t type, uint16_t size, uint64_t total)
{
    uint64_t at;
    struct piece *piece = next_piece(&at);

    piece->size = size;
    piece->type = type;
    piece->tag = 0;
    piece->total = total;
    piece->req = 12345;
    piece->decided = 0;
    piece->stamp = at + 1;
}

static void scribble_all(void)
{
    uint64_t random = 1;

    for (size_t i = 0; i + 4 <= bytes; i += 4)
        *(uint32_t *)(memory + i) = next_random(&random);
}

static bool scribble(const char *what)
{
    if (strcmp(what, "size") == 0)
        put(TAG, UINT16_MAX, UINT16_MAX);
    else if (strcmp(what, "type") == 0)
        put(NO_TYPE, 8, 8);
    else if (strcmp(what, "more") == 0)
        put(MORE, 8, 8);
    else if (strcmp(what, "beyond") == 0)
        put(TAG, 9, 8);
    else if (strcmp(what, "total") == 0)
        put(TAG, 8, UINT64_MAX);
    else if (strcmp(what, "sent") == 0)
        put(SENT, 0, 0);
    else if (strcmp(what, "taken") == 0)
        *(_Atomic uint64_t *)stream(1, 0) = UINT64_MAX / 2;
    else if (strcmp(what, "all") == 0)
        scribble_all();
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    bool sends = argc > 1 && strcmp(argv[1], "taken") == 0;
    char byte = 0;

    check_init(&argc, &argv);
    find_memory();
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0 && !(argc > 1 && scribble(argv[1])))
        MPI_Abort(MPI_COMM_WORLD, 98);
    while (check_rank == 0 && sends)
        sleep(1); /* it would say what it has taken */
    while (check_rank == 1 && sends)
        MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    MPI_Recv(&byte, 1, MPI_BYTE, (check_rank + 2) % check_size, 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return 1;
}
