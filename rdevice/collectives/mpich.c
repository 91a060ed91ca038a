#include "rdevice/collectives/mpich.h"

#include <string.h>

struct mpich mpich;

/* A pointer to a function is not an object pointer in C, but is for dlsym(). */
static bool resolve(void *pointer, void *at)
{
    memcpy(pointer, &at, sizeof(at));
    return at;
}

bool mpich_resolve(void *(*find)(const char *name))
{
    bool all = true;

#define MPICH_RESOLVE(name) all = resolve(&mpich.name, find("PMPI_" #name)) && all;
    MPICH_FUNCTIONS(MPICH_RESOLVE)
#undef MPICH_RESOLVE
    return all;
}
