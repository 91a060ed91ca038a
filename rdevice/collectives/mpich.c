#include "rdevice/collectives/mpich.h"

#include <pthread.h>
#include <string.h>

struct mpich mpich;

static MPI_Comm self = MPI_COMM_NULL;
static bool self_made;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A pointer to a function is not an object pointer in C, but is for dlsym(). */
static bool resolve(void *pointer, void *at)
{
    memcpy(pointer, &at, sizeof(at));
    return at;
}

MPI_Comm mpich_self(void)
{
    pthread_mutex_lock(&lock);
    if (!self_made && mpich.Comm_dup(MPI_COMM_SELF, &self) == MPI_SUCCESS)
        mpich.Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    self_made = true;
    pthread_mutex_unlock(&lock);
    return self;
}

bool mpich_resolve(void *(*find)(const char *name))
{
    bool all = true;

#define MPICH_RESOLVE(name) all = resolve(&mpich.name, find("PMPI_" #name)) && all;
    MPICH_FUNCTIONS(MPICH_RESOLVE)
#undef MPICH_RESOLVE
    return all;
}
