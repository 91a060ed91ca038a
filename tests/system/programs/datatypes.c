/* Derived datatypes, nested too, sent around a ring from every layout to every
   other layout of the same signature, once and repeated up to rendezvous sizes;
   structs of mixed types; empty types; partial receives (get_elements); a vector
   of 16 MB. Whatever their constructor, the device is handed a type that packs
   and unpacks itself. */
#include "check.h"

/* A layout holds n of the INTS ints, at int offsets at[] in the order of the
   type map; the next instance of the type is extent ints further. */
enum { INTS = 24, MAX_LAYOUTS = 24, REPEAT = 1500, HEAD = 64 };

struct layout {
    const char *name;
    MPI_Datatype type;
    int n, extent, at[INTS];
};

static struct layout layouts[MAX_LAYOUTS];
static int n_layouts;
static int left, right;

/* Commits the type of a layout whose at[] the caller has filled. */
static void finish(struct layout *l, const char *name, int n, int extent)
{
    MPI_Aint lb, real_extent;
    int size;

    l->name = name;
    l->n = n;
    l->extent = extent;
    MPI_Type_commit(&l->type);
    MPI_Type_size(l->type, &size);
    MPI_Type_get_extent(l->type, &lb, &real_extent);
    check_item = n_layouts;
    CHECK("size of a type", n * (int)sizeof(int), size);
    CHECK("extent of a type", extent * (int)sizeof(int), real_extent);
    n_layouts++;
}

/* Offsets of blocks of so many ints. */
static void set_blocks(struct layout *l, int blocks, int length, const int *starts)
{
    int k = 0;

    for (int b = 0; b < blocks; b++)
        for (int i = 0; i < length; i++)
            l->at[k++] = starts[b] + i;
}

static void make_vectors(void)
{
    struct layout *l = &layouts[n_layouts];
    MPI_Datatype inner;
    MPI_Aint shift = 25 * sizeof(int);
    int one = 1, starts[12];

    l->at[0] = 0;
    MPI_Type_dup(MPI_INT, &l->type);
    finish(l++, "int", 1, 1);

    starts[0] = 0;
    set_blocks(l, 1, INTS, starts);
    MPI_Type_contiguous(INTS, MPI_INT, &l->type);
    finish(l++, "contiguous", INTS, INTS);

    for (int b = 0; b < 6; b++)
        starts[b] = 7 * b;
    set_blocks(l, 6, 4, starts);
    MPI_Type_vector(6, 4, 7, MPI_INT, &l->type);
    finish(l++, "vector", INTS, 5 * 7 + 4);

    /* Blocks at 25, 20, ... 0: stored backwards. */
    for (int b = 0; b < 6; b++)
        starts[b] = 25 - 5 * b;
    set_blocks(l, 6, 4, starts);
    MPI_Type_vector(6, 4, -5, MPI_INT, &inner);
    MPI_Type_create_hindexed(1, &one, &shift, inner, &l->type);
    MPI_Type_free(&inner);
    finish(l, "vector of negative stride", INTS, 29);
}

static void make_indexed(void)
{
    struct layout *l = &layouts[n_layouts];
    MPI_Aint shifts[INTS];
    int ones[INTS];

    for (int i = 0; i < INTS; i++) {
        l->at[i] = 3 * (INTS - 1 - i);
        shifts[i] = l->at[i] * (MPI_Aint)sizeof(int);
        ones[i] = 1;
    }
    MPI_Type_create_hindexed(INTS, ones, shifts, MPI_INT, &l->type);
    finish(l, "hindexed, backwards", INTS, 3 * (INTS - 1) + 1);
}

static void make_nested(void)
{
    struct layout *l = &layouts[n_layouts];
    MPI_Datatype pair, spaced, types[3];
    int lengths[] = {4, 2, 2}, starts[] = {3, 0}, k = 0;
    MPI_Aint shifts[] = {20 * sizeof(int), 0, 40 * sizeof(int)};

    l->at[0] = 0;
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &l->type);
    finish(l++, "resized", 1, 3);

    /* Ints 3 and 0 of five. */
    MPI_Type_create_indexed_block(2, 1, starts, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 5 * sizeof(int), &spaced);
    for (int b = 0; b < 4; b++)
        for (int i = 0; i < 3; i++) {
            l->at[k++] = (4 * b + i) * 5 + 3;
            l->at[k++] = (4 * b + i) * 5;
        }
    MPI_Type_vector(4, 3, 4, spaced, &l->type);
    finish(l++, "vector of resized indexed", INTS, (4 * 3 + 3) * 5);

    types[0] = MPI_INT;
    types[1] = spaced;
    MPI_Type_vector(2, 2, 3, spaced, &types[2]);
    k = 0;
    for (int i = 0; i < 4; i++)
        l->at[k++] = 20 + i;
    for (int i = 0; i < 2; i++) {
        l->at[k++] = 5 * i + 3;
        l->at[k++] = 5 * i;
    }
    /* A vector of two is 25 ints long: its last block ends at element 5. */
    for (int v = 0; v < 2; v++)
        for (int b = 0; b < 2; b++)
            for (int i = 0; i < 2; i++) {
                l->at[k++] = 40 + 25 * v + 15 * b + 5 * i + 3;
                l->at[k++] = 40 + 25 * v + 15 * b + 5 * i;
            }
    MPI_Type_create_struct(3, lengths, shifts, types, &l->type);
    finish(l, "struct of int, indexed and vector", INTS, 90);
    MPI_Type_free(&types[2]);
    MPI_Type_free(&spaced);
    MPI_Type_free(&pair);
}

static size_t ints_needed(const struct layout *l, int repeat)
{
    return (size_t)(l->extent * (INTS / l->n) * repeat + HEAD);
}

static size_t offset_of(const struct layout *l, int k)
{
    return (size_t)(l->at[k % l->n] + k / l->n * l->extent);
}

static int *layout_alloc(const struct layout *l, int repeat)
{
    return guarded_alloc(ints_needed(l, repeat) * sizeof(int));
}

static void put_values(const struct layout *l, int *buf, int rank, int repeat)
{
    for (int k = 0; k < INTS * repeat; k++)
        buf[offset_of(l, k)] = rank * 1000000 + k + 1;
}

/* Takes the values out of buf, all of which must then be as guarded. */
static void check_values(const struct layout *l, int *buf, int rank, int repeat)
{
    for (int k = 0; k < INTS * repeat; k++) {
        CHECK(l->name, rank * 1000000 + k + 1, buf[offset_of(l, k)]);
        guard(&buf[offset_of(l, k)], sizeof(int));
    }
    CHECK_GUARDED(l->name, buf, ints_needed(l, repeat) * sizeof(int));
}

static void test_pair(const struct layout *from, const struct layout *to, int repeat)
{
    int count = INTS / to->n * repeat;
    int *out = layout_alloc(from, repeat), *in = layout_alloc(to, repeat);
    MPI_Status status;

    put_values(from, out, check_rank, repeat);
    MPI_Sendrecv(out, INTS / from->n * repeat, from->type, right, 3, in, count, to->type, left, 3,
                 MPI_COMM_WORLD, &status);
    CHECK_STATUS(to->name, &status, left, 3, to->type, count);
    check_values(to, in, left, repeat);
    free(out);
    free(in);
}

struct loose {
    char letter;
    double number;
    short shorts[3];
    long long wide;
};

/* An array of structs in the compiler's layout arrives in a layout without
   padding, and comes back the same way. */
static void test_struct(int count)
{
    int lengths[] = {1, 1, 3, 1};
    MPI_Aint loose_at[] = {offsetof(struct loose, letter), offsetof(struct loose, number),
                           offsetof(struct loose, shorts), offsetof(struct loose, wide)};
    MPI_Aint tight_at[] = {0, 1, 9, 15};
    enum { TIGHT = 23 };
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_LONG_LONG};
    MPI_Datatype plain, loose, tight;
    struct loose *a = must_alloc((size_t)count * sizeof *a);
    struct loose *b = guarded_alloc((size_t)count * sizeof *b);
    char *middle = must_alloc((size_t)count * TIGHT);

    MPI_Type_create_struct(4, lengths, loose_at, types, &plain);
    MPI_Type_create_resized(plain, 0, sizeof(struct loose), &loose);
    MPI_Type_create_struct(4, lengths, tight_at, types, &tight);
    MPI_Type_free(&plain);
    MPI_Type_create_resized(tight, 0, TIGHT, &plain);
    MPI_Type_free(&tight);
    MPI_Type_commit(&loose);
    MPI_Type_commit(&plain);
    guard(a, (size_t)count * sizeof *a);
    for (int i = 0; i < count; i++) {
        a[i].letter = (char)(check_rank + i);
        a[i].number = check_rank + i * 0.25;
        for (int k = 0; k < 3; k++)
            a[i].shorts[k] = (short)(check_rank * 3 + i * 7 + k);
        a[i].wide = check_rank * 10000000000LL + i;
    }
    MPI_Sendrecv(a, count, loose, right, 6, middle, count, plain, left, 6, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(middle, count, plain, left, 7, b, count, loose, right, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        check_item = i;
        CHECK("tight char", (char)(left + i), middle[i * TIGHT]);
        CHECK("struct, padding too", 0, memcmp(&a[i], &b[i], sizeof *a));
    }
    MPI_Type_free(&plain);
    MPI_Type_free(&loose);
    free(middle);
    free(b);
    free(a);
}

static void test_empty(void)
{
    int zeros[2] = {0, 0}, starts[2] = {4, 9}, in[4], out[4] = {1, 2, 3, 4};
    MPI_Datatype types[3];
    MPI_Status status;

    MPI_Type_contiguous(0, MPI_INT, &types[0]);
    MPI_Type_indexed(2, zeros, starts, MPI_INT, &types[1]);
    MPI_Type_vector(0, 3, 5, MPI_INT, &types[2]);
    guard(in, sizeof in);
    for (int i = 0; i < 3; i++)
        MPI_Type_commit(&types[i]);
    for (int i = 0; i < 3; i++) {
        int size;
        check_item = i;
        MPI_Type_size(types[i], &size);
        CHECK("size of an empty type", 0, size);
        MPI_Sendrecv(out, 5, types[i], right, 8, in, 7, types[(i + 1) % 3], left, 8, MPI_COMM_WORLD,
                     &status);
        CHECK_STATUS("empty type", &status, left, 8, MPI_BYTE, 0);
        MPI_Sendrecv(out, 0, MPI_INT, right, 9, in, 3, types[i], left, 9, MPI_COMM_WORLD, &status);
        CHECK_STATUS("empty message", &status, left, 9, MPI_BYTE, 0);
        CHECK_GUARDED("buffer of an empty type", in, sizeof in);
    }
    for (int i = 0; i < 3; i++)
        MPI_Type_free(&types[i]);
}

/* Ten ints for a type of four. */
static void test_partial(void)
{
    int out[10], in[30], count, elements;
    MPI_Datatype four;
    MPI_Status status;

    for (int i = 0; i < 10; i++)
        out[i] = check_rank * 10 + i;
    guard(in, sizeof in);
    MPI_Type_vector(4, 1, 2, MPI_INT, &four);
    MPI_Type_commit(&four);
    MPI_Sendrecv(out, 10, MPI_INT, right, 10, in, 4, four, left, 10, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, four, &count);
    MPI_Get_elements(&status, four, &elements);
    CHECK("count of a partial receive", MPI_UNDEFINED, count);
    CHECK("elements of a partial receive", 10, elements);
    for (int i = 0; i < 10; i++) {
        int at = i / 4 * 7 + i % 4 * 2;
        CHECK("partial receive", left * 10 + i, in[at]);
        guard(&in[at], sizeof(int));
    }
    CHECK_GUARDED("partial receive", in, sizeof in);
    MPI_Type_free(&four);
}

/* 2 M doubles with gaps, to another spacing. */
static void test_large(void)
{
    enum { BLOCKS = 1 << 19, BLOCK = 4, OUT_STEP = 5, IN_STEP = 7 };
    double *out = must_alloc((size_t)BLOCKS * OUT_STEP * sizeof *out);
    double *in = guarded_alloc((size_t)BLOCKS * IN_STEP * sizeof *in);
    MPI_Datatype from, to;
    MPI_Status status;

    MPI_Type_vector(BLOCKS, BLOCK, OUT_STEP, MPI_DOUBLE, &from);
    MPI_Type_vector(BLOCKS, BLOCK, IN_STEP, MPI_DOUBLE, &to);
    MPI_Type_commit(&from);
    MPI_Type_commit(&to);
    for (int i = 0; i < BLOCKS * OUT_STEP; i++)
        out[i] = i + check_rank * 0.5;
    MPI_Sendrecv(out, 1, from, right, 11, in, 1, to, left, 11, MPI_COMM_WORLD, &status);
    CHECK_STATUS("large vector", &status, left, 11, to, 1);
    for (int b = 0; b < BLOCKS; b++) {
        check_item = b;
        for (int i = 0; i < BLOCK; i++)
            CHECK("large vector, doubled", 2 * (b * OUT_STEP + i) + left, 2 * in[b * IN_STEP + i]);
        CHECK_GUARDED("gap", &in[b * IN_STEP + BLOCK], (IN_STEP - BLOCK) * sizeof *in);
    }
    MPI_Type_free(&from);
    MPI_Type_free(&to);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    check_init(&argc, &argv);
    left = (check_rank + check_size - 1) % check_size;
    right = (check_rank + 1) % check_size;
    test_large();
    make_vectors();
    make_indexed();
    make_nested();
    for (int i = 0; i < n_layouts; i++)
        for (int j = 0; j < n_layouts; j++) {
            check_item = i * 100 + j;
            test_pair(&layouts[i], &layouts[j], 1);
            if ((i + j) % 3 == 0)
                test_pair(&layouts[i], &layouts[j], REPEAT);
        }
    test_struct(1);
    test_struct(10000);
    test_empty();
    test_partial();
    for (int i = 0; i < n_layouts; i++)
        MPI_Type_free(&layouts[i].type);
    return check_finish("datatypes");
}
