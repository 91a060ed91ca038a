/* The job core: what happens to the ranks comes in as events; what is to be done about it, and how
 * the job ends, comes out. Pure: no I/O, no clock (times are given), no thread.
 *
 * [MPICH-V] 3.1: the dispatcher "detects a potential failure when an alive signal is timed out ...
 * It then launches another task (a new instance of the same MPI process)". Here a crash is also
 * heard of at once, from the process that watches the rank and from the rank's relay. */
#ifndef DISPATCHER_JOB_H
#define DISPATCHER_JOB_H

#include "common/err.h"
#include "dispatcher/job/slots.h"

#define JOB_GRACE_NS 2000000000ull /* before ranks of a failed job that do not end are killed */
#define JOB_SAME_NS 100000000ull   /* a signal that comes again so soon is the same one */
#define JOB_LOST_NS 1000000000ull  /* a rank that lost its relay may still tell why it ends */
#define JOB_PLACE_NS 1000000000ull /* for the relay to say how far a crashed rank had come */
/* Before a restart when the one before led no further; doubled each time. */
#define JOB_BACKOFF_MIN_NS 10000000ull
#define JOB_BACKOFF_MAX_NS 1000000000ull
#define JOB_RESTARTS_MAX 100 /* of a rank, unless the user says otherwise */
#define JOB_EXIT_TIMEOUT 124 /* exit code of a job that ran out of time, as timeout(1) */
#define JOB_NO_RANK UINT32_MAX

enum job_rank_state {
    JOB_RANK_DOWN,      /* no process; one is to be started */
    JOB_RANK_STARTED,   /* runs; has not called MPI_Init */
    JOB_RANK_MPI,       /* has called MPI_Init */
    JOB_RANK_FINALIZED, /* has called MPI_Finalize */
    JOB_RANK_ENDED,
};

/* How far a rank had come when its relay lost it. */
struct job_place {
    bool known;
    uint64_t acts;
    uint64_t event;
};

/* What is left of a crashed rank's process. */
enum job_remains {
    JOB_REMAINS_NOTHING,
    JOB_REMAINS_KILL,  /* it may still run, to no purpose: kill it */
    JOB_REMAINS_LEAVE, /* it is out of reach, perhaps for a time: the relay keeps it out */
};

struct job_rank {
    enum job_rank_state state;
    bool starting; /* a process was ordered: job_rank_started or job_start_failed follows */
    bool called_init;
    bool called_finalize;
    const char *program;  /* borrowed; for messages */
    uint32_t incarnation; /* of the process that runs or ran last; 0: none yet */
    uint32_t restarts;
    bool from_image;   /* this incarnation was to go on from an image ... */
    uint64_t event;    /* ... which had taken all events up to this one */
    bool not_restored; /* ... and cannot: it ends, or has ended, without having done anything */
    uint32_t slot;
    struct slot_search search; /* for the next one */
    bool up;                   /* this incarnation has connected to its relay */
    bool live;                 /* ... and has nothing left to repeat */
    uint64_t to_repeat;        /* events */
    uint64_t up_ns;
    struct life life;     /* suspect: it lost its relay */
    bool told_lost;       /* it said so itself */
    bool differs;         /* it has repeated a message with other contents */
    bool unlogged;        /* it cannot be restarted any more ... */
    uint64_t unlogged_ns; /* ... since then */
    int fault;            /* the signal of the program's own making that ended it; 0: none */
    int fault_before;     /* ... and its predecessor */
    int status;           /* of its last process that ended, as of waitpid(2) */
    struct job_place place;
    struct job_place place_before;
    bool down_due;     /* the driver has not been told yet that it is down */
    bool deciding;     /* it waits for its place, to know whether it may be restarted */
    uint64_t start_ns; /* when to start the next incarnation */
    bool start_again;  /* ... on another slot than the last time */
    uint64_t backoff_ns;
    enum job_remains remains;
    bool hung;                 /* it went down because it gave no sign of life */
    int exit_code;             /* of the job, if this crash ends it */
    char why[CW_ERR_TEXT_MAX]; /* what happened to it: "was killed by ..." */
    char unlogged_why[CW_ERR_TEXT_MAX];
};

/* What the driver is to do next; each is asked for once. */
enum job_action {
    JOB_NOTHING,
    JOB_DOWN,   /* order: let go of this rank's process */
    JOB_START,  /* order: start this incarnation; job_rank_started or job_start_failed follows, at
                   once or later */
    JOB_SIGNAL, /* send job->signal_number to every rank that runs or is being started */
    JOB_DONE,   /* no rank runs, none is being started: report and exit with job->exit_code */
};

/* The rest of JOB_DOWN and JOB_START. */
struct job_order {
    struct cw_process process;
    uint32_t slot;            /* START */
    bool again;               /* START: another slot did not do */
    enum job_remains remains; /* DOWN */
    bool hung;                /* DOWN: it gave no sign of life */
    const char *why;          /* what happened to the incarnation before; borrowed */
};

struct job_config {
    uint32_t ranks;
    bool recover;  /* restart crashed ranks; else a crash ends the job */
    bool any_site; /* ... also at another site than that of their first slot */
    uint32_t restarts_max;
    uint64_t alive_timeout_ns; /* 0: a rank may be silent */
    uint64_t kill_after_ns;    /* as JOB_GRACE_NS, of a job that is to end before it is done */
};

struct job {
    struct job_config config;
    uint32_t running;      /* processes */
    uint32_t starting;     /* ... and those that are ordered */
    uint32_t down;         /* ranks in JOB_RANK_DOWN */
    uint32_t in_mpi;       /* ranks in JOB_RANK_MPI */
    uint32_t without_init; /* ranks that ended well and never called MPI_Init */
    bool ending;
    bool no_mpi; /* all ended, and none ever called MPI_Init */
    int exit_code;
    char reason[CW_ERR_TEXT_MAX]; /* empty when all is well */
    int signal_number;
    bool signal_due;
    uint64_t kill_at_ns;     /* when grace is over; 0: no kill is due */
    int interrupted_by;      /* the last signal of job_interrupt; 0: none came */
    uint64_t interrupted_ns; /* ... and when it came */
    uint64_t relay_lost_ns;  /* when to end because the relay is gone; 0: it is there */
    char relay_lost[CW_ERR_TEXT_MAX];
    uint64_t passed_on; /* signals that were passed on to the ranks, one bit each */
    struct job_rank *rank;
    struct job_slots slots;
    uint64_t seen_ns; /* the last job_next */
    uint64_t due_ns;  /* when a rank may have something new; it and the next two are the scan's */
    uint64_t due_later_ns;
    uint32_t cursor;
};

/* `rank` is the caller's array of zeroed entries, with `program` set. Until they have places no
 * rank can be started. */
void job_init(struct job *job, const struct job_config *config, struct job_rank *rank);

/* `slot` is the caller's array of `slots` zeroed entries, with `host`, `site` and `ranks_max` set.
 * `rank_slot`: of the first incarnations; NULL: slot R is that of rank R. Every rank is to be
 * started: JOB_START. */
void job_place(struct job *job, struct job_slot *slot, uint32_t slots, const uint32_t *rank_slot);

/* From now on it may be on this host alone, whose slots are there: when it is started next. */
static inline void job_bind(struct job *job, uint32_t rank, uint32_t host)
{
    job->rank[rank].search.bound = host;
    job->rank[rank].search.tried = 0;
}

/* What happened before, in the time of another dispatcher, said before anything else: the rank has
 * had so many incarnations, or has ended well, having used MPI or not. */
void job_rank_ran_before(struct job *job, uint32_t rank, uint32_t incarnation);
void job_rank_ended_before(struct job *job, uint32_t rank, bool used_mpi);

/* --- starting --- */
void job_rank_started(struct job *job, uint32_t rank, uint64_t now_ns);

/* `text` says what could not be done. Of a restart, or when the slot's host is lost, the next free
 * slot is tried. */
void job_start_failed(struct job *job, uint32_t rank, int exit_code, uint64_t now_ns,
                      const char *text);

/* --- what the rank's process says and does --- */
void job_rank_initialized(struct job *job, uint32_t rank, uint64_t now_ns);
void job_rank_finalized(struct job *job, uint32_t rank);
/* `status` is that of waitpid(2). */
void job_rank_ended(struct job *job, uint32_t rank, int status, uint64_t now_ns);

/* The incarnation that has just started goes on from an image, in which it has taken all events up
 * to this one. ... No process can go on from that one, as was found before its relay heard of it:
 * its end then counts as no crash, and another is started at once, from something else. */
void job_rank_from_image(struct job *job, uint32_t rank, uint64_t event);
void job_rank_not_restored(struct job *job, uint32_t rank);

/* Whether that signal, or exit code, in a status of waitpid(2) comes from the process itself. */
bool job_is_own_fault(int status);

/* --- who lives --- */
/* Of a process: SUSPECT: it reports that its connection to the relay broke, which most often kills
 * it; it has JOB_LOST_NS to say more. DEAD: who watched it is gone, and took it along.
 *
 * Of a host: DEAD: its ranks crash. They, and those that wait to be started there, get slots of
 * hosts that are there; the job ends when there are too few. Those whose start is ordered stay
 * until job_start_failed or job_rank_started. BACK: its slots may be used again. */
void job_life(struct job *job, const struct life_event *event, uint64_t now_ns);

/* --- what its relay says --- */
/* It has connected, and is to repeat this, counted from the rank's beginning. Returns true when it
 * goes on at once, having nothing to repeat. */
bool job_rank_up(struct job *job, uint32_t rank, uint32_t incarnation, uint64_t acts,
                 uint64_t to_repeat, uint64_t now_ns);

/* Of so many events from the beginning on, how many are after the image that it goes on from. */
uint64_t job_rank_repeats_of(const struct job *job, uint32_t rank, uint64_t events);

/* Returns false when that was known. */
bool job_rank_live(struct job *job, uint32_t rank, uint32_t incarnation);
void job_rank_lost(struct job *job, uint32_t rank, uint32_t incarnation, uint64_t acts,
                   uint64_t event, const char *text, uint64_t now_ns);

/* It can no longer be restarted; JOB_NO_RANK: nor can any. The job ends when it is down and was to
 * be started again. Returns false when all that was known. */
bool job_rank_unlogged(struct job *job, uint32_t rank, const char *text, uint64_t now_ns);

/* The job's relay is gone: the job ends, unless a better reason comes within JOB_LOST_NS. */
void job_relay_lost(struct job *job, const char *text, uint64_t now_ns);

/* --- what ends the job --- */
/* The job is to end with this exit code and reason; the first call decides. */
void job_fail(struct job *job, int exit_code, uint64_t now_ns, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A person or a scheduler wants the job to end: the first time the ranks get `signal_number`, and
 * kill_after_ns for their last checkpoint; the second time they are killed. timeout(1) sends its
 * signal to us and to our process group: within JOB_SAME_NS that is once. */
void job_interrupt(struct job *job, int signal_number, uint64_t now_ns);

/* Its time is over: likewise, with SIGTERM. */
void job_out_of_time(struct job *job, uint64_t now_ns);

/* A rank called MPI_Abort. Also of a job that ends already: nothing good comes then
 * of waiting for the others any longer than after a failure. */
void job_aborted(struct job *job, uint32_t rank, int exit_code, uint64_t now_ns);

/* The ranks get this signal from us: who dies of it does not crash. */
void job_signal_passed_on(struct job *job, int signal_number);

/* --- questions --- */
bool job_rank_runs(const struct job *job, uint32_t rank);

/* Its process that runs, or ran last. */
static inline struct cw_process job_process(const struct job *job, uint32_t rank)
{
    return (struct cw_process){.rank = rank, .incarnation = job->rank[rank].incarnation};
}

/* Whether a crash of it now would be followed by a restart. */
bool job_rank_restartable(const struct job *job, uint32_t rank);

/* Whether it does, or may do, what an earlier incarnation did. */
bool job_rank_repeats(const struct job *job, uint32_t rank);

/* "starting", "live", "replaying", "down", "hung" or "ended". `period_ns` is that of the signs of
 * life. */
const char *job_rank_condition(const struct job *job, uint32_t rank, uint64_t period_ns,
                               uint64_t now_ns);

/* When job_next may have something new by time alone; UINT64_MAX: never. */
uint64_t job_deadline_ns(const struct job *job);

enum job_action job_next(struct job *job, uint64_t now_ns, struct job_order *order);

#endif
