/* Errors of collectives, which the program handles: a rank refuses its arguments while others call
   nothing, or ranks disagree on lengths. None hangs, ends the job, or takes what has failed for
   good. argv[1]: "mpich" leaves out what MPICH's own need not bear. */
#include "check.h"

enum { FEW = 1, MANY = 10 };

static int me, size;
static int out[64 * MANY], in[64 * MANY];

static int is_error(int code)
{
    return code != MPI_SUCCESS;
}

/* The others do not call them. */
static void refused_by_one(MPI_Comm comm)
{
    int *own = in + me * MANY;

    CHECK_CLASS("gather", MPI_ERR_BUFFER,
                MPI_Gather(own, MANY, MPI_INT, in, MANY, MPI_INT, me, comm));
    CHECK_CLASS("scatter", MPI_ERR_BUFFER,
                MPI_Scatter(in, MANY, MPI_INT, own, MANY, MPI_INT, me, comm));
    CHECK_CLASS("reduce", MPI_ERR_BUFFER, MPI_Reduce(in, in, MANY, MPI_INT, MPI_SUM, me, comm));
    CHECK_CLASS("allgather", MPI_ERR_BUFFER,
                MPI_Allgather(own, MANY, MPI_INT, in, MANY, MPI_INT, comm));
    CHECK_CLASS("alltoall", MPI_ERR_BUFFER,
                MPI_Alltoall(in, MANY, MPI_INT, in, MANY, MPI_INT, comm));
    CHECK_CLASS("allreduce", MPI_ERR_BUFFER, MPI_Allreduce(in, in, 1, MPI_INT, MPI_SUM, comm));
    CHECK_CLASS("scan", MPI_ERR_BUFFER, MPI_Scan(in, in, 1, MPI_INT, MPI_SUM, comm));
    CHECK_CLASS("reduce_scatter_block", MPI_ERR_BUFFER,
                MPI_Reduce_scatter_block(in, in, 1, MPI_INT, MPI_SUM, comm));
    CHECK_CLASS("gather into what is no buffer", MPI_ERR_BUFFER,
                MPI_Gather(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, me, comm));
    CHECK_CLASS("no operation", MPI_ERR_OP, MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_BAND, comm));
}

static void not_committed(MPI_Comm comm)
{
    MPI_Datatype type;

    MPI_Type_contiguous(2, MPI_INT, &type);
    CHECK_CLASS("not committed", MPI_ERR_TYPE, MPI_Bcast(out, 1, type, me, comm));
    CHECK_CLASS("not committed", MPI_ERR_TYPE, MPI_Gather(out, 1, type, in, 2, MPI_INT, me, comm));
    MPI_Type_free(&type);
}

/* All is as if nothing had happened. */
static void goes_on(MPI_Comm comm, int times)
{
    for (int i = 0; i < times; i++) {
        int sum = -1, told = me == i % size ? i : -1;

        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK("sum", size * (size - 1) / 2, sum);
        MPI_Bcast(&told, 1, MPI_INT, i % size, comm);
        CHECK("told", i, told);
        MPI_Barrier(comm);
    }
}

static void scatter_of_more(MPI_Comm comm, int root)
{
    int count = me == root ? MANY : FEW;

    CHECK("scatter of more", me != root,
          is_error(MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, root, comm)));
    MPI_Barrier(comm);
}

static void lengths_of_root(MPI_Comm comm, int root)
{
    int less = me == root ? FEW : MANY, more = me == root ? MANY : FEW;

    check_item = root;
    CHECK("bcast of less", me != root, is_error(MPI_Bcast(in, less, MPI_INT, root, comm)));
    MPI_Barrier(comm);
    CHECK("bcast of more", me != root, is_error(MPI_Bcast(in, more, MPI_INT, root, comm)));
    MPI_Barrier(comm);
    if (is_error(MPI_Gather(out, MANY, MPI_INT, in, less, MPI_INT, root, comm)) < (me == root))
        CHECK("gather of more", 1, 0);
    MPI_Barrier(comm);
}

/* Somebody hears of it. */
static void heard(const char *what, int code)
{
    int mine = is_error(code), any = 0;

    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(what, 1, any);
}

static void lengths_of_all(int odd)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int count = me == odd ? FEW : MANY;

    check_item = odd;
    heard("allreduce", MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm));
    heard("allgather", MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, comm));
    heard("alltoall", MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, comm));
    heard("reduce_scatter", MPI_Reduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, comm));
    MPI_Reduce(out, in, count, MPI_INT, MPI_SUM, 0, comm); /* what is too short nobody sees */
    heard("scan", MPI_Scan(out, in, count, MPI_INT, MPI_SUM, comm));
    goes_on(comm, 2);
}

int main(int argc, char **argv)
{
    int sites = argc < 2 || strcmp(argv[1], "mpich") != 0;
    MPI_Comm copy;

    check_init(&argc, &argv);
    me = check_rank;
    size = check_size;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (me == size - 1) {
        refused_by_one(MPI_COMM_WORLD);
        not_committed(MPI_COMM_WORLD);
    }
    goes_on(MPI_COMM_WORLD, 3);
    for (int root = 0; root < size; root++)
        lengths_of_root(MPI_COMM_WORLD, root);
    for (int root = 0; sites && root < size; root++)
        scatter_of_more(MPI_COMM_WORLD, root);
    for (int odd = 0; sites && odd < size; odd++)
        lengths_of_all(odd);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int round = 0; round < 6; round++) {
        if (me == round % size)
            refused_by_one(copy);
        goes_on(copy, 1);
    }
    MPI_Comm_free(&copy);
    return check_finish("sites_errors");
}
