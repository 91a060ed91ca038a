/* What is heard of the hosts of a job: what it means for ranks and for the job. */
#ifndef DISPATCHER_HOST_NEWS_H
#define DISPATCHER_HOST_NEWS_H

#include "dispatcher/job/job.h"
#include "dispatcher/run/parts.h"

/* All that it points to is borrowed. */
struct host_news {
    struct parts *parts;
    struct job *job;
    bool ready;  /* all of them have a node */
    bool staged; /* ... and the programs that were to be sent to them */
};

/* With a struct host_news as their `ctx`. */
extern const struct nodes_events host_news_events;
extern const struct staging_events host_news_staging;

#endif
