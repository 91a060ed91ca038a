/* What is told of the job's checkpoint servers: that one is away, once, and once that it is back or
 * will not be. */
#ifndef DISPATCHER_SERVER_NEWS_H
#define DISPATCHER_SERVER_NEWS_H

#include "dispatcher/job/images.h"
#include "dispatcher/run/job_log.h"

/* All zero but `log`: nothing was told yet. */
struct server_news {
    struct job_log *log;
    bool away[IMAGES_SERVERS_MAX]; /* servers by hand: there is no session, which was told */
    bool in_memory;                /* that images are there was told */
    bool own_ended;                /* our own: that was told, ... */
    bool own_back;                 /* ... and this, since it stored an image */
};

/* The session with one that runs already is open, or lost. */
void server_news_open(struct server_news *news, uint32_t server, const char *address);
void server_news_lost(struct server_news *news, uint64_t now_ns, uint32_t server,
                      const struct cw_err *err);

/* Our own: its process was started; its images are in memory; it has ended, with `status` as of
 * waitpid(2), and is started again
 * (`why` it did not listen; "": it did, or nobody knows); its session is open; it has stored an
 * image; there will be none. */
void server_news_own_started(struct server_news *news, pid_t pid, const char *address,
                             const char *dir);
void server_news_in_memory(struct server_news *news, const char *dir);
void server_news_own_ended(struct server_news *news, int status, const char *why);
void server_news_own_open(struct server_news *news);
void server_news_own_stored(struct server_news *news);
void server_news_own_failed(struct server_news *news, uint64_t now_ns, const struct cw_err *err);

#endif
