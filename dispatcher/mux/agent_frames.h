/* The frames of a session with an agent, beside those of streams (mux.h). docs/protocol.md,
 * "Agents". Pure. */
#ifndef DISPATCHER_AGENT_FRAMES_H
#define DISPATCHER_AGENT_FRAMES_H

#include "common/setup.h"
#include "dispatcher/launch/launcher.h"
#include "dispatcher/mux/mux.h"
#include "dispatcher/stage/stage_program.h"
#include "relay/options.h"

#define AGENT_BLOB_MAX (8u << 20)   /* bytes of a program with its arguments and environment */
#define AGENT_BLOB_PART (64u << 10) /* of it in one frame */
#define AGENT_BLOBS_MAX 65u         /* the environment, and a program for each segment */
#define AGENT_STARTS_MAX (1u << 29) /* processes that a host starts in one job */
#define AGENT_OPTION_MAX 512u       /* bytes of an option of a relay */
#define AGENT_STAGES_MAX 64u        /* programs that are sent: one for each segment */

/* A start is one process of a rank, known by a number that the dispatcher gives it. */
enum agent_frame {
    /* to the agent */
    AGENT_BLOB = MUX_FIRST_OTHER, /* a part of struct agent_program */
    AGENT_START,                  /* struct agent_start */
    AGENT_SIGNAL,                 /* event: rank, signal */
    AGENT_LET_GO,                 /* event: rank, 1: its process ends */
    AGENT_CLOSE,                  /* all processes of ranks end */
    AGENT_END,                    /* the agent ends, which closes the connection */
    AGENT_RELAY,                  /* struct agent_relay: the host's relay is to be started */
    AGENT_RELAY_KILL,             /* a drill */
    /* from it */
    AGENT_STARTED,       /* event: start, pid */
    AGENT_FAILED,        /* event: start, code, text */
    AGENT_ALIVE,         /* event: rank, incarnation */
    AGENT_SETUP_TAKEN,   /* event: start */
    AGENT_ENDED,         /* event: start, status as of waitpid(2) */
    AGENT_LOST,          /* event: start */
    AGENT_FORMER_ENDED,  /* event: rank, incarnation */
    AGENT_RELAY_STARTED, /* event: 0, pid */
    AGENT_RELAY_LISTENS, /* event: 0, 0, its addresses */
    AGENT_RELAY_ENDED,   /* event: 1: it is started again; status */
    AGENT_RELAY_FAILED,  /* event: 0, 0, why */
    /* of programs that are sent */
    AGENT_STAGE,        /* to the agent: struct agent_stage: it is to be there */
    AGENT_STAGE_WANTED, /* event: its number: the bytes are to come, on its stream */
    AGENT_STAGED,       /* event: its number: it is there, and is kept for this job */
    AGENT_STAGE_FAILED, /* event: its number, code, why */
    /* of the job's own checkpoint server, where it stands on this host */
    AGENT_SERVER,         /* to the agent: struct agent_server: it is to be started */
    AGENT_SERVER_STARTED, /* event: 1: its images are in memory; pid; its directory */
    AGENT_SERVER_LISTENS, /* event: 0, 0, its addresses */
    AGENT_SERVER_ENDED,   /* event: 0, status, why it did not listen; it is started again */
    AGENT_SERVER_FAILED,  /* event: 0, 0, why */
};

struct agent_event {
    uint32_t of;
    uint32_t value;
    char text[CW_ERR_TEXT_MAX]; /* printable */
};
#define AGENT_EVENT_MAX (8u + CW_ERR_TEXT_MAX)

enum agent_start_flag {
    AGENT_START_READS = 1,      /* it has standard input: a stream */
    AGENT_START_FROM_IMAGE = 2, /* the image: a stream */
};

struct agent_start {
    uint32_t start;
    uint32_t program; /* number of its blob */
    uint32_t flags;
    struct cw_setup setup; /* its `early` points into the frame; here with its local rank */
};
#define AGENT_START_MAX (20u + CW_SETUP_MAX)

/* The streams of a start. */
enum agent_stream {
    AGENT_STREAM_PMI,
    AGENT_STREAM_CONTROL,
    AGENT_STREAM_OUT,
    AGENT_STREAM_ERR,
    AGENT_STREAM_IN,
    AGENT_STREAM_IMAGE,
    AGENT_STREAMS
};

static inline uint32_t agent_stream_id(uint32_t start, enum agent_stream which)
{
    return start * 8 + which;
}

struct agent_stage {
    uint32_t number;
    struct stage_program program;
};
#define AGENT_STAGE_MAX (48u + STAGE_HASH_BYTES + STAGE_DIR_MAX + STAGE_NAME_MAX)

/* No start has a stream of this kind. */
static inline uint32_t agent_stage_stream(uint32_t number)
{
    return number * 8 + AGENT_STREAMS;
}

struct agent_relay {
    uint8_t key[CW_KEY_SIZE];
    uint64_t spin_ns;
    bool returns;            /* it is started again on its log */
    bool has[RELAY_OPTIONS]; /* else its default */
    char option[RELAY_OPTIONS][AGENT_OPTION_MAX + 1];
    char log_dir[AGENT_OPTION_MAX + 1]; /* "": the logs have no disk */
    char listen[AGENT_OPTION_MAX + 1];  /* tcp:HOST:PORT beside its socket; "": no */
};
#define AGENT_RELAY_MAX (48u + (RELAY_OPTIONS + 2) * (2u + AGENT_OPTION_MAX))

struct agent_server {
    uint8_t key[CW_KEY_SIZE];
    uint64_t bytes_max;                /* 0: a share of what is free there */
    char dir[AGENT_OPTION_MAX + 1];    /* "": one is made, and removed */
    char listen[AGENT_OPTION_MAX + 1]; /* tcp:HOST:PORT beside its socket; "": no */
};
#define AGENT_SERVER_MAX (40u + 2u * (2u + AGENT_OPTION_MAX))

/* Encode into ..._MAX bytes; return how many were used. */
size_t agent_event_put(uint8_t *to, const struct agent_event *v);
size_t agent_start_put(uint8_t *to, const struct agent_start *v);
size_t agent_relay_put(uint8_t *to, const struct agent_relay *v);
size_t agent_stage_put(uint8_t *to, const struct agent_stage *v);
size_t agent_server_put(uint8_t *to, const struct agent_server *v);

/* Decode. Return false if a size or a value is wrong. */
bool agent_event_get(const uint8_t *from, size_t size, struct agent_event *v);
bool agent_start_get(const uint8_t *from, size_t size, struct agent_start *v);
bool agent_relay_get(const uint8_t *from, size_t size, struct agent_relay *v);
bool agent_stage_get(const uint8_t *from, size_t size, struct agent_stage *v);
bool agent_server_get(const uint8_t *from, size_t size, struct agent_server *v);

/* Puts what was changed of a report of an image or a file back into its record. */
void agent_report_change(uint8_t *record, size_t size, const struct cw_report *report);

/* A program of ranks; or, as number 0, the environment of the dispatcher, as its `env`. */
struct agent_program {
    struct launch_program of; /* its pointers lead to the two below */
    char *bytes;              /* owned */
    const char **lists;       /* owned */
};

/* A blob of the program, with `wdir` in place of its own. The caller frees it. NULL: no memory, or
 * it is larger than AGENT_BLOB_MAX. */
uint8_t *agent_program_put(const struct launch_program *program, const char *wdir, size_t *size);

/* Errors: CW_EPROTO, CW_ENOMEM; there is nothing to be freed. */
int agent_program_get(const uint8_t *bytes, size_t size, struct agent_program *program,
                      struct cw_err *err);
void agent_program_free(struct agent_program *program);

/* The head of a part of a blob. */
struct agent_part {
    uint32_t number;
    uint32_t size; /* of the whole */
    const uint8_t *bytes;
    size_t part;
};
#define AGENT_PART_HEADER 8u

size_t agent_part_put(uint8_t *to, const struct agent_part *v);
bool agent_part_get(const uint8_t *from, size_t size, struct agent_part *v);

#endif
