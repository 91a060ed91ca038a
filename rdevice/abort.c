/* MPI_Abort, before MPICH's own, which asks the dispatcher (by PMI) to end the job for
 * MPI_COMM_WORLD only. For another communicator MPICH's function exits, or (intercommunicators)
 * returns, after a message to the other processes of the communicator, which does not reach
 * processes that are about to end. So the dispatcher is asked here. PMPI_Abort is replaced too:
 * interfaces of other languages, and tools, call it.
 *
 * A binding to MPI, above the device and calls.c. */
#include "rdevice/calls.h"
#include "rdevice/device.h"
#include "rdevice/next.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define COMM_WORLD 0x44000000 /* MPI_COMM_WORLD in MPICH's mpi.h */
#define END_WAIT_MS 2000      /* how long the dispatcher has to end us */

typedef int abort_function(int comm, int code);

static void ask_for_the_end(int code)
{
    const char *pmi = getenv("PMI_FD");
    char line[48];
    int size = snprintf(line, sizeof(line), "cmd=abort exitcode=%d\n", code);

    if (!pmi || send(atoi(pmi), line, (size_t)size, MSG_NOSIGNAL) != size)
        dprintf(STDERR_FILENO, "causeway: rank %u: MPI_Abort cannot tell causeway run\n",
                device.setup.process.rank);
}

static int abort_job(const char *name, int comm, int code)
{
    abort_function *next = (abort_function *)calls_find(name);
    sigset_t end;

    if (comm == COMM_WORLD || !device_is_open())
        return next ? next(comm, code) : 1;
    /* the dispatcher's answer is this signal, which has to wait until MPICH has said why */
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &end, NULL);
    ask_for_the_end(code);
    if (next)
        next(comm, code);
    pthread_sigmask(SIG_UNBLOCK, &end, NULL);
    NEXT(poll)(NULL, 0, END_WAIT_MS);
    _exit(code & 255);
}

PUBLIC int MPI_Abort(int comm, int code)
{
    return abort_job("MPI_Abort", comm, code);
}

PUBLIC int PMPI_Abort(int comm, int code)
{
    return abort_job("PMPI_Abort", comm, code);
}
