/* MPI-IO that may be done twice: every byte of the file argv[1]/mpiio_once.tmp is written with the
   same value whenever it is written, nothing is read that another rank may still have to write, and
   the file is neither emptied nor removed. So a rank that is killed may repeat what it did. Blocks
   are written one by one, collectively, without blocking and through a view; then all is read.
   argv[2] is the number of rounds (default 4), argv[1] by default ".". */
#include "check.h"

enum { BLOCK = 60000, TURN = 3, TURNS = 400 };

/* The parts of a round's file, each a block a rank: how they are written. */
enum { AT, AT_ALL, NONBLOCKING, VIEW, PARTS };

static int me, size;

static MPI_Offset part_start(int round, int part)
{
    return (MPI_Offset)(round * PARTS + part) * size * BLOCK;
}

static MPI_Offset block_start(int round, int part, int rank)
{
    return part_start(round, part) + (MPI_Offset)rank * BLOCK;
}

static uint64_t seed_of(int round, int part, int rank)
{
    return (uint64_t)((round * PARTS + part) * 1000 + rank);
}

static void write_blocks(MPI_File file, int round, char *buf)
{
    MPI_Request request;
    MPI_Status status;
    int count;

    fill(buf, BLOCK, seed_of(round, AT, me));
    MPI_File_write_at(file, block_start(round, AT, me), buf, BLOCK, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK("bytes written", BLOCK, count);
    fill(buf, BLOCK, seed_of(round, AT_ALL, me));
    MPI_File_write_at_all(file, block_start(round, AT_ALL, me), buf, BLOCK, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK("bytes written by all", BLOCK, count);
    fill(buf, BLOCK, seed_of(round, NONBLOCKING, me));
    MPI_File_iwrite_at(file, block_start(round, NONBLOCKING, me), buf, BLOCK, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
}

static int turn_value(int round, int rank, int i)
{
    return round * 1000000 + rank * 10000 + i;
}

/* Ranks take turns of three ints; collective, so that no rank reads what lies between its own. */
static void write_view(MPI_File file, int round)
{
    int values[TURN * TURNS];
    MPI_Datatype turns;
    MPI_Status status;

    for (int i = 0; i < TURN * TURNS; i++)
        values[i] = turn_value(round, me, i);
    MPI_Type_vector(TURNS, TURN, TURN * size, MPI_INT, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file,
                      part_start(round, VIEW) + (MPI_Offset)me * TURN * (MPI_Offset)sizeof(int),
                      MPI_INT, turns, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, values, TURN * TURNS, MPI_INT, &status);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Type_free(&turns);
}

static void settle(MPI_File file)
{
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}

static void read_blocks(MPI_File file, int round, char *buf)
{
    int other = (me + 1) % size;
    MPI_Status status;

    for (int part = AT; part < VIEW; part++) {
        guard(buf, BLOCK);
        if (part == AT)
            MPI_File_read_at(file, block_start(round, part, other), buf, BLOCK, MPI_BYTE, &status);
        else
            MPI_File_read_at_all(file, block_start(round, part, other), buf, BLOCK, MPI_BYTE,
                                 &status);
        CHECK_BYTES("block read", buf, BLOCK, seed_of(round, part, other));
    }
}

static void read_turns(MPI_File file, int round)
{
    int count = TURN * TURNS * size;
    int *values = must_alloc((size_t)count * sizeof *values);
    MPI_Status status;

    MPI_File_read_at_all(file, part_start(round, VIEW), values, count, MPI_INT, &status);
    for (int k = 0; k < count; k++) {
        int rank = k / TURN % size, i = k / (TURN * size) * TURN + k % TURN;

        if (!CHECK("value read", turn_value(round, rank, i), values[k]))
            break;
    }
    free(values);
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 4;
    char path[4096], *buf;
    MPI_File file;
    int code;

    check_init(&argc, &argv);
    me = check_rank;
    size = check_size;
    snprintf(path, sizeof path, "%s/mpiio_once.tmp", argc > 1 ? argv[1] : ".");
    code =
        MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (!CHECK_CLASS("open", MPI_SUCCESS, code))
        MPI_Abort(MPI_COMM_WORLD, 1);
    buf = must_alloc(BLOCK);
    for (int round = 0; round < rounds; round++) {
        check_item = round;
        write_blocks(file, round, buf);
        write_view(file, round);
        settle(file);
        read_blocks(file, round, buf);
        read_turns(file, round);
    }
    free(buf);
    MPI_File_close(&file);
    return check_finish("mpiio_once");
}
