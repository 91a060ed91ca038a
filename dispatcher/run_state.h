/* One running job; shared by the parts of the run (run*.c), which nobody else includes. */
#ifndef DISPATCHER_RUN_STATE_H
#define DISPATCHER_RUN_STATE_H

#include "common/transport.h"
#include "dispatcher/fault.h"
#include "dispatcher/input.h"
#include "dispatcher/job.h"
#include "dispatcher/job_events.h"
#include "dispatcher/launch.h"
#include "dispatcher/options.h"
#include "dispatcher/output.h"
#include "dispatcher/pmi.h"
#include "dispatcher/relay_link.h"
#include "dispatcher/rundir.h"
#include "dispatcher/services.h"
#include "dispatcher/status.h"

#include <limits.h>

enum source_kind {
    SOURCE_SIGNAL,
    SOURCE_RELAY,
    SOURCE_STDIN,
    SOURCE_PUMP,
    SOURCE_PMI,
    SOURCE_CONTROL,
    SOURCE_WATCHER,
    SOURCE_FORMER,
    SOURCE_STATUS,
    SOURCE_OUT,
    SOURCE_ERR
};

struct run_rank {
    struct launch_process process; /* pid 0 once it has ended; descriptors -1 once closed */
    struct output_stream streams[2];
    bool watched[2];
    struct output_sink files[2]; /* with --output-dir */
    bool has_early;
    uint8_t *early; /* what its first incarnation read before MPI_Init; owned */
    uint32_t early_size;
    int status;    /* of the last process that ended, as of waitpid(2) */
    uint32_t shot; /* the last incarnation that a drill killed, before its end is heard of */
};

/* A process that was replaced while it may still have lived: its watcher is listened to, so that it
 * lives on, and nothing of it counts. */
struct run_former {
    int fd; /* of its watcher; -1 once it has ended */
    uint32_t rank;
    uint32_t incarnation;
};

struct run_relay {
    struct run *run;
    char address[CW_ADDRESS_MAX];
    uint8_t key[CW_KEY_SIZE];
    uint8_t job_key[CW_KEY_SIZE];
    pid_t pid; /* 0: not ours, or ended */
    struct relay_link link;
    bool linked; /* to all others */
};

struct run {
    const struct run_options *options;
    struct rundir dir;
    bool dir_made;
    uint8_t job_id[CW_ID_SIZE];
    struct run_relay *relays; /* options->relays of them, by number; owned */
    struct services services;

    struct job job;
    struct job_rank *job_ranks;
    bool *slot_used;
    struct run_rank *ranks;
    struct run_former *formers; /* owned */
    uint32_t former_count;
    uint32_t *appnums;
    const struct run_segment **segment_of;
    struct pmi *pmi;
    char device_path[PATH_MAX];
    char (*paths)[PATH_MAX]; /* of each segment's program */

    struct fault_plan faults;
    struct job_events events;
    struct status_server status;
    char host[HOST_NAME_MAX + 1];
    struct timespec started;
    struct cw_stats *stats; /* the last known of each rank */
    uint32_t stats_received;

    struct output_sink sinks[2];
    struct input_pump input;
    bool stdin_polled; /* stdin is of a kind that epoll takes */
    int epoll_fd;
    int open_exit_code; /* when run_open_all fails */
    int signal_fd;
    bool all_started; /* every rank has been started once */
    uint32_t kills;   /* how often all were told SIGKILL */
    uint64_t now_ns;
    uint64_t timeout_at_ns; /* 0: none */
};

/* run.c */
/* A line on stderr. run_say: with --verbose only. */
void run_tell(struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void run_say(struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t run_source(enum source_kind kind, uint32_t rank);
int run_watch(struct run *run, int fd, enum source_kind kind, uint32_t rank, uint32_t events);
void run_unwatch(struct run *run, int fd);
void run_close_watched(struct run *run, int *fd);
/* One turn: waits until something happens, at the latest at `until_ns`, and handles it. */
void run_turn(struct run *run, uint64_t until_ns);

/* run_start.c */
/* Opens all but the ranks. Errors: of every kind; what was opened is closed by the caller. */
int run_open_all(struct run *run, struct cw_err *err);

/* run_launch.c */
/* JOB_START and JOB_DOWN of the job core. */
void run_start_rank(struct run *run, const struct job_order *order);
void run_let_go(struct run *run, const struct job_order *order);
void run_read_former(struct run *run, uint32_t which);
void run_close_formers(struct run *run);

/* run_relay.c */
int run_open_relays(struct run *run, struct cw_err *err);
/* How long ranks and relay spin before they sleep. */
uint64_t run_choose_spin(const struct run_options *options);
void run_read_relay(struct run *run, uint32_t number);
/* The one whose process this is; NULL: none. */
struct run_relay *run_relay_of(const struct run *run, pid_t pid);
/* The relay's process has ended: `status` is that of waitpid(2). */
void run_relay_ended(struct run_relay *relay, int status);
/* Looks whether one of our own relays has ended, which says more than a broken connection. */
bool run_own_relay_ended(struct run *run);
/* The addresses of all, with spaces between. */
void run_relay_addresses(const struct run *run, char *text, size_t size);
void run_stop_relays(struct run *run);

/* run_ranks.c */
extern const struct pmi_ops run_pmi_ops;
void run_read_pmi(struct run *run, uint32_t rank);
void run_read_control(struct run *run, uint32_t rank);
void run_read_watcher(struct run *run, uint32_t rank);
/* The rank cannot be restarted any more (JOB_NO_RANK: nor can any): says so once. */
void run_unlogged(struct run *run, uint32_t rank, const char *why);

/* run_signals.c */
void run_read_signals(struct run *run);
void run_signal_ranks(struct run *run, int signal_number);
/* Processes that the ranks started and left behind became our children: they end with the job. */
void run_end_left_behind(const struct run *run);
/* Kills and stops that the user asked for as a drill. */
void run_fire_faults(struct run *run);
/* For the events file: `fault` hit this rank (NULL: none did). */
void run_fault_fired(struct run *run, uint64_t at_ns, uint32_t rank, enum fault_kind kind,
                     const char *fault);

/* run_output.c */
/* The streams of a rank's process that has just been started; takes over its two pipes. */
int run_open_streams(struct run *run, uint32_t rank, struct cw_err *err);
/* The rank has crashed, and another process will go on; `at_once`: it may still live. */
void run_interrupt_streams(struct run *run, uint32_t rank, bool at_once);
void run_read_output(struct run *run, uint32_t rank, int which);
uint64_t run_output_deadline(struct run *run);
void run_output_tick(struct run *run);
/* No rank is started again: incomplete lines may go out. */
void run_give_up_streams(struct run *run);
/* True while anything of any rank may still come. */
bool run_output_open(const struct run *run);

/* run_status.c */
int run_open_status(struct run *run, struct cw_err *err);
/* When its descriptor is readable, and when its deadline has come. */
void run_step_status(struct run *run);
void run_take_stats(struct run *run, const struct cw_stats *stats);
/* At the end, with --stats. */
void run_collect_stats(struct run *run);

#endif
