/* The command line of `causeway run`. */
#ifndef DISPATCHER_OPTIONS_H
#define DISPATCHER_OPTIONS_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_SEGMENTS_MAX 64
#define OPTIONS_ENV_MAX 256

/* One program of the job: what stands between two ':'. */
struct run_segment {
    uint32_t ranks;
    const char *wdir; /* NULL: where we are */
    const char **env; /* NAME=VALUE, env_count of them; owned by run_options */
    uint32_t env_count;
    char **argv; /* NULL-terminated; borrowed from the command line */
};

struct run_options {
    struct run_segment segments[OPTIONS_SEGMENTS_MAX];
    uint32_t segment_count;
    uint32_t ranks;                   /* of all segments */
    const char *env[OPTIONS_ENV_MAX]; /* --genv and -x, for all */
    uint32_t env_count;
    const char *relay; /* NULL: embedded */
    const char *key_file;
    const char *engine;     /* of the embedded relay; NULL: its default */
    const char *memory_max; /* likewise */
    const char *output_dir;
    uint64_t timeout_ns; /* 0: none */
    uint64_t spin_ns;    /* UINT64_MAX: chosen from ranks and cores */
    bool tag_output;
    bool stats;
    bool verbose;
    bool help;
};

extern const char run_usage[];

/* argv[0] is "run". Writes NULs into argv where ':' stands. Errors: CW_EINVAL, CW_ENOMEM. */
int run_options_parse(struct run_options *options, int argc, char **argv, struct cw_err *err);
void run_options_free(struct run_options *options);

#endif
