/* What a dispatcher tells about its running job: one JSON document. Pure. docs/operations.md
 * describes its members. */
#ifndef DISPATCHER_STATUS_DOCUMENT_H
#define DISPATCHER_STATUS_DOCUMENT_H

#include "common/frame.h"
#include "dispatcher/options/options.h"

#include <jansson.h>
#include <time.h>

#define STATUS_COMMAND_MAX 1024 /* bytes of a command line; a longer one is cut */

struct status_rank {
    uint32_t rank;
    uint64_t pid; /* 0: no process */
    const char *host;
    uint32_t slot;
    uint32_t incarnation;
    const char *state;    /* "starting", "live", "replaying", "down", "hung" or "ended" */
    uint64_t events;      /* numbered by its relay */
    uint64_t taken;       /* of them, how many it is known to have taken */
    uint64_t replayed;    /* handed out again to this incarnation ... */
    uint64_t to_replay;   /* ... of so many */
    uint64_t acts;        /* its sends, receives, probes that found, and cancels */
    uint64_t log_bytes;   /* kept for a restart */
    bool unprotected;     /* it can no longer be restarted ... */
    double unprotected_s; /* ... for so long */
    uint32_t image;       /* its newest one that is stored; 0: none */
    double image_age_s;
    uint64_t image_bytes; /* of memory in it */
    uint32_t restarts;
    const char *program;
};

/* Of a relay that has ranks, and copies of its log. All borrowed. */
struct status_copies {
    uint32_t relay;
    const char *host;
    const char *backup[CW_COPIES_MAX]; /* their hosts */
    uint32_t backups;
    const char *state;  /* "covered", "copying", "moving" or "alone" */
    double uncovered_s; /* for so long it is something else than covered */
};

/* All borrowed. */
struct status_job {
    const uint8_t *id;       /* CW_ID_SIZE bytes */
    uint64_t pid;            /* of the dispatcher */
    struct timespec started; /* CLOCK_REALTIME */
    const char *command;
    const char *relay;              /* its address; of several, with spaces between */
    const uint32_t *relay_restarts; /* of each of `relays` */
    uint32_t relays;
    const struct status_copies *copies; /* `copied` of them */
    uint32_t copied;
    const struct status_rank *rank;
    uint32_t ranks;
};

/* Returns a new reference; NULL without memory. */
json_t *status_document(const struct status_job *job);

/* The programs of the job as they stand on the command line: "-n 4 ./prog a : -n 2 ./other". */
void status_command(const struct run_options *options, char command[STATUS_COMMAND_MAX]);

#endif
