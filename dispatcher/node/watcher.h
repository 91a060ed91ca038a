/* The watcher of one rank: a small process between the dispatcher and the process of the rank, its
 * parent. It says that the rank lives, and at once how it ended; it passes signals on; it ends the
 * rank when the dispatcher is gone. The dispatcher and its watchers speak over a SOCK_SEQPACKET
 * pair, one struct watcher_message a datagram.
 *
 * [MPICH-V] 3.1: "During execution, every participating node sends periodically an alive signal to
 * the dispatcher. The alive signal only contains the MPI rank number." */
#ifndef DISPATCHER_WATCHER_H
#define DISPATCHER_WATCHER_H

#include <stdint.h>
#include <sys/types.h>

#define WATCHER_NAME "causeway-watch" /* of the process, in ps and top */

enum watcher_kind {
    WATCHER_STARTED =
        1, /* from the rank's process, before it becomes the program; value: its pid */
    /* from the watcher */
    WATCHER_ALIVE,
    WATCHER_EXITED, /* value: the status of waitpid(2); the last one */
    /* to the watcher */
    WATCHER_SIGNAL, /* value: the signal for the rank's process group */
};

struct watcher_message {
    uint32_t kind;
    uint32_t rank;
    uint32_t incarnation;
    int32_t value;
};

struct watcher_config {
    uint32_t rank;
    uint32_t incarnation;
    uint64_t period_ns;         /* between two signs of life */
    int fd;                     /* its end of the pair */
    int keep_fd;                /* stays open until the rank has ended; at most 2: none */
    void (*become)(void *ctx);  /* in the rank's process, a child of the watcher; must not return */
    void (*no_fork)(void *ctx); /* in the watcher: there is no such process, errno says why */
    void *ctx;
};

/* Runs in a new process of the dispatcher; does not return. Async-signal-safe calls alone. All
 * descriptors but `fd` and `keep_fd` are closed in the watcher as soon as the rank's process is
 * there. */
_Noreturn void watcher_run(const struct watcher_config *config);

/* Takes one message without waiting: 1; 0: there is none now; -1: the watcher is gone. */
int watcher_receive(int fd, struct watcher_message *message);

/* For the rank's process group. Lost when the watcher is gone. */
void watcher_signal(int fd, int signal_number);

#endif
