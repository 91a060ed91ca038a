/* The command line of `causeway run`. */
#ifndef DISPATCHER_OPTIONS_H
#define DISPATCHER_OPTIONS_H

#include "dispatcher/hosts/grid_job.h"
#include "dispatcher/job/fault.h"
#include "dispatcher/options/host_options.h"
#include "relay/options.h"

#define OPTIONS_SEGMENTS_MAX 64
#define OPTIONS_ENV_MAX 256
#define OPTIONS_KILL_AFTER_NS 30000000000ull    /* as Slurm's KillWait */
#define OPTIONS_ALIVE_TIMEOUT_NS 10000000000ull /* unless the user says otherwise, both */
#define OPTIONS_ALIVE_PERIODS 8                 /* signs of life in that time, or more: */
#define OPTIONS_ALIVE_PERIOD_NS 500000000ull    /* at most between two of them */
#define OPTIONS_ORPHAN_NS_MAX 3600000000000ull  /* a longer --orphan-timeout is refused */
#define OPTIONS_ALIVE_MIN_NS 10000000ull        /* a shorter --alive-timeout is refused */
#define CKPT_SERVERS_MAX 16                     /* of a job */
#define CKPT_EVERY_MIN_NS 1000000ull            /* a shorter --ckpt-every is refused */

/* One program of the job: what stands between two ':'. */
struct run_segment {
    uint32_t ranks;
    const char *wdir; /* NULL: where we are */
    const char **env; /* NAME=VALUE, env_count of them; owned by run_options */
    uint32_t env_count;
    char **argv; /* NULL-terminated; borrowed from the command line */
};

/* Of the processes of ranks. */
struct image_options {
    bool none;                             /* are taken; as with no_log */
    uint64_t every_ns;                     /* 0: chosen by what they cost and gain */
    uint64_t mtbf_ns;                      /* of a rank; 0: as observed */
    const char *dir;                       /* of the own checkpoint server; NULL: chosen */
    uint64_t bytes_max;                    /* of it; 0: chosen */
    uint32_t copies;                       /* servers that keep each image; 0: one */
    const char *servers[CKPT_SERVERS_MAX]; /* that run already */
    uint32_t server_count;                 /* 0: the job has one of its own */
    const char *key_file;
};

/* Ranks exchange messages through channel memory, or through the relay. */
enum channel_use { CHANNEL_AUTO, CHANNEL_OFF, CHANNEL_ON };

enum contents_checked { CONTENTS_SOME, CONTENTS_ALL, CONTENTS_NONE };

struct run_options {
    struct run_segment segments[OPTIONS_SEGMENTS_MAX];
    uint32_t segment_count;
    uint32_t ranks;                   /* of all segments */
    const char *env[OPTIONS_ENV_MAX]; /* --genv and -x, for all */
    uint32_t env_count;
    const char *relay_addresses[CW_RELAYS_MAX]; /* of relays that run already */
    uint32_t relay_count;                       /* 0: embedded */
    const char *key_file;
    uint32_t relays;       /* of the job, embedded or not; 0: as many as its hosts or sites have */
    const char *relay_map; /* NULL: ranks in turn */
    uint32_t flat_collectives; /* MPICH's own, though there are several relays */
    struct host_options hosts;
    const char *grid_file;
    const char *here;                     /* the site of this machine; NULL: by its name */
    struct grid_job *grid;                /* what the grid file means; NULL: there is none. Owned */
    uint32_t restart_at_any_site;         /* else at that of a rank's first slot */
    struct relay_settings relay_settings; /* of the embedded relay */
    const char *output_dir;
    uint64_t timeout_ns; /* 0: none */
    uint64_t kill_after_ns;
    uint64_t spin_ns;               /* UINT64_MAX: chosen from ranks and cores */
    bool no_log;                    /* a crash ends the job */
    enum channel_use channel;       /* CHANNEL_AUTO, once all options are known: on hosts, where
                                       these allow it */
    bool trust_files;               /* files that ranks share do not hinder a restart */
    uint32_t log_lost_ends;         /* the job ends when a rank can no longer be restarted */
    enum contents_checked contents; /* what of messages is compared */
    uint32_t contents_end;          /* the job ends where it differs */
    uint32_t log_copies;            /* of each relay's log, at relays on other hosts */
    uint32_t max_restarts;
    uint64_t alive_period_ns;  /* between two signs of life of a rank */
    uint64_t alive_timeout_ns; /* more than the period */
    uint64_t resume_ns;        /* as given; UINT64_MAX: it is not */
    uint32_t resume_ms;        /* how long a session may be suspended; 0: it ends at once */
    struct fault_plan faults;
    struct image_options images;
    const char **words; /* argv as it was given, word_count of them; owned */
    int word_count;
    const char *values[CW_OPTIONS_MAX]; /* of cw_options_parse */
    const char *job_dir; /* where the job is kept, to be gone on with; NULL: it is not */
    uint64_t orphan_ns;  /* that hosts go on without us, for another dispatcher; 0: they do not */
    const char *events;  /* file for the job's events; NULL: none */
    bool tag_output;
    bool stats;
    bool verbose;
    bool help;
};

extern const struct cw_options run_option_list;

/* argv[0] is "run". Writes NULs into argv where ':' stands. Errors: CW_EINVAL, CW_ENOMEM. */
int run_options_parse(struct run_options *options, int argc, char **argv, struct cw_err *err);
void run_options_free(struct run_options *options);

#endif
