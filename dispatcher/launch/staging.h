/* Programs that are sent to the hosts of a job (--stage), to all hosts side by side; to none that
 * has it already. In the job's loop, which never waits for one of them. */
#ifndef DISPATCHER_STAGING_H
#define DISPATCHER_STAGING_H

#include "dispatcher/launch/nodes.h"

struct staging;

/* Of one host, by its index: its program of this number. */
struct staging_events {
    void (*staged)(void *ctx, uint32_t host, uint32_t number, bool sent); /* else it was there */
    /* It cannot be there: done(), or returned(), does not come. */
    void (*failed)(void *ctx, const struct cw_err *err);
    void (*done)(void *ctx); /* all hosts have all of them, but hosts that are lost; once */
    void (*returned)(void *ctx, uint32_t host); /* of staging_host_back(): it has all of them */
};

struct staging_source {
    struct stage_program program;
    int fd; /* of its file; owned by the caller */
};

/* NULL with *err set: CW_ENOMEM. All are borrowed. done() comes at once, from inside
 * staging_begin(), where there is nothing to be done. */
struct staging *staging_new(struct nodes *nodes, const struct staging_source *sources,
                            uint32_t count, const struct staging_events *events, void *ctx,
                            struct cw_err *err);
/* When there are no nodes any more. NULL is allowed. */
void staging_free(struct staging *staging);

/* The nodes are ready. */
void staging_begin(struct staging *staging);

/* After done(): the host was lost, and has another node. */
void staging_host_back(struct staging *staging, uint32_t host);

#endif
