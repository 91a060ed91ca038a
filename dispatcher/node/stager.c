#include "dispatcher/node/stager.h"
#include "common/held_dir.h"
#include "dispatcher/node/stage_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item {
    struct stager *of;
    struct stage_program program;
    uint32_t number;
    enum {
        ITEM_COMPARING, /* what is there, with its hash */
        ITEM_RECEIVING,
        ITEM_OVER, /* it is there, or cannot be */
    } state;
    int dir;  /* -1: it is not open */
    int file; /* that is read or written; -1: none is */
    char part[STAGE_PART_NAME];
    struct stage_sum *sum;
    uint64_t at; /* bytes that were compared or received */
    struct mux_stream stream;
};

struct stager {
    struct loop *loop;
    struct mux *mux;
    struct loop_timer timer;
    struct item *item[NODE_STAGES_MAX]; /* owned */
};

/* What cannot be told ends the session: mux_input says so. */
static void tell(struct item *it, uint32_t type, uint32_t value, const char *text)
{
    node_event_send(it->of->mux, type, it->number, value, text);
}

/* --- its end --- */

/* Of what was received so far, nothing stays. */
static void leave(struct item *it)
{
    if (it->state == ITEM_RECEIVING)
        unlinkat(it->dir, it->part, 0);
    if (it->file >= 0)
        close(it->file);
    it->file = -1;
    it->state = ITEM_OVER;
}

static void fail(struct item *it, const struct cw_err *err)
{
    leave(it);
    tell(it, NODE_STAGE_FAILED, (uint32_t)err->code, err->text);
    mux_stream_stop(&it->stream);
}

static void finish(struct item *it)
{
    struct cw_err err;

    leave(it);
    if (faccessat(it->dir, it->program.name, X_OK, AT_EACCESS) < 0) {
        cw_err_set(&err, CW_ESYS,
                   "%.200s/%.60s cannot be executed: %s: is the file system mounted with "
                   "noexec? give another directory by --stage-dir",
                   it->program.dir, it->program.name, strerror(errno));
        fail(it, &err);
        return;
    }
    tell(it, NODE_STAGED, 0, "");
}

/* --- its bytes, as they come --- */

static int write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

static void write_part(struct item *it, const uint8_t *bytes, size_t size)
{
    struct cw_err err;

    if (size > it->program.size - it->at)
        fail(it, (cw_err_set(&err, CW_EPROTO, "more bytes of %.100s come than were announced",
                             it->program.name),
                  &err));
    else if (write_all(it->file, bytes, size) < 0)
        fail(it, (cw_err_set(&err, CW_ESYS,
                             "writing %.60s to %.200s, %llu of %llu bytes: %s: make room, or give "
                             "another directory by --stage-dir",
                             it->program.name, it->program.dir, (unsigned long long)it->at,
                             (unsigned long long)it->program.size, strerror(errno)),
                  &err));
    else
        stage_sum_add(it->sum, bytes, size);
    it->at += size;
}

static int on_data(void *ctx, const uint8_t *bytes, size_t size, struct cw_err *err)
{
    struct item *it = ctx;

    (void)err;
    if (it->state == ITEM_RECEIVING)
        write_part(it, bytes, size);
    mux_stream_took(&it->stream, size);
    return CW_OK;
}

static void on_end(void *ctx)
{
    struct item *it = ctx;
    uint8_t hash[STAGE_HASH_BYTES];
    struct cw_err err;

    if (it->state != ITEM_RECEIVING)
        return;
    stage_sum_end(it->sum, hash);
    if (it->at != it->program.size || memcmp(hash, it->program.hash, sizeof(hash)) != 0) {
        cw_err_set(&err, CW_ESYS,
                   "what came of %.100s is not what was announced: did the program change "
                   "meanwhile? start the job again",
                   it->program.name);
        fail(it, &err);
    } else if (stage_dir_keep(it->dir, &it->program, it->file, it->part, &err) < 0) {
        fail(it, &err);
    } else {
        finish(it);
    }
}

static void on_closed(void *ctx)
{
    (void)ctx;
}

static const struct mux_stream_ops stream_ops = {
    .data = on_data, .end = on_end, .closed = on_closed};

/* --- what is there --- */

static int receive(struct item *it, struct cw_err *err)
{
    it->file = stage_dir_begin(it->dir, &it->program, it->part, err);
    if (it->file < 0)
        return err->code;
    it->state = ITEM_RECEIVING;
    mux_stream_open(it->of->mux, &it->stream, node_stage_stream(it->number), false, true,
                    &stream_ops, it);
    tell(it, NODE_STAGE_WANTED, 0, "");
    return CW_OK;
}

static int look(struct item *it, struct cw_err *err)
{
    it->dir = stage_dir_open(&it->program, err);
    if (it->dir < 0)
        return err->code;
    it->file = stage_dir_find(it->dir, &it->program, err);
    if (it->file < 0)
        return err->code == CW_ENOTFOUND ? receive(it, err) : err->code;
    it->state = ITEM_COMPARING;
    loop_timer_set(&it->of->timer, 0);
    return CW_OK;
}

static void compare_end(struct item *it)
{
    uint8_t hash[STAGE_HASH_BYTES];
    struct cw_err err;

    stage_sum_end(it->sum, hash);
    if (it->at == it->program.size && memcmp(hash, it->program.hash, sizeof(hash)) == 0) {
        finish(it);
        return;
    }
    cw_err_set(&err, CW_ESYS, "%.200s/%.60s has other bytes than were announced", it->program.dir,
               it->program.name);
    fail(it, &err);
}

static void compare(struct item *it)
{
    static uint8_t bytes[STAGER_READ_BYTES];
    ssize_t n = pread(it->file, bytes, sizeof(bytes), (off_t)it->at);

    if (n <= 0) {
        compare_end(it);
        return;
    }
    stage_sum_add(it->sum, bytes, (size_t)n);
    it->at += (uint64_t)n;
    loop_timer_set(&it->of->timer, 0);
}

static void on_timer(void *ctx)
{
    struct stager *s = ctx;

    for (uint32_t i = 0; i < NODE_STAGES_MAX; i++)
        if (s->item[i] && s->item[i]->state == ITEM_COMPARING)
            compare(s->item[i]);
}

/* --- all of it --- */

struct stager *stager_new(struct loop *loop, struct mux *mux, struct cw_err *err)
{
    struct stager *s = calloc(1, sizeof(*s));

    if (!s) {
        cw_err_set(err, CW_ENOMEM, "no memory for programs");
        return NULL;
    }
    s->loop = loop;
    s->mux = mux;
    loop_timer_add(loop, &s->timer, on_timer, s);
    return s;
}

static void free_item(struct item *it)
{
    leave(it);
    if (it->dir >= 0)
        cw_held_dir_leave(it->dir, it->program.dir, false);
    stage_sum_free(it->sum);
    mux_stream_forget(&it->stream);
    free(it);
}

void stager_free(struct stager *s)
{
    if (!s)
        return;
    loop_timer_remove(&s->timer);
    for (uint32_t i = 0; i < NODE_STAGES_MAX; i++)
        if (s->item[i])
            free_item(s->item[i]);
    free(s);
}

int stager_take(struct stager *s, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node_stage order;
    struct cw_err why;
    struct item *it;

    if (!node_stage_get(body, size, &order) || s->item[order.number])
        return cw_err_set(err, CW_EPROTO, "a program that makes no sense");
    it = s->item[order.number] = calloc(1, sizeof(*it));
    if (it)
        it->sum = stage_sum_new();
    if (!it || !it->sum) {
        free(it);
        s->item[order.number] = NULL;
        return cw_err_set(err, CW_ENOMEM, "no memory for a program");
    }
    it->of = s;
    it->program = order.program;
    it->number = order.number;
    it->state = ITEM_OVER;
    it->dir = it->file = -1;
    if (look(it, &why) < 0)
        fail(it, &why);
    return CW_OK;
}
