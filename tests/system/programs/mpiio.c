/* MPI-IO on one file all ranks share, in the directory argv[1] (default "."):
   read and write at offsets, collective and not, blocking and not, shared and
   ordered file pointers, views with a vector file type, size and preallocation.
   The file is removed at the end. */
#include "check.h"

enum { BLOCK = 100000, RECORD = 64, RECORDS = 50, INTS = 600 };

static char path[4096];
static int me, size;

/* Opens the file empty. */
static MPI_File open_empty(void)
{
    MPI_File file;
    int code;

    code =
        MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (!CHECK_CLASS("open", MPI_SUCCESS, code))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_set_size(file, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    return file;
}

/* Makes what all have written visible to all. */
static void settle(MPI_File file)
{
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}

/* way: 0 at, 1 at_all, 2 iwrite_at and iread_at. Reads the next rank's block. */
static void test_at(int way)
{
    char *buf = must_alloc(BLOCK);
    MPI_Offset mine = (MPI_Offset)me * BLOCK, other = (MPI_Offset)((me + 1) % size) * BLOCK, end;
    MPI_File file = open_empty();
    MPI_Request request;
    MPI_Status status;
    int count;

    fill(buf, BLOCK, (uint64_t)(me + way * 100));
    if (way == 0)
        MPI_File_write_at(file, mine, buf, BLOCK, MPI_BYTE, &status);
    else if (way == 1)
        MPI_File_write_at_all(file, mine, buf, BLOCK, MPI_BYTE, &status);
    else
        MPI_File_iwrite_at(file, mine, buf, BLOCK, MPI_BYTE, &request);
    if (way == 2)
        MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK("bytes written", BLOCK, count);
    settle(file);
    MPI_File_get_size(file, &end);
    CHECK("file size", (MPI_Offset)size * BLOCK, end);
    guard(buf, BLOCK);
    if (way == 0)
        MPI_File_read_at(file, other, buf, BLOCK, MPI_BYTE, &status);
    else if (way == 1)
        MPI_File_read_at_all(file, other, buf, BLOCK, MPI_BYTE, &status);
    else
        MPI_File_iread_at(file, other, buf, BLOCK, MPI_BYTE, &request);
    if (way == 2)
        MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK("bytes read", BLOCK, count);
    CHECK_BYTES("read back", buf, BLOCK, (uint64_t)((me + 1) % size + way * 100));
    MPI_File_close(&file);
    free(buf);
}

/* Individual pointers: seek, write, read, iread, and reading over the end. */
static void test_pointers(void)
{
    MPI_File file = open_empty();
    char buf[2 * RECORD];
    MPI_Request request;
    MPI_Status status;
    MPI_Offset at;
    int count;

    MPI_File_seek(file, (MPI_Offset)me * RECORD, MPI_SEEK_SET);
    fill(buf, RECORD, (uint64_t)me);
    MPI_File_write(file, buf, RECORD, MPI_BYTE, &status);
    MPI_File_get_position(file, &at);
    CHECK("position", (me + 1) * RECORD, at);
    settle(file);
    guard(buf, sizeof buf);
    MPI_File_seek(file, -RECORD, MPI_SEEK_CUR);
    MPI_File_iread(file, buf, RECORD, MPI_BYTE, &request);
    MPI_Wait(&request, &status);
    CHECK_BYTES("iread", buf, RECORD, (uint64_t)me);
    MPI_File_seek(file, -RECORD, MPI_SEEK_END);
    MPI_File_read(file, buf, 2 * RECORD, MPI_BYTE, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK("bytes before the end", RECORD, count);
    CHECK_BYTES("last record", buf, RECORD, (uint64_t)(size - 1));
    MPI_File_close(&file);
}

/* Record owner of each record must be a rank; each rank's come in order. */
static void test_shared(void)
{
    char *all = must_alloc((size_t)(size * RECORDS * RECORD));
    int *next = calloc((size_t)size, sizeof *next), head[2];
    char record[RECORD];
    MPI_File file = open_empty();
    MPI_Status status;

    for (int i = 0; i < RECORDS; i++) {
        head[0] = me;
        head[1] = i;
        fill(record, RECORD, (uint64_t)(me * RECORDS + i));
        memcpy(record, head, sizeof head);
        MPI_File_write_shared(file, record, RECORD, MPI_BYTE, &status);
    }
    settle(file);
    MPI_File_read_at_all(file, 0, all, size * RECORDS * RECORD, MPI_BYTE, &status);
    for (int k = 0; k < size * RECORDS; k++) {
        memcpy(head, all + k * RECORD, sizeof head);
        if (!CHECK("record owner", 1, head[0] >= 0 && head[0] < size))
            break;
        CHECK("record of its owner", next[head[0]]++, head[1]);
        fill(record, RECORD, (uint64_t)(head[0] * RECORDS + head[1]));
        memcpy(record, head, sizeof head);
        CHECK("record", 0, memcmp(record, all + k * RECORD, RECORD));
    }
    MPI_File_close(&file);
    free(next);
    free(all);
}

/* Rank r writes r + 1 records, in rank order; read_ordered gets them back. */
static void test_ordered(void)
{
    size_t bytes = (size_t)(me + 1) * RECORD;
    char *buf = must_alloc(bytes);
    MPI_File file = open_empty();
    MPI_Offset end;
    MPI_Status status;

    for (int round = 0; round < 3; round++) {
        fill(buf, bytes, (uint64_t)(me + round * 50));
        MPI_File_write_ordered(file, buf, (int)bytes, MPI_BYTE, &status);
    }
    settle(file);
    MPI_File_get_size(file, &end);
    CHECK("size of ordered parts", 3 * RECORD * size * (size + 1) / 2, end);
    for (int round = 0; round < 3; round++) {
        MPI_Offset at = ((MPI_Offset)round * size * (size + 1) / 2 + me * (me + 1) / 2) * RECORD;
        guard(buf, bytes);
        MPI_File_read_at(file, at, buf, (int)bytes, MPI_BYTE, &status);
        CHECK_BYTES("ordered part", buf, bytes, (uint64_t)(me + round * 50));
    }
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    for (int round = 0; round < 3; round++) {
        guard(buf, bytes);
        MPI_File_read_ordered(file, buf, (int)bytes, MPI_BYTE, &status);
        CHECK_BYTES("read_ordered", buf, bytes, (uint64_t)(me + round * 50));
    }
    MPI_File_close(&file);
    free(buf);
}

/* Ranks take turns, three ints each: written through a view, read without. */
static void test_view(int collective)
{
    int *buf = must_alloc(INTS * sizeof *buf);
    int *all = must_alloc((size_t)(INTS * size) * sizeof *all);
    MPI_File file = open_empty();
    MPI_Datatype turns;
    MPI_Status status;

    MPI_Type_vector(INTS / 3, 3, 3 * size, MPI_INT, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, me * 3 * (MPI_Offset)sizeof(int), MPI_INT, turns, "native",
                      MPI_INFO_NULL);
    for (int i = 0; i < INTS; i++)
        buf[i] = me * 10000 + i;
    if (collective)
        MPI_File_write_all(file, buf, INTS, MPI_INT, &status);
    else
        MPI_File_write(file, buf, INTS, MPI_INT, &status);
    settle(file);
    guard(buf, INTS * sizeof *buf);
    if (collective)
        MPI_File_read_at_all(file, 0, buf, INTS, MPI_INT, &status);
    else
        MPI_File_read_at(file, 0, buf, INTS, MPI_INT, &status);
    for (int i = 0; i < INTS; i++)
        CHECK("read through the view", me * 10000 + i, buf[i]);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at_all(file, 0, all, INTS * size, MPI_INT, &status);
    for (int k = 0; k < INTS * size; k++) {
        int turn = k / 3 % size, i = k / (3 * size) * 3 + k % 3;
        if (!CHECK("written through the view", turn * 10000 + i, all[k]))
            break;
    }
    MPI_Type_free(&turns);
    MPI_File_close(&file);
    free(all);
    free(buf);
}

int main(int argc, char **argv)
{
    MPI_File file;
    int code;

    check_init(&argc, &argv);
    me = check_rank;
    size = check_size;
    snprintf(path, sizeof path, "%s/mpiio.tmp", argc > 1 ? argv[1] : ".");
    for (int way = 0; way < 3; way++) {
        check_item = way;
        test_at(way);
    }
    test_pointers();
    test_shared();
    test_ordered();
    for (int collective = 0; collective < 2; collective++) {
        check_item = collective;
        test_view(collective);
    }
    if (me == 0)
        CHECK_CLASS("delete", MPI_SUCCESS, MPI_File_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK_CLASS("open of a deleted file", MPI_ERR_NO_SUCH_FILE, code);
    return check_finish("mpiio");
}
