/* One running job; shared by the parts of the run (run*.c), which nobody else includes. */
#ifndef DISPATCHER_RUN_STATE_H
#define DISPATCHER_RUN_STATE_H

#include "common/transport.h"
#include "dispatcher/input.h"
#include "dispatcher/job.h"
#include "dispatcher/launch.h"
#include "dispatcher/options.h"
#include "dispatcher/output.h"
#include "dispatcher/pmi.h"
#include "dispatcher/relay_link.h"
#include "dispatcher/rundir.h"

#include <limits.h>

#define RUN_LOST_NS 1000000000ull /* a rank that lost its relay may still tell why it ends */

enum source_kind {
    SOURCE_SIGNAL,
    SOURCE_RELAY,
    SOURCE_STDIN,
    SOURCE_PUMP,
    SOURCE_PMI,
    SOURCE_CONTROL,
    SOURCE_OUT,
    SOURCE_ERR
};

struct run_rank {
    struct launch_process process; /* pid 0 once it was reaped */
    struct output_stream streams[2];
    bool watched[2];
    struct output_sink files[2]; /* with --output-dir */
};

struct run {
    const struct run_options *options;
    struct rundir dir;
    bool dir_made;
    char relay_address[CW_ADDRESS_MAX];
    uint8_t relay_key[CW_KEY_SIZE];
    uint8_t job_key[CW_KEY_SIZE];
    uint8_t job_id[CW_ID_SIZE];
    pid_t relay_pid; /* 0: not ours */
    bool relay_lost;
    struct relay_link link;
    struct cw_stats *stats;
    uint32_t stats_received;

    struct job job;
    struct job_rank *job_ranks;
    struct run_rank *ranks;
    uint32_t *appnums;
    const struct run_segment **segment_of;
    struct pmi *pmi;
    char device_path[PATH_MAX];
    char (*paths)[PATH_MAX]; /* of each segment's program */

    struct output_sink sinks[2];
    struct input_pump input;
    bool stdin_polled; /* stdin is of a kind that epoll takes */
    int epoll_fd;
    int open_exit_code; /* when run_open_all fails */
    int signal_fd;
    uint64_t now_ns;
    uint64_t timeout_at_ns; /* 0: none */
    uint64_t lost_at_ns;    /* when to take `lost` for the reason; 0: nothing lost */
    char lost[CW_ERR_TEXT_MAX];
};

/* run.c */
/* With --verbose: a line on stderr. */
void run_say(const struct run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t run_source(enum source_kind kind, uint32_t rank);
int run_watch(struct run *run, int fd, enum source_kind kind, uint32_t rank, uint32_t events);
void run_unwatch(struct run *run, int fd);
void run_close_watched(struct run *run, int *fd);
/* One turn: waits until something happens, at the latest at `until_ns`, and handles it. */
void run_turn(struct run *run, uint64_t until_ns);

/* run_start.c */
/* Opens all but the ranks. Errors: of every kind; what was opened is closed by the caller. */
int run_open_all(struct run *run, struct cw_err *err);
void run_start_ranks(struct run *run);

/* run_relay.c */
int run_open_relay(struct run *run, struct cw_err *err);
/* How long ranks and relay spin before they sleep. */
uint64_t run_choose_spin(const struct run_options *options);
void run_read_relay(struct run *run);
/* The relay's process has ended: `status` is that of waitpid(2). */
void run_relay_ended(struct run *run, int status);
/* Somebody's connection to the relay broke. */
void run_relay_lost(struct run *run, const char *text);
void run_collect_stats(struct run *run);
void run_stop_relay(struct run *run);

/* run_ranks.c */
extern const struct pmi_ops run_pmi_ops;
void run_read_pmi(struct run *run, uint32_t rank);
void run_read_control(struct run *run, uint32_t rank);
void run_read_signals(struct run *run);
void run_signal_ranks(struct run *run, int signal_number);
/* Processes that the ranks started and left behind became our children: they end with the job. */
void run_end_left_behind(const struct run *run);

/* run_output.c */
/* Watches the stream or not, as it wants; `fd_before` is its descriptor before it was read. */
void run_stream_update(struct run *run, uint32_t rank, int which, int fd_before);
void run_read_output(struct run *run, uint32_t rank, int which);
uint64_t run_output_deadline(struct run *run);
void run_output_tick(struct run *run);
/* True while anything of any rank may still come. */
bool run_output_open(const struct run *run);

#endif
