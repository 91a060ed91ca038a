#include "ckptsrv/download.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum stage { OPENING, READING, CLOSING };

struct piece {
    uint8_t bytes[DOWNLOAD_PIECE_BYTES];
    size_t size;
};

struct download {
    struct work work;
    struct workers *workers;
    struct vault *vault;
    uint8_t job[CW_ID_SIZE];
    struct cw_image_ref ref;
    const struct download_events *events;
    void *ctx;
    enum stage stage;
    bool busy; /* a thread has it */
    bool ending;
    bool ready;   /* `next` has been read, and is not being sent */
    bool sending; /* `current` is being sent */
    struct fetch *fetch;
    uint64_t bytes;
    struct cw_err err;
    struct piece *current; /* the loop's */
    struct piece *next;    /* the thread's, while it is busy */
};

_Static_assert(DOWNLOAD_PIECE_BYTES >= FETCH_BUFFER_MIN, "a record fits into a piece");

/* In a thread. */
static void run(struct work *work)
{
    struct download *d = (struct download *)work;

    if (d->stage == OPENING)
        d->fetch = fetch_new(d->vault, d->job, &d->ref, &d->bytes, &d->err);
    else if (d->stage == READING)
        fetch_read(d->fetch, d->next->bytes, sizeof(d->next->bytes), &d->next->size, &d->err);
    else
        fetch_free(d->fetch);
}

static void begin(struct download *d, enum stage stage)
{
    assert(!d->busy);
    d->busy = true;
    d->stage = stage;
    workers_add(d->workers, &d->work);
}

static void free_download(struct download *d)
{
    free(d->current);
    free(d->next);
    free(d);
}

static void send_next(struct download *d)
{
    struct piece *piece = d->next;

    if (!d->ready || d->sending)
        return;
    if (piece->size == 0) {
        d->ready = false;
        d->events->finished(d->ctx);
        return;
    }
    d->next = d->current;
    d->current = piece;
    d->ready = false;
    d->sending = true;
    begin(d, READING);
    d->events->piece(d->ctx, piece->bytes, piece->size);
}

static void done(struct work *work)
{
    struct download *d = (struct download *)work;

    d->busy = false;
    if (d->stage == CLOSING) {
        d->events->ended(d->ctx);
        free_download(d);
    } else if (d->ending) {
        begin(d, CLOSING);
    } else if (d->err.code) {
        d->events->failed(d->ctx, &d->err);
    } else if (d->stage == OPENING) {
        begin(d, READING);
        d->events->opened(d->ctx, d->bytes);
    } else {
        d->ready = true;
        send_next(d);
    }
}

struct download *download_new(struct workers *workers, struct vault *vault,
                              const uint8_t job[CW_ID_SIZE], const struct cw_image_ref *ref,
                              const struct download_events *events, void *ctx)
{
    struct download *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->current = malloc(sizeof(*d->current));
    d->next = malloc(sizeof(*d->next));
    if (!d->current || !d->next) {
        free_download(d);
        return NULL;
    }
    d->work = (struct work){.run = run, .done = done};
    d->workers = workers;
    d->vault = vault;
    memcpy(d->job, job, CW_ID_SIZE);
    d->ref = *ref;
    d->events = events;
    d->ctx = ctx;
    begin(d, OPENING);
    return d;
}

void download_sent(struct download *d)
{
    d->sending = false;
    if (!d->ending && !d->busy)
        send_next(d);
}

void download_end(struct download *d)
{
    if (d->ending)
        return;
    d->ending = true;
    if (!d->busy)
        begin(d, CLOSING);
}
