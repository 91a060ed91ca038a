/* The journal of a job's dispatcher: what another one must know to go on with the job. Pure: the
 * bytes of records, and what they mean. docs/job-state.md. */
#ifndef DISPATCHER_JOB_STATE_H
#define DISPATCHER_JOB_STATE_H

#include "common/cred.h"
#include "common/frame.h"
#include "common/setup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_STATE_VERSION 3u
#define JOB_STATE_HEADER 16u             /* bytes before the first record */
#define JOB_STATE_RECORD 16u             /* bytes of a record before its body */
#define JOB_STATE_BODY_MAX (256u << 10)  /* of one record */
#define JOB_STATE_BYTES_MAX (256u << 20) /* of the file: what is more cannot be kept */
#define JOB_STATE_STREAMS 2              /* stdout and stderr */
#define JOB_STATE_NO_INPUT UINT64_MAX    /* the image has no place in standard input */

enum job_state_type {
    JOB_STATE_JOB = 1,   /* the first: id, key, ranks */
    JOB_STATE_ARGUMENT,  /* of `causeway run`, in their order */
    JOB_STATE_VARIABLE,  /* NAME=VALUE of its environment */
    JOB_STATE_DIRECTORY, /* where it was started */
    JOB_STATE_FILE,      /* a file that the job needs as it was: programs, the device */
    JOB_STATE_STDIN,     /* the standard input of the dispatcher, where that is a file */
    JOB_STATE_BEGUN,     /* the job can be resumed from here on */
    JOB_STATE_START,     /* an incarnation is about to be started */
    JOB_STATE_STARTED,   /* ... and has been: what it says by PMI follows */
    JOB_STATE_REPORT,    /* a report of the R-device: EARLY or FILE */
    JOB_STATE_PMI,       /* what a rank asked */
    JOB_STATE_MARK,      /* it took an image between two requests */
    JOB_STATE_INPUT,     /* bytes of standard input; none: its end */
    JOB_STATE_PLACE,     /* of an image that is stored */
    JOB_STATE_TRIMMED,   /* the rank's log begins at this image */
    JOB_STATE_ENDED,     /* the rank has ended well, and its output is out */
    JOB_STATE_NODE,      /* the directory of a host's node, which may be taken over */
    JOB_STATE_TYPES
};

struct job_state_file {
    uint64_t size;
    uint64_t mtime_ns;
    const char *path; /* terminated */
};

struct job_state_place {
    uint64_t printed[JOB_STATE_STREAMS]; /* as of job_state_printed */
    uint64_t input;                      /* bytes that rank 0 had read, or JOB_STATE_NO_INPUT */
};

/* Which fields count, the type says; the rest is zero. `bytes` points into what was read. */
struct job_state_record {
    uint32_t type;
    uint32_t rank; /* START, STARTED, REPORT, PMI, MARK, PLACE, TRIMMED, ENDED; of JOB: how many */
    uint32_t number; /* NODE: the host; START: incarnation; STARTED, MARK, PLACE, TRIMMED: image;
                        ENDED: 1: it used MPI; PMI: of enum pmi_what */
    uint32_t image;  /* START: that it goes on from */
    uint8_t id[CW_ID_SIZE];   /* JOB */
    uint8_t key[CW_KEY_SIZE]; /* JOB: of its own relay */
    struct job_state_file file;
    uint64_t stdin_file[3]; /* STDIN: device, inode, where it stood */
    struct job_state_place place;
    const uint8_t *bytes; /* ARGUMENT, VARIABLE, DIRECTORY, NODE, STDIN (its path): terminated;
                             REPORT, INPUT; PMI: key and value, each terminated */
    uint32_t size;
};

/* Lines that were printed, and bytes of the next one, in one word. */
uint64_t job_state_printed(uint64_t lines, uint64_t bytes);
uint64_t job_state_printed_lines(uint64_t printed);
uint64_t job_state_printed_bytes(uint64_t printed);

void job_state_put_header(uint8_t to[JOB_STATE_HEADER]);

/* Returns the bytes used of JOB_STATE_RECORD + JOB_STATE_BODY_MAX, or 0: it does not fit. */
size_t job_state_put(uint8_t *to, const struct job_state_record *record);

/* A state that was read. */
struct job_state_bytes {
    const uint8_t *bytes;
    size_t size;
    size_t synced; /* so many bytes of it are known to have been on disk */
};

enum job_state_found {
    JOB_STATE_GOT,
    JOB_STATE_END,     /* no more records; what follows is the torn tail of the last writes */
    JOB_STATE_DAMAGED, /* what had been on disk is not what was written */
};

/* Version of a state; 0: it is none. */
uint32_t job_state_version(const uint8_t *bytes, size_t size);

/* Reads the record at `*offset`, the first at JOB_STATE_HEADER, and moves on. `ranks`: of the job;
 * 0: not known yet. */
enum job_state_found job_state_get(const struct job_state_bytes *in, size_t *offset, uint32_t ranks,
                                   struct job_state_record *record);

#endif
