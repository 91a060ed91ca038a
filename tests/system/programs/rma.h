/* Windows of all kinds for the rma_ programs. Displacements are in bytes. */
#ifndef RMA_H
#define RMA_H

#include "check.h"

enum { WINDOW_CREATED, WINDOW_ALLOCATED, WINDOW_DYNAMIC, WINDOW_KINDS };

struct window {
    MPI_Win win;
    char *base;
    int kind;
    MPI_Aint *bases; /* per rank, what to add to an offset */
};

static inline void window_make(struct window *w, int kind, size_t bytes)
{
    MPI_Aint mine = 0;

    w->kind = kind;
    w->bases = must_alloc((size_t)check_size * sizeof *w->bases);
    if (kind == WINDOW_ALLOCATED) {
        MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->base, &w->win);
    } else {
        w->base = must_alloc(bytes);
        if (kind == WINDOW_CREATED) {
            MPI_Win_create(w->base, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
            MPI_Win_attach(w->win, w->base, (MPI_Aint)bytes);
            MPI_Get_address(w->base, &mine);
        }
    }
    MPI_Allgather(&mine, 1, MPI_AINT, w->bases, 1, MPI_AINT, MPI_COMM_WORLD);
}

static inline MPI_Aint window_at(const struct window *w, int rank, size_t offset)
{
    return w->bases[rank] + (MPI_Aint)offset;
}

static inline void window_free(struct window *w)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (w->kind == WINDOW_DYNAMIC)
        MPI_Win_detach(w->win, w->base);
    MPI_Win_free(&w->win);
    if (w->kind != WINDOW_ALLOCATED)
        free(w->base);
    free(w->bases);
}

#endif
