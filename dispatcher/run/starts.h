/* Starting the processes of ranks, as the job core orders it: what each is given, what it goes on
 * from, and that a start waits while its relay does not listen, or its image is being fetched. */
#ifndef DISPATCHER_STARTS_H
#define DISPATCHER_STARTS_H

#include "dispatcher/job/fault.h"
#include "dispatcher/run/unrestartable.h"

struct start;

struct starts {
    struct parts *parts; /* borrowed, as the next three */
    struct job *job;
    const struct fault_plan *plan;
    const struct unrestartable *unrestartable;
    struct start *rank; /* owned */
    uint32_t waiting;   /* starts that wait */
};

/* Errors: CW_ENOMEM; starts_close is to be called also then. */
int starts_open(struct starts *starts, struct parts *parts, struct job *job,
                const struct fault_plan *plan, const struct unrestartable *unrestartable,
                struct cw_err *err);
void starts_close(struct starts *starts);

/* What the rank read before MPI_Init: of its first process, later ones are given it. False: there
 * is no memory for that. */
bool starts_take_early(struct starts *starts, uint32_t rank, const struct cw_report *report);

/* An order JOB_START. What comes of it the launcher tells, or starts_failed was called. */
void starts_begin(struct starts *starts, const struct job_order *order);
/* The rank is to go on from this image; it is read at `fd`, which is taken over. 0: it begins at
 * its beginning. */
void starts_from(struct starts *starts, uint32_t rank, uint32_t number, int fd);
/* This relay listens again. */
void starts_relay_back(struct starts *starts, uint32_t relay);
/* The job ends: starts that wait are dropped. False: there are none. */
bool starts_drop(struct starts *starts);

/* The process that was ordered last could not be started. */
void starts_failed(struct starts *starts, uint32_t rank, const struct cw_err *err);

/* What it goes on from. */
uint32_t starts_image(const struct starts *starts, uint32_t rank);

#endif
