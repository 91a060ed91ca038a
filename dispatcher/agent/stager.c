#include "dispatcher/agent/stager.h"
#include "dispatcher/agent/agent_tell.h"
#include "dispatcher/stage/stage_dir.h"

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
        ITEM_LOOKING,   /* until no other agent is at it */
        ITEM_COMPARING, /* what is there, with its hash */
        ITEM_RECEIVING,
        ITEM_OVER, /* it is there, or cannot be */
    } state;
    uint64_t look_ns;  /* LOOKING: the next time */
    uint64_t until_ns; /* ... and the last one */
    int dir;           /* -1: it is not open */
    struct stage_place place;
    struct stage_sum *sum;
    uint64_t at;    /* bytes that were compared or received */
    uint32_t tries; /* that it was sent */
    struct mux_stream stream;
};

struct stager {
    struct loop *loop;
    struct mux *mux;
    struct loop_timer timer;
    struct item *item[AGENT_STAGES_MAX]; /* owned */
};

/* What cannot be told ends the session: mux_input says so. */
static void tell(struct item *it, uint32_t type, uint32_t value, const char *text)
{
    agent_tell(it->of->mux, type, it->number, value, text);
}

/* --- its end --- */

/* Of what was received so far, nothing stays. */
static void leave(struct item *it)
{
    if (it->state == ITEM_RECEIVING)
        stage_dir_drop(it->dir, &it->program, &it->place);
    stage_place_close(&it->place);
    if (it->dir >= 0)
        close(it->dir);
    it->dir = -1;
    stage_sum_free(it->sum);
    it->sum = NULL;
    it->state = ITEM_OVER;
}

static void fail(struct item *it, const struct cw_err *err)
{
    leave(it);
    tell(it, AGENT_STAGE_FAILED, (uint32_t)err->code, err->text);
    mux_stream_stop(&it->stream);
}

/* Its lock is held from now on. */
static void finish(struct item *it)
{
    struct cw_err err;

    if (faccessat(it->place.dir, it->program.name, X_OK, AT_EACCESS) < 0) {
        cw_err_set(&err, CW_ESYS,
                   "%.200s/.../%.60s cannot be executed: %s: is the file system mounted with "
                   "noexec? give another directory by --stage-dir",
                   it->program.dir, it->program.name, strerror(errno));
        fail(it, &err);
        return;
    }
    stage_dir_use(&it->place);
    close(it->place.file);
    it->place.file = -1;
    it->state = ITEM_OVER;
    tell(it, AGENT_STAGED, 0, "");
}

/* --- its bytes, as they come --- */

static void wait_for_look(struct item *it, uint64_t at_ns)
{
    it->state = ITEM_LOOKING;
    it->look_ns = at_ns;
    loop_timer_hasten(&it->of->timer, at_ns);
}

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
    else if (write_all(it->place.file, bytes, size) < 0)
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

/* It is read once more, from where it is kept now. */
static void on_end(void *ctx)
{
    struct item *it = ctx;
    uint8_t hash[STAGE_HASH_BYTES];
    struct cw_err err;

    if (it->state != ITEM_RECEIVING)
        return;
    stage_sum_end(it->sum, &it->program, hash);
    if (it->at != it->program.size || memcmp(hash, it->program.hash, sizeof(hash)) != 0) {
        cw_err_set(&err, CW_ESYS,
                   "what came of %.100s is not what was announced: did the program change "
                   "meanwhile? start the job again",
                   it->program.name);
        fail(it, &err);
    } else if (stage_dir_keep(it->dir, &it->program, &it->place, &err) < 0) {
        fail(it, &err);
    } else {
        wait_for_look(it, 0);
    }
}

static void on_closed(void *ctx)
{
    (void)ctx;
}

static const struct mux_stream_ops stream_ops = {
    .data = on_data, .end = on_end, .closed = on_closed};

/* --- what is there --- */

static void receive(struct item *it, struct cw_err *err)
{
    if (it->tries == STAGER_TRIES) {
        cw_err_set(err, CW_ESYS,
                   "%.60s does not stay as it is written in %.200s: is the disk damaged? give "
                   "another directory by --stage-dir",
                   it->program.name, it->program.dir);
        return;
    }
    if (stage_dir_reserve(it->dir, &it->program, &it->place, err) < 0)
        return;
    it->state = ITEM_RECEIVING;
    it->at = 0;
    it->tries++;
    mux_stream_open(it->of->mux, &it->stream, agent_stage_stream(it->number), false, true,
                    &stream_ops, it);
    tell(it, AGENT_STAGE_WANTED, 0, "");
}

static void look(struct item *it)
{
    struct cw_err err = {.code = CW_OK};

    if (it->dir < 0)
        it->dir = stage_dir_open(it->program.dir, &err);
    if (it->dir < 0) {
        fail(it, &err);
        return;
    }
    if (stage_dir_find(it->dir, &it->program, &it->place, &err) == CW_OK) {
        it->state = ITEM_COMPARING;
        it->at = 0;
        loop_timer_set(&it->of->timer, 0);
        return;
    }
    if (err.code == CW_ENOTFOUND) {
        err.code = CW_OK;
        receive(it, &err);
    }
    if (err.code == CW_EBUSY && loop_now_ns(it->of->loop) < it->until_ns)
        wait_for_look(it, loop_now_ns(it->of->loop) + STAGER_LOOK_NS);
    else if (err.code)
        fail(it, &err);
}

static void compare_end(struct item *it)
{
    uint8_t hash[STAGE_HASH_BYTES];
    struct cw_err err;

    stage_sum_end(it->sum, &it->program, hash);
    if (it->at == it->program.size && memcmp(hash, it->program.hash, sizeof(hash)) == 0)
        finish(it);
    else if (stage_dir_discard(it->dir, &it->program, &it->place, &err) < 0)
        fail(it, &err);
    else
        wait_for_look(it, 0);
}

static void compare(struct item *it)
{
    static uint8_t bytes[STAGER_READ_BYTES];
    ssize_t n = pread(it->place.file, bytes, sizeof(bytes), (off_t)it->at);

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

    for (uint32_t i = 0; i < AGENT_STAGES_MAX; i++) {
        struct item *it = s->item[i];

        if (it && it->state == ITEM_COMPARING)
            compare(it);
        else if (it && it->state == ITEM_LOOKING && it->look_ns <= loop_now_ns(s->loop))
            look(it);
        else if (it && it->state == ITEM_LOOKING)
            loop_timer_hasten(&s->timer, it->look_ns);
    }
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

void stager_free(struct stager *s)
{
    if (!s)
        return;
    loop_timer_remove(s->loop, &s->timer);
    for (uint32_t i = 0; i < AGENT_STAGES_MAX; i++)
        if (s->item[i]) {
            leave(s->item[i]);
            mux_stream_forget(&s->item[i]->stream);
            free(s->item[i]);
        }
    free(s);
}

int stager_take(struct stager *s, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct agent_stage order;
    struct item *it;

    if (!agent_stage_get(body, size, &order) || s->item[order.number])
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
    it->dir = -1;
    it->place = STAGE_NO_PLACE;
    it->until_ns = loop_now_ns(s->loop) + STAGER_WAIT_MAX_NS;
    wait_for_look(it, 0);
    return CW_OK;
}
