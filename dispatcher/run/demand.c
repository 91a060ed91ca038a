#include "dispatcher/run/demand.h"
#include "dispatcher/status/json_value.h"
#include "dispatcher/status/status.h"

#include <stdlib.h>

struct demand {
    struct loop *loop;
    uint32_t ranks;
    struct imaging *imaging;
    struct status_server server;
    uint32_t open; /* ranks whose images are waited for */
    struct loop_watch watch;
    struct loop_timer timer;
};

static const char *const states[] = {[IMAGES_NOT_WANTED] = "waiting",
                                     [IMAGES_WANTED] = "waiting",
                                     [IMAGES_DONE] = "stored",
                                     [IMAGES_FAILED] = "failed"};

static json_t *rank_document(const struct demand *d, uint32_t rank)
{
    const struct images *images = imaging_images(d->imaging);
    const struct images_image *image = images_find(images, rank, 0);
    enum images_demand what = images->rank[rank].demand;
    const char *why = what == IMAGES_FAILED ? images->rank[rank].why : "";

    return json_pack("{s:I, s:s, s:I, s:I, s:o}", "rank", (json_int_t)rank, "state", states[what],
                     "image", (json_int_t)(image ? image->number : 0), "bytes",
                     (json_int_t)(image ? image->bytes : 0), "cause", json_value_text(why));
}

static void answer(struct demand *d)
{
    json_t *ranks = json_array();
    json_t *document;

    for (uint32_t rank = 0; ranks && rank < d->ranks; rank++)
        if (json_array_append_new(ranks, rank_document(d, rank)) < 0) {
            json_decref(ranks);
            ranks = NULL;
        }
    document = ranks ? json_pack("{s:o}", "ranks", ranks) : NULL;
    status_answer(&d->server, document, loop_now_ns(d->loop));
    json_decref(document);
}

/* Counts the ranks whose images are waited for. Returns whether there is progress: an image has
 * come, or failed, or is being copied, for which the core has a bound. */
static bool look(struct demand *d)
{
    const struct images *images = imaging_images(d->imaging);
    uint32_t open = 0;
    bool progress = false;

    for (uint32_t rank = 0; rank < d->ranks; rank++) {
        const struct images_rank *r = &images->rank[rank];

        open += r->demand == IMAGES_WANTED;
        progress |= r->demand == IMAGES_WANTED && r->request == IMAGES_TAKEN;
    }
    progress |= open != d->open;
    d->open = open;
    return progress;
}

static void step(void *ctx)
{
    struct demand *d = ctx;
    uint64_t now_ns = loop_now_ns(d->loop);

    if (status_step(&d->server, now_ns))
        imaging_demand(d->imaging);
    if (look(d))
        status_renew(&d->server, now_ns);
    if (status_waiting(&d->server) && (d->open == 0 || status_due(&d->server, now_ns)))
        answer(d);
    loop_timer_set(&d->timer, status_deadline_ns(&d->server));
    if (status_waiting(&d->server))
        loop_timer_hasten(&d->timer, now_ns + DEMAND_LOOK_NS);
}

struct demand *demand_new(struct loop *loop, const char *dir, uint32_t ranks,
                          struct imaging *imaging, struct cw_err *err)
{
    struct demand *d = calloc(1, sizeof(*d));

    if (!d) {
        cw_err_set(err, CW_ENOMEM, "no memory for images on demand");
        return NULL;
    }
    *d = (struct demand){.loop = loop, .ranks = ranks, .imaging = imaging, .watch.fd = -1};
    if (status_open(&d->server, dir, STATUS_IMAGES_NAME, STATUS_IMAGES_NS, err) < 0) {
        free(d);
        return NULL;
    }
    if (loop_watch(loop, &d->watch, d->server.fd, EPOLLIN, step, d) < 0) {
        cw_err_set(err, CW_ESYS, "watching %s/" STATUS_IMAGES_NAME, dir);
        demand_free(d);
        return NULL;
    }
    loop_timer_add(loop, &d->timer, step, d);
    return d;
}

void demand_free(struct demand *d)
{
    if (!d)
        return;
    loop_unwatch(d->loop, &d->watch);
    loop_timer_remove(d->loop, &d->timer);
    status_close(&d->server);
    free(d);
}
