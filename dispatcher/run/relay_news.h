/* What the job's relays tell: what it means for ranks and for the job. */
#ifndef DISPATCHER_RELAY_NEWS_H
#define DISPATCHER_RELAY_NEWS_H

#include "dispatcher/job/job.h"
#include "dispatcher/run/parts.h"
#include "dispatcher/run/starts.h"

/* All that it points to is borrowed. */
struct relay_news {
    struct parts *parts;
    struct job *job;
    struct job_rank *ranks; /* of the job */
    struct starts *starts;
    struct unrestartable *unrestartable;
    bool ready; /* the job is open at all of them */
    bool over;  /* every rank has ended for good: what relays hold is of no use any more */
};

/* With a struct relay_news as their `ctx`. */
extern const struct relays_events relay_news_events;

/* The process of one of our own has ended, with `status` as of waitpid(2), and is started again; or
 * there will be none any more (as of struct unit_ops). */
void relay_news_ended(struct relay_news *news, uint32_t relay, int status);
void relay_news_failed(struct relay_news *news, uint32_t relay, int status,
                       const struct cw_err *err);

#endif
