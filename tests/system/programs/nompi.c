/* Not an MPI program: for starting something else than MPI processes. */
#include <stdio.h>

int main(void)
{
    puts("not mpi");
    return 0;
}
