/* The programs of a job as they are started: looked up and checked. */
#ifndef DISPATCHER_PROGRAMS_H
#define DISPATCHER_PROGRAMS_H

#include "dispatcher/launch/staging.h"
#include "dispatcher/run/layout.h"
#include "dispatcher/wire/node_frames.h"

#include <limits.h>

struct program_staged {
    char path[STAGE_PATH_MAX];
};

struct programs {
    uint32_t segments;
    struct launch_program *of_segment; /* owned */
    uint32_t *segment_of;              /* of each rank, which is its MPI_APPNUM too; owned */
    char (*paths)[PATH_MAX];           /* of each segment's file; owned */
    char device_path[PATH_MAX];
    char restore_path[PATH_MAX];    /* of the restorer ... */
    struct cw_err restorer;         /* ... and why it is of no use; code CW_OK: it is there */
    struct program_staged *staged;  /* with --stage: where they are on the hosts; owned */
    struct staging_source *sources; /* ... and what is sent, each program once; owned */
    uint32_t source_count;
    char **preload;     /* of each segment a setting, or NULL; owned */
    char *homes;        /* of the ranks, a setting; NULL: they are not told; owned, as ... */
    const char ***more; /* ... the lists that end with these; of a segment NULL: it has neither */
};

/* `options` is borrowed. *exit_code gets what the job ends with on errors: as a shell says it,
 * where it is about a program. Errors: CW_ENOTFOUND, CW_EINVAL, CW_ESYS, CW_ENOMEM; programs_close
 * is to be called also then. */
int programs_open(struct programs *programs, const struct run_options *options, int *exit_code,
                  struct cw_err *err);
void programs_close(struct programs *programs);

/* Once they have places: ranks are told the homes of all. Error: CW_ENOMEM. */
int programs_tell_homes(struct programs *programs, const struct run_options *options,
                        const struct layout *layout, struct cw_err *err);

const struct launch_program *programs_of(const struct programs *programs, uint32_t rank);

#endif
