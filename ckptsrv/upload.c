#include "ckptsrv/upload.h"
#include "ckptsrv/intake.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FRONT_BYTES                                                                                \
    INTAKE_RECORD_MAX /* for the part of a record that the piece before ended in                   \
                       */

enum stage { OPENING, TAKING, COMMITTING, CLOSING };

/* Bytes from `start` to `end` of front and piece. */
struct piece {
    uint8_t bytes[FRONT_BYTES + UPLOAD_PIECE_BYTES];
    size_t start, end;
};

struct upload {
    struct work work;
    struct workers *workers;
    struct vault *vault;
    struct put_request request;
    const struct upload_events *events;
    void *ctx;
    enum stage stage; /* that the thread is in, or was in last */
    bool busy;        /* a thread has it */
    bool opened, failed, ending, unwanted;
    struct put *put; /* NULL: not begun, or it could not begin */
    uint32_t base;
    size_t taken;
    struct cw_stored stored;
    struct cw_err err;
    struct piece *filling; /* the loop's */
    struct piece *taking;  /* the thread's, while it is busy */
};

/* In a thread. */
static void run(struct work *work)
{
    struct upload *u = (struct upload *)work;
    struct cw_image_ref ref = {.rank = u->request.rank, .number = u->request.put.number};
    struct cw_err ignored = {0};

    switch (u->stage) {
    case OPENING:
        u->put = put_new(u->vault, &u->request, &u->base, &u->err);
        break;
    case TAKING:
        put_take(u->put, u->taking->bytes + u->taking->start, u->taking->end - u->taking->start,
                 &u->taken, &u->err);
        break;
    case COMMITTING:
        put_commit(u->put, &u->stored, &u->err);
        break;
    case CLOSING:
        put_free(u->put);
        if (u->unwanted)
            vault_drop(u->vault, u->request.job, &ref, &ignored);
        break;
    }
}

static void begin(struct upload *u, enum stage stage)
{
    assert(!u->busy);
    u->busy = true;
    u->stage = stage;
    workers_add(u->workers, &u->work);
}

static void free_upload(struct upload *u)
{
    free(u->filling);
    free(u->taking);
    free(u);
}

static void clear(struct piece *piece)
{
    piece->start = piece->end = FRONT_BYTES;
}

/* Gives what has come to a thread. */
static void give(struct upload *u)
{
    struct piece *piece = u->filling;

    if (u->busy || !u->opened || u->failed || u->ending || piece->end == FRONT_BYTES)
        return;
    u->filling = u->taking;
    u->taking = piece;
    clear(u->filling);
    begin(u, TAKING);
}

/* What the thread has not taken, a part of a record, goes in front of what has come since. */
static void keep_rest(struct upload *u)
{
    struct piece *old = u->taking;
    size_t left = old->end - old->start - u->taken;

    assert(left <= FRONT_BYTES);
    u->filling->start = FRONT_BYTES - left;
    memcpy(u->filling->bytes + u->filling->start, old->bytes + old->end - left, left);
}

static void fail(struct upload *u)
{
    u->failed = true;
    u->events->failed(u->ctx, &u->err);
}

/* Nothing follows the end. What has not been received by now never is. */
static void on_end(struct upload *u)
{
    size_t left = u->taking->end - u->taking->start - u->taken;

    if (left > 0 || u->filling->end > FRONT_BYTES) {
        cw_err_set(&u->err, CW_EPROTO, "the image is damaged or wrong: bytes after its end");
        fail(u);
        return;
    }
    begin(u, COMMITTING);
    u->events->whole(u->ctx);
}

static void on_taken(struct upload *u)
{
    if (put_ended(u->put)) {
        on_end(u);
        return;
    }
    keep_rest(u);
    give(u);
    u->events->room(u->ctx);
}

/* The dispatcher has to know of it in any case. */
static void on_stored(struct upload *u)
{
    put_tell(u->put);
    u->events->stored(u->ctx, &u->stored);
    if (u->ending && !u->busy)
        begin(u, CLOSING);
}

static void done(struct work *work)
{
    struct upload *u = (struct upload *)work;

    u->busy = false;
    if (u->stage == COMMITTING && !u->err.code && !u->unwanted) {
        on_stored(u);
    } else if (u->stage == CLOSING) {
        u->events->ended(u->ctx);
        free_upload(u);
    } else if (u->ending) {
        begin(u, CLOSING);
    } else if (u->err.code) {
        fail(u);
    } else if (u->stage == OPENING) {
        u->opened = true;
        u->events->opened(u->ctx, u->base);
    } else {
        on_taken(u);
    }
}

struct upload *upload_new(struct workers *workers, struct vault *vault,
                          const struct put_request *request, const struct upload_events *events,
                          void *ctx)
{
    struct upload *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->filling = malloc(sizeof(*u->filling));
    u->taking = malloc(sizeof(*u->taking));
    if (!u->filling || !u->taking) {
        free_upload(u);
        return NULL;
    }
    clear(u->filling);
    u->work = (struct work){.run = run, .done = done};
    u->workers = workers;
    u->vault = vault;
    u->request = *request;
    u->events = events;
    u->ctx = ctx;
    begin(u, OPENING);
    return u;
}

size_t upload_space(struct upload *u, uint8_t **at)
{
    if (!u->opened || u->failed || u->ending)
        return 0;
    *at = u->filling->bytes + u->filling->end;
    return sizeof(u->filling->bytes) - u->filling->end;
}

void upload_came(struct upload *u, size_t size)
{
    u->filling->end += size;
    give(u);
}

void upload_unwanted(struct upload *u)
{
    u->unwanted = true;
}

void upload_end(struct upload *u)
{
    if (u->ending)
        return;
    u->ending = true;
    if (!u->busy)
        begin(u, CLOSING);
}
