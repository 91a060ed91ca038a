#include "dispatcher/run/image_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct source {
    uint32_t from;     /* the image that its process went on from; 0: its beginning */
    bool fetching;     /* source() is to come */
    bool again;        /* the last fetch is to be repeated */
    uint64_t again_ns; /* ... then; 0: it does not wait */
    uint32_t breaks;   /* since it crashed: streams that broke off, */
    uint32_t away;     /* and fetches without an answer */
};

struct image_sources {
    struct image_sources_config config;
    struct source *rank;        /* owned */
    struct loop_timer timer;    /* to the next fetch that is repeated */
    char none[CW_ERR_TEXT_MAX]; /* why there is no server any more; "": there are */
    bool ending;
};

static void on_time(void *ctx);

struct image_sources *image_sources_new(const struct image_sources_config *config,
                                        struct cw_err *err)
{
    struct image_sources *s = calloc(1, sizeof(*s));

    if (s)
        s->rank = calloc(config->ranks, sizeof(*s->rank));
    if (!s || !s->rank) {
        free(s);
        cw_err_set(err, CW_ENOMEM, "no memory for images of %u ranks", config->ranks);
        return NULL;
    }
    s->config = *config;
    loop_timer_add(config->loop, &s->timer, on_time, s);
    return s;
}

void image_sources_free(struct image_sources *s)
{
    if (!s)
        return;
    loop_timer_remove(s->config.loop, &s->timer);
    free(s->rank);
    free(s);
}

static uint64_t now_of(const struct image_sources *s)
{
    return loop_now_ns(s->config.loop);
}

/* --- images that are of no use --- */

/* Says so, and what comes instead. */
static void give_up(struct image_sources *s, uint32_t rank, uint32_t number, const char *why)
{
    char next[64] = "nothing else is left";
    char note[CW_ERR_TEXT_MAX];
    uint32_t other;

    s->rank[rank].again = false;
    images_fail(s->config.core, rank, number);
    if (images_choose(s->config.core, rank, &other))
        snprintf(next, sizeof(next),
                 other ? "it starts from image %u" : "it starts from its beginning", other);
    snprintf(note, sizeof(note), "image %u: %.*s", number, CW_ERR_TEXT_MAX - 24, why);
    image_failures_note(s->config.failures, rank, note);
    telling_image_failed(s->config.telling, now_of(s), rank, number, why);
    telling_tell(s->config.telling, "rank %u: image %u cannot be restored: %s; %s", rank, number,
                 why, next);
}

/* Nothing is known against the image: it is fetched again, unless that was tried often enough. */
static void break_off(struct image_sources *s, uint32_t rank, uint32_t number, const char *why,
                      bool away)
{
    struct source *r = &s->rank[rank];
    uint32_t tries = r->breaks + r->away + 1;
    uint32_t away_max = s->config.core->rank[rank].begin > 0 ? IMAGE_SOURCES_AWAY_MAX
                                                             : IMAGE_SOURCES_AWAY_BEGIN_MAX;
    char text[CW_ERR_TEXT_MAX];

    r->breaks += !away;
    r->away += away;
    if (!s->none[0] && r->breaks < IMAGE_SOURCES_BREAKS_MAX && r->away < away_max) {
        r->again = true;
        telling_warn(s->config.telling, now_of(s), rank, "an image is fetched again", why);
        if (tries == 1)
            telling_tell(s->config.telling, "rank %u: image %u did not come: %s; fetching it again",
                         rank, number, why);
        return;
    }
    snprintf(text, sizeof(text), "%.*s (tried %u times)", CW_ERR_TEXT_MAX - 40, why, tries);
    give_up(s, rank, number, tries > 1 ? text : why);
}

/* --- fetching --- */

/* Returns false when the rank starts from its beginning, or from nothing at all (`*none`). */
static bool choose(struct image_sources *s, uint32_t rank, uint32_t *number, bool *none)
{
    while ((*none = !images_choose(s->config.core, rank, number)) == false && *number > 0) {
        if (!image_places_known(s->config.places, rank, *number))
            images_fail(s->config.core, rank, *number);
        else if (s->none[0])
            give_up(s, rank, *number, s->none);
        else
            return true;
    }
    return false;
}

static void tell_none(struct image_sources *s, uint32_t rank)
{
    const char *why = image_failures_why(s->config.failures, rank);

    s->config.events->no_source(s->config.ctx, rank,
                                why[0] ? why : "its checkpoint server has lost its images");
}

static uint64_t pause_ns(const struct source *r)
{
    uint32_t tries = r->breaks + r->away;
    uint64_t pause = IMAGE_SOURCES_PAUSE_MIN_NS;

    for (uint32_t i = 1; i < tries && pause < IMAGE_SOURCES_PAUSE_MAX_NS; i++)
        pause *= 2;
    return pause < IMAGE_SOURCES_PAUSE_MAX_NS ? pause : IMAGE_SOURCES_PAUSE_MAX_NS;
}

bool image_sources_ask(struct image_sources *s, uint32_t rank)
{
    struct source *r = &s->rank[rank];
    uint32_t number;
    bool none;

    r->fetching = false;
    r->again_ns = 0;
    if (!choose(s, rank, &number, &none)) {
        if (none)
            tell_none(s, rank);
        return !none;
    }
    r->fetching = true;
    if (r->again) {
        r->again_ns = now_of(s) + pause_ns(r);
        loop_timer_hasten(&s->timer, r->again_ns);
    } else {
        servers_fetch(s->config.servers, rank, number);
    }
    return false;
}

/* For source(). */
static void ask_again(struct image_sources *s, uint32_t rank)
{
    if (image_sources_ask(s, rank))
        s->config.events->source(s->config.ctx, rank, 0, -1);
}

static void on_time(void *ctx)
{
    struct image_sources *s = ctx;
    uint64_t now_ns = now_of(s);

    for (uint32_t rank = 0; rank < s->config.ranks && !s->ending; rank++) {
        struct source *r = &s->rank[rank];

        if (!r->again_ns)
            continue;
        if (r->again_ns > now_ns) {
            loop_timer_hasten(&s->timer, r->again_ns);
            continue;
        }
        r->again = false;
        ask_again(s, rank);
    }
}

void image_sources_fetched(struct image_sources *s, uint32_t rank, uint32_t number, int fd,
                           const struct cw_err *err)
{
    struct source *r = &s->rank[rank];

    if (!r->fetching || s->ending) {
        if (fd >= 0)
            close(fd);
        return;
    }
    r->fetching = false;
    if (fd >= 0) {
        s->config.events->source(s->config.ctx, rank, number, fd);
        return;
    }
    if (err->code == CW_EAUTH)
        give_up(s, rank, number, err->text);
    else
        break_off(s, rank, number, err->text, err->code != CW_ECLOSED && err->code != CW_EPROTO);
    ask_again(s, rank);
}

void image_sources_server_back(struct image_sources *s, uint32_t server)
{
    for (uint32_t rank = 0; rank < s->config.ranks; rank++)
        if (s->rank[rank].again_ns && servers_of_rank(s->config.servers, rank) == server) {
            s->rank[rank].again_ns = now_of(s);
            loop_timer_hasten(&s->timer, s->rank[rank].again_ns);
        }
}

void image_sources_no_server(struct image_sources *s, const char *why)
{
    snprintf(s->none, sizeof(s->none), "%s", why);
    for (uint32_t server = 0; server < s->config.core->config.servers; server++)
        image_sources_server_back(s, server); /* which finds that there is none */
}

/* --- processes --- */

void image_sources_started(struct image_sources *s, uint32_t rank, uint32_t number)
{
    s->rank[rank].from = number;
}

uint32_t image_sources_from(const struct image_sources *s, uint32_t rank)
{
    return s->rank[rank].from;
}

void image_sources_not_restored(struct image_sources *s, uint32_t rank, const char *why,
                                bool broke_off)
{
    uint32_t number = s->rank[rank].from;

    if (number && broke_off)
        break_off(s, rank, number, why, false);
    else if (number)
        give_up(s, rank, number, why);
}

void image_sources_reset(struct image_sources *s, uint32_t rank)
{
    s->rank[rank].again = false;
    s->rank[rank].breaks = s->rank[rank].away = 0;
}

void image_sources_end(struct image_sources *s)
{
    s->ending = true;
    loop_timer_set(&s->timer, LOOP_NEVER);
}
