#include "dispatcher/run/image_words.h"

#include <stdio.h>
#include <stdlib.h>

#define NAMES_SIZE 256 /* of the numbers of ranks in one line */

enum {
    RANK_QUIET,    /* nothing has failed */
    RANK_UNTOLD,   /* there is no image of it, which was not told */
    RANK_TOLD,     /* likewise, and it was */
    RANK_HAS_IMAGE /* at any time */
};

int image_words_open(struct image_words *w, const struct loop *loop, struct job_log *log,
                     const struct images *core, uint32_t ranks)
{
    *w = (struct image_words){.loop = loop, .log = log, .core = core};
    w->told = calloc(ranks, sizeof(*w->told));
    return w->told ? CW_OK : CW_ENOMEM;
}

void image_words_close(struct image_words *w)
{
    free(w->told);
}

void image_words_has_image(struct image_words *w, uint32_t rank)
{
    w->told[rank] = RANK_HAS_IMAGE;
}

/* Of a cause, without its figures: numbers of bytes are others each time. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        if (*text < '0' || *text > '9')
            hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* Whether this cause was not told yet: each is told once. */
static bool is_news(struct image_words *w, const char *why)
{
    uint32_t hash = hash_of(why);

    for (uint32_t i = 0; i < w->cause_count; i++)
        if (w->causes[i] == hash)
            return false;
    if (w->cause_count == IMAGE_CAUSES_MAX)
        return false;
    w->causes[w->cause_count++] = hash;
    return true;
}

void image_words_useless(struct image_words *w, uint32_t rank, uint32_t number, const char *why)
{
    log_verbose(w->log, "rank %u: image %u is of no use: %s", rank, number, why);
    job_events_write(&w->log->events, loop_now_ns(w->loop), "image_failed", rank,
                     job_number("image", number), job_text("cause", why));
}

void image_words_failed(struct image_words *w, uint32_t rank, uint32_t number, const char *why)
{
    image_words_useless(w, rank, number, why);
    if (w->told[rank] == RANK_QUIET)
        w->told[rank] = RANK_UNTOLD;
    if (w->ending || !is_news(w, why))
        return;
    if (w->told[rank] == RANK_UNTOLD)
        w->told[rank] = RANK_TOLD;
    log_notice(w->log, "rank %u: no image of it: %s; the job goes on, and keeps its log", rank,
               why);
}

/* Of this rank, and all behind it with the same cause. */
static void tell_untold(struct image_words *w, uint32_t first)
{
    const struct images_rank *ranks = w->core->rank;
    uint32_t hash = hash_of(ranks[first].why);
    char names[NAMES_SIZE] = "";
    size_t used = 0;

    for (uint32_t rank = first; rank < w->core->config.ranks; rank++) {
        if (w->told[rank] != RANK_UNTOLD || hash_of(ranks[rank].why) != hash)
            continue;
        w->told[rank] = RANK_TOLD;
        if (used < sizeof(names))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%u", used ? ", " : "",
                                     rank);
    }
    log_notice(w->log, "note: no image could be taken of rank %s%s either: %s", names,
               used < sizeof(names) ? "" : " ...", ranks[first].why);
}

void image_words_end(struct image_words *w)
{
    w->ending = true;
    for (uint32_t rank = 0; rank < w->core->config.ranks; rank++)
        if (w->told[rank] == RANK_UNTOLD)
            tell_untold(w, rank);
}

/* The user asked for images more often than they can be had. Told once. */
static void tell_slowed(struct image_words *w, uint32_t rank)
{
    const struct image_history *h = &w->core->rank[rank].history;
    uint64_t asked_ns = w->core->config.policy.every_ns;
    uint64_t every_ns = image_policy_every_ns(&w->core->config.policy, h);

    if (!asked_ns || w->slowed_told || every_ns / IMAGE_SLOWED < asked_ns)
        return;
    w->slowed_told = true;
    log_warning(w->log, loop_now_ns(w->loop), rank, "images come less often than asked for", "");
    log_notice(w->log,
               "note: an image of rank %u took %.2g s: there will be one of each rank in %.2g s "
               "rather than in %.2g s (--ckpt-every), for they may take half the time",
               rank, (double)h->cost_ns / 1e9, (double)every_ns / 1e9, (double)asked_ns / 1e9);
}

void image_words_stored(struct image_words *w, const struct cw_stored *stored, const char *server)
{
    const struct images_rank *r = &w->core->rank[stored->rank];
    uint64_t took_ns =
        r->taken_ns && r->number == stored->number ? loop_now_ns(w->loop) - r->taken_ns : 0;

    log_verbose(w->log,
                "rank %u: image %u is stored at %s (%.1f MiB, %.1f MiB of them new, %.3f s)",
                stored->rank, stored->number, server, (double)stored->bytes / (1 << 20),
                (double)stored->stored / (1 << 20), (double)took_ns / 1e9);
    job_events_write(&w->log->events, loop_now_ns(w->loop), "image_stored", stored->rank,
                     job_number("incarnation", stored->incarnation),
                     job_number("image", stored->number), job_number("bytes", stored->bytes),
                     job_number("stored_bytes", stored->stored), job_seconds("seconds", took_ns),
                     job_text("server", server));
    tell_slowed(w, stored->rank);
}
