/* The checkpoint servers of a running job: those that run already, or the job's own, which its
 * nodes start; what becomes of each, and to which of them the images of a rank go. Of several own
 * ones a rank's is never on the host of the rank, as long as there is another. */
#ifndef DISPATCHER_IMAGE_SERVERS_H
#define DISPATCHER_IMAGE_SERVERS_H

#include "dispatcher/job/images.h"
#include "dispatcher/job/job.h"
#include "dispatcher/run/job_log.h"
#include "dispatcher/servers/servers.h"

#include <limits.h>

struct parts;

struct image_server {
    bool gone;                 /* for good */
    bool ended;                /* our own: that was told, ... */
    bool back;                 /* ... and this, since it stored an image */
    char why[CW_ERR_TEXT_MAX]; /* no image comes there, and none is about to end; "": one may */
    char dir[PATH_MAX];        /* of our own, once it was started */
};

struct image_servers {
    struct parts *parts; /* these four are borrowed */
    struct job_log *log;
    const struct job *job;
    struct images *core;
    struct servers *servers; /* owned */
    uint32_t count;
    bool ending;
    bool in_memory_told;
    void (*changed)(void *ctx); /* there may be something to be done */
    void *ctx;
    struct image_server server[IMAGES_SERVERS_MAX];
    char names[CW_ERR_TEXT_MAX]; /* the last ones that were asked for */
};

/* All that is there but `servers` is set by the caller; `start` as of struct servers_config, with
 * `ctx`, to which `events` are told. Errors: as servers_new; CW_EINVAL: there is no place for
 * images. */
int image_servers_open(struct image_servers *s, const struct servers_events *events,
                       void (*start)(void *ctx, uint32_t server, const char *listen,
                                     const uint8_t key[CW_KEY_SIZE]),
                       void *start_ctx, struct cw_err *err);
void image_servers_close(struct image_servers *s);

/* How many there are in this job. */
uint32_t image_servers_count(const struct parts *parts);

/* The name of its host, or its address. */
const char *image_servers_name(const struct image_servers *s, uint32_t server);

/* ... of these, as bits, with commas between; gone with the next call. */
const char *image_servers_names(struct image_servers *s, uint32_t servers);

/* One of these, as bits: that a process on this host reaches best, when the ones before were tried
 * so often. */
uint32_t image_servers_nearest(const struct image_servers *s, uint32_t servers, uint32_t host,
                               uint32_t tries);

/* A process of the rank is started on this host: where its images go, and what it knows of servers.
 */
void image_servers_place(struct image_servers *s, uint32_t rank, uint32_t host);
/* Copies of logs may have gone to other hosts: images follow them. */
void image_servers_look(struct image_servers *s);
void image_servers_set_up(const struct image_servers *s, uint32_t host, struct cw_setup *setup);
/* By which of the entries there, as bits, the rank knows these servers. */
uint32_t image_servers_places_of(const struct image_servers *s, uint32_t servers);

/* Images on demand that cannot come. */
void image_servers_fail_demands(struct image_servers *s);

/* --- what is heard of them; where an image is stored, the core has taken that --- */
void image_servers_up(struct image_servers *s, uint32_t server);
void image_servers_stored(struct image_servers *s, uint32_t server);
void image_servers_lost(struct image_servers *s, uint32_t server, const struct cw_err *err);

/* --- of our own --- */
/* It is started, unless it was. */
void image_servers_want(struct image_servers *s, uint32_t server);
/* It has started, for images in this directory; it listens; it has ended, and is started again;
 * there will be none any more. */
void image_servers_started(struct image_servers *s, uint32_t server, pid_t pid, const char *dir);
void image_servers_listens(struct image_servers *s, uint32_t server, const char *local,
                           const char *far, bool in_memory);
void image_servers_ended(struct image_servers *s, uint32_t server, int status, const char *why);
void image_servers_gone(struct image_servers *s, uint32_t server, const struct cw_err *err);

#endif
