/* What ranks that are restarted go on from: the newest image of use is fetched from its checkpoint
 * server. Where only the connection broke, or the server is away, the same image is fetched again:
 * a bounded number of times. One that is damaged or refused is given up at once, and an older one
 * is taken, or the beginning. */
#ifndef DISPATCHER_IMAGE_SOURCES_H
#define DISPATCHER_IMAGE_SOURCES_H

#include "dispatcher/images/servers.h"
#include "dispatcher/run/image_failures.h"
#include "dispatcher/run/image_places.h"

#define IMAGE_SOURCES_BREAKS_MAX 6u /* streams of one restart that break off */
#define IMAGE_SOURCES_AWAY_MAX                                                                     \
    24u /* fetches of one restart without an answer, each within SERVERS_FETCH_MS: some 10 min */
#define IMAGE_SOURCES_AWAY_BEGIN_MAX                                                               \
    2u /* ... where the rank can start from its beginning: 40 s                                    \
        */
#define IMAGE_SOURCES_PAUSE_MIN_NS 100000000ull  /* before the next one; doubled each time ... */
#define IMAGE_SOURCES_PAUSE_MAX_NS 5000000000ull /* ... up to this */

struct image_sources;

struct image_sources_events {
    /* As image_sources_ask said: the rank can be started from this image (0: from its beginning),
     * which is read at `fd`, the callee's. */
    void (*source)(void *ctx, uint32_t rank, uint32_t number, int fd);
    /* There is nothing that it could be started from. */
    void (*no_source)(void *ctx, uint32_t rank, const char *why);
};

/* Everything borrowed. */
struct image_sources_config {
    struct loop *loop;
    uint32_t ranks;
    struct images *core;
    struct servers *servers;
    const struct image_places *places;
    struct image_failures *failures;
    struct telling *telling;
    const struct image_sources_events *events;
    void *ctx;
};

/* NULL with *err set: CW_ENOMEM. */
struct image_sources *image_sources_new(const struct image_sources_config *config,
                                        struct cw_err *err);
void image_sources_free(struct image_sources *sources);

/* The rank is to be restarted: returns true when that is from its beginning, or source() or
 * no_source() follows, maybe from inside this call. */
bool image_sources_ask(struct image_sources *sources, uint32_t rank);
/* As `servers` tell: of an image that is fetched; the session with this one is open again; there
 * will be none any more. */
void image_sources_fetched(struct image_sources *sources, uint32_t rank, uint32_t number, int fd,
                           const struct cw_err *err);
void image_sources_server_back(struct image_sources *sources, uint32_t server);
void image_sources_no_server(struct image_sources *sources, const char *why);

/* A process of the rank has started, from this image. */
void image_sources_started(struct image_sources *sources, uint32_t rank, uint32_t number);
/* What the present process was started from; 0: its beginning. */
uint32_t image_sources_from(const struct image_sources *sources, uint32_t rank);
/* It cannot go on from that one: that is of no use, or (`broke_off`) did not come whole. */
void image_sources_not_restored(struct image_sources *sources, uint32_t rank, const char *why,
                                bool broke_off);
/* It goes on, or has crashed: what went wrong before is over. */
void image_sources_reset(struct image_sources *sources, uint32_t rank);

/* The job ends: no more are fetched. */
void image_sources_end(struct image_sources *sources);

#endif
