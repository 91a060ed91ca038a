/* A whole job in one process and one thread, under a seed: the cores of one or more relays, the job
 * core, and ranks that run the R-device's own code in coroutines, over a simulated system.
 * Connections are bounded queues of bytes, or rings in memory. All that differs between machines
 * and runs - who gets the processor, how much a socket takes, when a death becomes known, who dies
 * - is drawn from the seed. */
#ifndef SIM_H
#define SIM_H

#include "dispatcher/job/job.h"
#include "tests/lib/codec.h"
#include "tests/sim/hosts.h"
#include "tests/sim/process.h"
#include "tests/sim/relay.h"
#include "tests/sim/threads.h"
#include "tests/sim/ways.h"

#define SIM_RANKS_MAX 6
#define SIM_RELAYS_MAX 4
#define SIM_STEPS_MAX 2000000u /* more is taken for a hang */
#define SIM_RESTARTS_MAX 1000u
#define SIM_MEMORY (1ull << 30)
#define SIM_ALTER_LAST UINT64_MAX

enum sim_mode {
    SIM_RACY,      /* programs that race, and whose behaviour depends on all that they see */
    SIM_ORDERED,   /* named receives only: the outcome is that of a run without faults */
    SIM_DIVERGING, /* programs that do something else after a restart: to be found out */
};

/* What a seed decides. */
struct sim_plan {
    uint64_t seed;
    uint64_t program_seed;
    enum sim_mode mode;
    uint32_t ranks;
    uint32_t relays;
    uint8_t homes[SIM_RANKS_MAX]; /* the relay of each rank */
    bool rings[SIM_RANKS_MAX];    /* the rank is on the machine of its relay */
    size_t ring_bytes;            /* each way, a power of two */
    size_t kept_max;              /* bytes sent and not acknowledged */
    uint32_t program_steps;       /* of each rank */
    size_t message_max;           /* bytes */
    size_t pipe_size;             /* bytes, at least CW_FRAME_HEADER */
    size_t chunk_max;             /* bytes that one read or write moves */
    bool cuts;                    /* payload goes past the relay's blocks where it may */
    uint32_t yield_one_in;        /* system calls after which others get their turn */
    uint64_t spin_ns;
    uint32_t fault_one_in; /* steps; 0: never */
    uint32_t faults_max;
    uint32_t cut_one_in; /* steps; 0: no connection breaks */
    uint32_t cuts_max;
    uint32_t kill_one_in; /* steps; 0: relays live, and nothing outlives them */
    uint32_t kills_max;
    bool sync;              /* they keep a journal ... */
    bool power;             /* ... and may lose power: no rank is on the same machine */
    uint64_t news_delay_ns; /* the longest until a death is known */
    bool outages;           /* relays cannot be reached for a time, perhaps too long */
    uint32_t ways;          /* to each relay, from the others and the dispatcher, that ... */
    uint32_t way_one_in;    /* ... fail once in so many cuts; 0: never */
    uint32_t resume_ms;     /* sessions may be suspended for so long; 0: never */
    size_t replay_ahead;    /* bytes queued at once for a rank that repeats itself */
    uint32_t image_one_in;  /* steps until a rank is asked for one; 0: never */
    bool tight;             /* the logs may outgrow their memory, and be given up */
    uint32_t images_max;    /* ranks are asked for: else time would not pass */
    size_t segment_bytes;   /* of the logs */
    uint64_t log_memory;    /* of the logs of a relay; what is more goes to disk */
    bool disk;
    uint32_t copies;      /* of each log; then each relay is on a host of its own, with its ranks */
    uint32_t lose_one_in; /* steps; 0: no host is lost */
    uint32_t losses_max;
    bool channel;                 /* ranks have channel memory ... */
    uint8_t hosts[SIM_RANKS_MAX]; /* ... each with the others of its host ... */
    bool unlogged;                /* ... and perhaps no log at all, and no faults of ranks ... */
    uint64_t channel_log;         /* ... with so many bytes of a log ... */
    uint64_t channel_file;        /* ... and in a file behind it, 0: there is none ... */
    bool loses_hosts;      /* ... which is lost with its memory and its relay, at times ... */
    uint64_t channel_disk; /* ... of which its disk has room for so many, ... */
    size_t provide_bytes;  /* ... and gives so many at a time */
    size_t offer_min;      /* of messages from elsewhere, that are offered to ranks ... */
    size_t far_max;        /* ... that have room for so much of the rest */
};

/* A rank over all its incarnations; see record.h. */
struct sim_rank {
    struct sim_process *process; /* that the dispatcher knows of; NULL: none */
    struct record *last_up;      /* the last incarnation that its relay let in */
    struct record known;         /* what is logged: every incarnation repeats it */
    uint64_t *lines;             /* of output that were read; 0: not this one */
    size_t line_count;
    size_t line_size;
    struct sim_image *images;
    uint32_t last_image; /* its number */
    bool lost;           /* its host was: what is not copied may happen otherwise now */
    bool initialized;    /* that is known of a process of it */
    bool waits;          /* to be started: it is not known yet from what */
    uint64_t waits_ns;   /* ... since then */
    uint8_t *early;      /* readings before MPI_Init that the dispatcher keeps */
    uint32_t early_size;
    /* DIVERGING: from which act on the next incarnation changes the first send, or the last one of
     * those that it repeats */
    uint64_t alter_act;
    uint32_t ended_step; /* at which a process of it ended last */
};

/* From one relay, or the dispatcher, to another. */
struct sim_way {
    uint64_t up_ns[SIM_WAYS_MAX]; /* each is down until then */
    bool used;
    uint32_t last; /* the one that was used last */
};

/* The channel memory of a host. */
struct sim_channel {
    int fd;      /* 0: not made yet */
    int file_fd; /* -1: there is none */
};

struct sim {
    struct sim_plan plan;
    uint64_t random;
    uint64_t now_ns;
    uint32_t steps;
    uint32_t faults;
    uint32_t restarts;
    uint32_t connects;
    uint32_t cut;      /* connections */
    uint32_t rerouted; /* ... that were made over another way than before */
    uint32_t killed;   /* relays */
    uint32_t lost;     /* hosts ... */
    uint32_t moved;    /* ... whose relays went on elsewhere */
    uint32_t asked;    /* for images ... */
    uint32_t taken;    /* that were taken ... */
    uint32_t trimmed;  /* ... to which logs were trimmed ... */
    uint32_t restored; /* ... from which processes went on */
    bool ready;        /* the job is open at all relays, and they are linked */
    bool tracing;
    bool failed;
    bool over;     /* the job has ended */
    bool detected; /* a divergence was */
    bool given_up; /* a session that the job needs was suspended for too long */
    bool unlogged; /* a log has outgrown its memory */
    struct sim_channel channel[SIM_RANKS_MAX]; /* of each host */
    uint64_t cut_ns;                           /* when a connection was cut first */
    char why[640];
    uint8_t relay_key[CW_KEY_SIZE];
    uint8_t job_id[CW_ID_SIZE];
    struct sim_relay *relays;                /* all processes that there were ... */
    struct sim_relay *relay[SIM_RELAYS_MAX]; /* ... and those of now */
    struct sim_host host[SIM_HOSTS];
    struct sim_way way[SIM_RELAYS_MAX + 1][SIM_RELAYS_MAX]; /* the dispatcher is the last one */
    struct connection *connections;
    struct sim_process *processes;
    struct sim_thread *threads;
    struct sim_rank rank[SIM_RANKS_MAX];
};
extern struct sim sim;

struct sim_result {
    bool failed;
    bool detected;
    bool given_up;
    uint32_t steps;
    uint32_t faults;
    uint32_t restarts;
    uint32_t cuts;
    uint32_t rerouted;
    uint32_t kills;
    uint32_t losses;
    uint32_t moves;
    uint32_t images;
    uint32_t trims;
    uint32_t restored;
    uint64_t hashes[SIM_RANKS_MAX]; /* of the programs, at their ends */
    char why[640];
};

/* What is to be so under every seed, else under a share of them. */
struct sim_always {
    bool channel; /* the ranks have channel memory */
    bool hosts;   /* each relay has a host of its own, and its log is copied */
};
struct sim_plan sim_plan_of(uint64_t seed, const struct sim_always *always);
void sim_run(const struct sim_plan *plan, bool tracing, struct sim_result *result);

/* How many ranks are on the host of this one, and which; `ranks` may be NULL. */
uint32_t sim_ranks_beside(uint32_t rank, uint16_t *ranks);

/* One of those who can do something does it; or time passes. */
void sim_step(void);

/* Something is wrong: the run ends. The first call decides. */
void sim_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line of the story, when it is wanted. */
#define sim_trace(...) (sim.tracing ? sim_tell(__VA_ARGS__) : (void)0)
void sim_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline uint64_t sim_below(uint64_t bound)
{
    return codec_random_below(&sim.random, bound);
}
static inline bool sim_one_in(uint64_t n)
{
    return n && sim_below(n) == 0;
}
/* Mixes bits: a seed for each purpose. */
uint64_t sim_mix(uint64_t a, uint64_t b);

/* faults.c */
/* One step has passed: perhaps something fails. */
void faults_step(void);

#endif
