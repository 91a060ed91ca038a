/* The frames of a session with a node, beside those of streams (mux.h). docs/protocol.md,
 * "Nodes". Pure. */
#ifndef DISPATCHER_NODE_FRAMES_H
#define DISPATCHER_NODE_FRAMES_H

#include "common/setup.h"
#include "common/transport.h"
#include "dispatcher/wire/mux.h"
#include "dispatcher/wire/stage_program.h"

#include <limits.h>

#define NODE_BLOB_MAX (8u << 20)   /* bytes of a program with its arguments and environment */
#define NODE_BLOB_PART (64u << 10) /* of it in one frame */
#define NODE_BLOBS_MAX 65u         /* the environment, and a program for each segment */
#define NODE_STARTS_MAX (1u << 29) /* processes that a host starts in one job */
#define NODE_UNITS_MAX                                                                             \
    (CW_RELAYS_MAX + CW_IMAGE_SERVERS_MAX) /* units of a job: its relays, and ... */
#define NODE_UNIT_SERVER CW_RELAYS_MAX     /* ... its own checkpoint servers, from this number on */
#define NODE_WORDS_MAX 64u                 /* options of a unit, and their values */
#define NODE_WORDS_BYTES 16384u            /* ... with their ends */
#define NODE_STAGES_MAX 64u                /* programs that are sent: one for each segment */

/* What the process of a rank says, each on a stream of its own. */
enum launch_stream { LAUNCH_PMI, LAUNCH_CONTROL, LAUNCH_STDOUT, LAUNCH_STDERR, LAUNCH_STREAMS };

/* The program of some ranks, and what is the same in each of its processes. All borrowed. */
struct launch_program {
    const char *path;       /* of its file */
    char *const *argv;      /* NULL-terminated */
    const char *wdir;       /* NULL: where we are */
    const char *const *env; /* NAME=VALUE, over our own: env_count for all programs ... */
    uint32_t env_count;
    const char *const *more; /* ... and more_count for this one */
    uint32_t more_count;
    const char *device_path;  /* librdevice.so */
    const char *restore_path; /* the program that goes on from an image; NULL: none does */
    uint32_t umask;           /* as umask(2) */
    int32_t niceness;         /* at least this */
};

/* A start is one process of a rank, known by a number that the dispatcher gives it. */
enum node_frame {
    /* to the node */
    NODE_BLOB = MUX_FIRST_OTHER, /* a part of struct node_program */
    NODE_START,                  /* struct node_start */
    NODE_SIGNAL,                 /* event: start, signal */
    NODE_DETACH,                 /* event: start, 1: it ends; no more is told than its end */
    NODE_CLOSE,                  /* all processes of ranks end */
    NODE_END,                    /* the node ends, which closes the connection */
    NODE_UNIT_START,             /* struct node_unit */
    NODE_UNIT_KILL,              /* event: its number: a drill */
    /* from it */
    NODE_STARTED,      /* event: start, pid */
    NODE_FAILED,       /* event: start, code, text */
    NODE_ALIVE,        /* event: start */
    NODE_ENDED,        /* event: start, status as of waitpid(2) */
    NODE_LOST,         /* event: start */
    NODE_UNIT_STARTED, /* event: its number, pid, of a server its directory */
    NODE_UNIT_LISTENS, /* event: its number, 1: what it keeps is in memory; its addresses */
    NODE_UNIT_ENDED,   /* event: its number, status, why it did not listen; it is started again */
    NODE_UNIT_FAILED,  /* event: its number, status, why; there will be none any more */
    /* of programs that are sent */
    NODE_STAGE,        /* to the node: struct node_stage: it is to be there */
    NODE_STAGE_WANTED, /* event: its number: the bytes are to come, on its stream */
    NODE_STAGED,       /* event: its number: it is there, and is kept for this job */
    NODE_STAGE_FAILED, /* event: its number, code, why */
    /* of a host without a job */
    NODE_ASK,    /* to the node: a JSON object */
    NODE_ANSWER, /* from it: the same */
    /* of the state of a job */
    NODE_FORGET, /* to the node: its copy is of no use any more */
};

struct node_event {
    uint32_t of;
    uint32_t value;
    char text[CW_ERR_TEXT_MAX]; /* printable */
};
#define NODE_EVENT_MAX (8u + CW_ERR_TEXT_MAX)

enum node_start_flag {
    NODE_START_READS = 1,      /* it has standard input: a stream */
    NODE_START_FROM_IMAGE = 2, /* the image: a stream */
};

struct node_start {
    uint32_t start;
    uint32_t program; /* number of its blob */
    uint32_t flags;
    struct cw_setup setup; /* its `early` points into the frame; here with its local rank */
};
#define NODE_START_MAX (20u + CW_SETUP_MAX)

/* The streams of a start. */
enum node_stream {
    NODE_STREAM_IN = LAUNCH_STREAMS, /* after those of enum launch_stream */
    NODE_STREAM_IMAGE,
    NODE_STREAMS
};

static inline uint32_t node_stream_id(uint32_t start, uint32_t which)
{
    return start * 8 + which;
}

struct node_stage {
    uint32_t number;
    struct stage_program program;
};
#define NODE_STAGE_MAX (48u + STAGE_HASH_BYTES + STAGE_DIR_MAX + STAGE_NAME_MAX)

/* No start has a stream of this kind. */
static inline uint32_t node_stage_stream(uint32_t number)
{
    return number * 8 + NODE_STREAMS;
}

enum node_unit_kind { NODE_UNIT_IS_RELAY, NODE_UNIT_IS_SERVER, NODE_UNIT_KINDS };

enum node_unit_flag {
    NODE_UNIT_RETURNS = 1, /* it is started again */
    NODE_UNIT_KEPT = 2,    /* what it keeps outlives the node, of a relay in files of that */
    NODE_UNIT_COPIED = 4,  /* a relay that was elsewhere goes on from the copy of its log */
};

/* A process of the job that is not a rank's, known in the job by its number. */
struct node_unit {
    uint32_t number;
    uint32_t kind;
    uint32_t flags;
    uint32_t count; /* of `words` */
    uint8_t key[CW_KEY_SIZE];
    uint32_t copies; /* a relay keeps copies of the logs of so many, these being the first ones */
    uint32_t from;   /* COPIED: the relay on this host which has kept it */
    uint64_t bytes_max; /* of a server; 0: a share of what is free there */
    char dir[PATH_MAX]; /* of a server's images, or a relay's log; "": it is chosen, or none */
    char listen[CW_ADDRESS_MAX];  /* tcp:HOST:PORT beside its socket; "": no */
    uint32_t used;                /* bytes of these: */
    char words[NODE_WORDS_BYTES]; /* options and their values, each with its end */
};
#define NODE_UNIT_MAX (76u + PATH_MAX + CW_ADDRESS_MAX + NODE_WORDS_BYTES)

/* Adds an option and its value. False: there is no room. */
bool node_unit_option(struct node_unit *unit, const char *option, const char *value);

/* Puts an event into the session. What cannot be told ends that: mux_input says so. */
void node_event_send(struct mux *mux, uint32_t type, uint32_t of, uint32_t value, const char *text);

/* Encode into ..._MAX bytes; return how many were used. */
size_t node_event_put(uint8_t *to, const struct node_event *v);
size_t node_start_put(uint8_t *to, const struct node_start *v);
size_t node_unit_put(uint8_t *to, const struct node_unit *v);
size_t node_stage_put(uint8_t *to, const struct node_stage *v);

/* Decode. Return false if a size or a value is wrong. */
bool node_event_get(const uint8_t *from, size_t size, struct node_event *v);
bool node_start_get(const uint8_t *from, size_t size, struct node_start *v);
bool node_unit_get(const uint8_t *from, size_t size, struct node_unit *v);
bool node_stage_get(const uint8_t *from, size_t size, struct node_stage *v);

/* Puts what was changed of a report of an image or a file back into its record. */
void node_report_change(uint8_t *record, size_t size, const struct cw_report *report);

/* A program of ranks; or, as number 0, the environment of the dispatcher, as its `env`. */
struct node_program {
    struct launch_program of; /* its pointers lead to the two below */
    char *bytes;              /* owned */
    const char **lists;       /* owned */
};

/* A blob of the program, with `wdir` in place of its own. The caller frees it. NULL: no memory, or
 * it is larger than NODE_BLOB_MAX. */
uint8_t *node_program_put(const struct launch_program *program, const char *wdir, size_t *size);

/* Errors: CW_EPROTO, CW_ENOMEM; there is nothing to be freed. */
int node_program_get(const uint8_t *bytes, size_t size, struct node_program *program,
                     struct cw_err *err);
void node_program_free(struct node_program *program);

/* The head of a part of a blob. */
struct node_part {
    uint32_t number;
    uint32_t size; /* of the whole */
    const uint8_t *bytes;
    size_t part;
};
#define NODE_PART_HEADER 8u

size_t node_part_put(uint8_t *to, const struct node_part *v);
bool node_part_get(const uint8_t *from, size_t size, struct node_part *v);

#endif
