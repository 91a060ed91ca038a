#include "ckptsrv/service.h"
#include "ckptsrv/download.h"
#include "ckptsrv/guest.h"
#include "ckptsrv/handshake.h"
#include "ckptsrv/upload.h"

#include <poll.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

enum state {
    STRANGER, /* has not said HELLO */
    IMAGE,    /* has not said PUT */
    WAITING,  /* for its turn */
    UPLOADING,
    DISPATCHER,
    DROPPING, /* a dispatcher whose DROP is being done */
    FETCHING, /* likewise, once it has said FETCH: waits, or is served */
    DONE,     /* nothing more is done for it */
};

/* One connection and what is done for it. */
struct session {
    TAILQ_ENTRY(session) in_service; /* in the order in which they came */
    struct service *service;
    struct guest *guest; /* NULL: it is over */
    enum state state;
    struct cw_stranger stranger;
    struct cw_hello hello;
    struct put_request request;
    struct cw_image_ref ref; /* of FETCH, or DROP */
    struct upload *upload;
    struct download *download;
    struct work drop;
    bool dropping;  /* a thread does it */
    bool streaming; /* IMAGE is sent */
};

struct service {
    struct loop *loop;
    struct vault *vault;
    struct workers *workers;
    const uint8_t *key;
    TAILQ_HEAD(, session) sessions;
    struct cw_strangers strangers;
    uint32_t transfers; /* that have begun */
    bool closing;
    struct loop_timer look; /* a session may go on, or is to be freed */
};

static void look(struct service *service)
{
    loop_timer_set(&service->look, 0);
}

static void refuse(struct session *s, enum cw_refusal code, const char *text)
{
    if (s->guest && !guest_closes(s->guest))
        guest_refuse(s->guest, code, s->hello.rank, "%s", text);
}

static enum cw_refusal refusal_of(const struct cw_err *err)
{
    return err->code == CW_EPROTO ? CW_REFUSED_PROTOCOL : CW_REFUSED_LIMIT;
}

static void leave_state(struct session *s, enum state state)
{
    cw_stranger_leave(&s->stranger);
    s->state = state;
}

/* Nothing more is done for it; the connection may still have to say why. */
static void finish(struct session *s)
{
    leave_state(s, DONE);
    if (s->upload)
        upload_end(s->upload);
    if (s->download)
        download_end(s->download);
    look(s->service);
}

static void refuse_and_finish(struct session *s, enum cw_refusal code, const char *text)
{
    refuse(s, code, text);
    finish(s);
}

static bool same_job(const struct session *a, const struct session *b)
{
    return memcmp(a->hello.job, b->hello.job, CW_ID_SIZE) == 0;
}

static bool is_dispatcher(const struct session *s)
{
    return s->state == DISPATCHER || s->state == DROPPING;
}

/* --- storing -------------------------------------------------------------------------------------
 */

static void put_stored(struct session *s, uint8_t type, const struct cw_stored *stored)
{
    if (s->guest)
        guest_frame(s->guest, type, stored, sizeof(*stored));
}

static void upload_opened(void *ctx, uint32_t base)
{
    struct session *s = ctx;

    guest_frame(s->guest, CW_FRAME_GO, &(uint64_t){base}, CW_WORD_SIZE);
    guest_set_patience(s->guest, SERVICE_IDLE_NS);
    guest_set_mode(s->guest, GUEST_STREAM);
}

static void upload_room(void *ctx)
{
    struct session *s = ctx;
    uint8_t *at;

    if (upload_space(s->upload, &at) == 0)
        return;
    guest_set_patience(s->guest, SERVICE_IDLE_NS);
    guest_set_mode(s->guest, GUEST_STREAM);
}

static void upload_stored(void *ctx, const struct cw_stored *stored)
{
    struct session *s = ctx;
    struct session *d;

    put_stored(s, CW_FRAME_STORED, stored);
    TAILQ_FOREACH (d, &s->service->sessions, in_service)
        if (is_dispatcher(d) && same_job(d, s))
            put_stored(d, CW_FRAME_STORED, stored);
    if (s->guest)
        guest_close(s->guest);
    finish(s);
}

static void upload_whole(void *ctx)
{
    struct session *s = ctx;

    guest_set_mode(s->guest, GUEST_PAUSED);
    guest_set_patience(s->guest, LOOP_NEVER);
}

static void upload_failed(void *ctx, const struct cw_err *err)
{
    struct session *s = ctx;

    refuse_and_finish(s, refusal_of(err), err->text);
}

static void upload_ended(void *ctx)
{
    struct session *s = ctx;

    s->upload = NULL;
    s->service->transfers--;
    look(s->service);
}

static const struct upload_events upload_events = {upload_opened, upload_room,   upload_whole,
                                                   upload_stored, upload_failed, upload_ended};

static bool same_rank(const struct session *a, const struct session *b)
{
    return a != b && a->hello.role == CW_ROLE_IMAGE && b->hello.role == CW_ROLE_IMAGE &&
           same_job(a, b) && a->hello.rank == b->hello.rank;
}

/* One image of a rank at a time: what is void has to be out of the way before the next begins. */
static bool may_upload(const struct session *s)
{
    const struct service *service = s->service;
    const struct session *other;

    if (service->transfers >= SERVICE_TRANSFERS_MAX)
        return false;
    TAILQ_FOREACH (other, &service->sessions, in_service)
        if (other->upload && same_rank(s, other))
            return false;
    return true;
}

static void start_upload(struct session *s)
{
    struct service *service = s->service;

    s->upload = upload_new(service->workers, service->vault, &s->request, &upload_events, s);
    if (!s->upload) {
        refuse_and_finish(s, CW_REFUSED_LIMIT, "the checkpoint server has no memory for an image");
        return;
    }
    service->transfers++;
    leave_state(s, UPLOADING);
}

/* The newer incarnation wins; of the same one, the newer connection. Returns false after refusing
 * the session. */
static bool fence(struct session *s)
{
    struct session *other;

    TAILQ_FOREACH (other, &s->service->sessions, in_service) {
        if (!same_rank(s, other) || (other->state != WAITING && other->state != UPLOADING))
            continue;
        if (other->hello.incarnation > s->hello.incarnation) {
            refuse_and_finish(s, CW_REFUSED_FENCED,
                              "a higher incarnation of this rank stores an image");
            return false;
        }
        refuse_and_finish(other, CW_REFUSED_FENCED,
                          "a later image of this rank takes the place of this one");
    }
    return true;
}

static bool job_is_known(const struct session *s)
{
    const struct session *d;

    if (registry_has_job(vault_registry(s->service->vault), s->hello.job))
        return true;
    TAILQ_FOREACH (d, &s->service->sessions, in_service)
        if (is_dispatcher(d) && same_job(d, s))
            return true;
    return false;
}

static void recv_put(struct session *s, const uint8_t *body)
{
    s->request.rank = s->hello.rank;
    s->request.incarnation = s->hello.incarnation;
    memcpy(s->request.job, s->hello.job, CW_ID_SIZE);
    if (!cw_put_get(body, &s->request.put)) {
        refuse_and_finish(s, CW_REFUSED_PROTOCOL, "PUT with values that cannot be");
        return;
    }
    if (!job_is_known(s)) {
        refuse_and_finish(
            s, CW_REFUSED_JOB,
            "the checkpoint server has no such job: its dispatcher has not connected");
        return;
    }
    if (!fence(s))
        return;
    leave_state(s, WAITING);
    guest_set_mode(s->guest, GUEST_PAUSED);
    guest_set_patience(s->guest, LOOP_NEVER);
    look(s->service);
}

/* --- reading back --------------------------------------------------------------------------------
 */

static void download_opened(void *ctx, uint64_t bytes)
{
    struct session *s = ctx;

    guest_frame(s->guest, CW_FRAME_IMAGE, &bytes, CW_IMAGE_SIZE);
    s->streaming = true;
}

static void download_piece(void *ctx, const uint8_t *bytes, size_t size)
{
    struct session *s = ctx;

    guest_set_patience(s->guest, SERVICE_IDLE_NS);
    guest_lend(s->guest, bytes, size);
}

static void download_finished(void *ctx)
{
    struct session *s = ctx;

    guest_close(s->guest);
    finish(s);
}

/* In the middle of the stream there is no place for REFUSED: the end comes too early. */
static void download_failed(void *ctx, const struct cw_err *err)
{
    struct session *s = ctx;

    if (err->code != CW_ENOTFOUND)
        fprintf(stderr, "causeway ckptsrv: reading an image: %s\n", err->text);
    if (s->streaming)
        guest_abandon(s->guest);
    refuse_and_finish(s, refusal_of(err), err->text);
}

static void download_ended(void *ctx)
{
    struct session *s = ctx;

    s->download = NULL;
    s->service->transfers--;
    look(s->service);
}

static const struct download_events download_events = {
    download_opened, download_piece, download_finished, download_failed, download_ended};

static void start_download(struct session *s)
{
    struct service *service = s->service;

    s->download =
        download_new(service->workers, service->vault, s->hello.job, &s->ref, &download_events, s);
    if (!s->download) {
        refuse_and_finish(s, CW_REFUSED_LIMIT, "the checkpoint server has no memory for an image");
        return;
    }
    service->transfers++;
}

static void recv_fetch(struct session *s, const uint8_t *body)
{
    cw_image_ref_get(body, &s->ref);
    leave_state(s, FETCHING);
    guest_set_mode(s->guest, GUEST_PAUSED);
    look(s->service);
}

/* --- dropping ------------------------------------------------------------------------------------
 */

static void run_drop(struct work *work)
{
    struct session *s = (struct session *)((char *)work - offsetof(struct session, drop));
    struct cw_err err = {0};

    if (vault_drop(s->service->vault, s->hello.job, &s->ref, &err) < 0)
        fprintf(stderr, "causeway ckptsrv: removing images: %s\n", err.text);
}

static void drop_done(struct work *work)
{
    struct session *s = (struct session *)((char *)work - offsetof(struct session, drop));

    s->dropping = false;
    look(s->service);
    if (s->state != DROPPING)
        return;
    s->state = DISPATCHER;
    guest_set_mode(s->guest, GUEST_FRAMES);
}

/* Images that are on their way are not wanted either. */
static void void_uploads(struct session *s)
{
    struct session *other;

    TAILQ_FOREACH (other, &s->service->sessions, in_service) {
        if (other->hello.role != CW_ROLE_IMAGE || !same_job(s, other) ||
            (other->state != WAITING && other->state != UPLOADING) ||
            (s->ref.rank != CW_EVERY_RANK && s->ref.rank != other->hello.rank) ||
            other->request.put.number > s->ref.number)
            continue;
        if (other->upload)
            upload_unwanted(other->upload);
        refuse_and_finish(other, CW_REFUSED_LIMIT, "the dispatcher does not want this image");
    }
}

static void recv_drop(struct session *s, const uint8_t *body)
{
    cw_image_ref_get(body, &s->ref);
    void_uploads(s);
    s->state = DROPPING;
    s->dropping = true;
    guest_set_mode(s->guest, GUEST_PAUSED);
    s->drop = (struct work){.run = run_drop, .done = drop_done};
    workers_add(s->service->workers, &s->drop);
}

/* --- HELLO ---------------------------------------------------------------------------------------
 */

static void put_held(void *ctx, const struct cw_stored *image)
{
    put_stored(ctx, CW_FRAME_HELD, image);
}

static void recv_hello(struct session *s, const uint8_t *body)
{
    struct cw_welcome welcome;
    struct cw_err err = {0};
    int code = handshake_judge(&s->stranger, s->service->key, body, &s->hello, &welcome, &err);

    if (code) {
        s->hello.role = 0; /* it is nobody */
        refuse_and_finish(s, (enum cw_refusal)code, err.text);
        return;
    }
    if (!guest_frame(s->guest, CW_FRAME_WELCOME, &welcome, sizeof(welcome)))
        return;
    if (s->hello.role == CW_ROLE_IMAGE) {
        leave_state(s, IMAGE);
        guest_set_patience(s->guest, SERVICE_PUT_NS);
        return;
    }
    leave_state(s, DISPATCHER);
    guest_set_patience(s->guest, LOOP_NEVER);
    registry_each(vault_registry(s->service->vault), s->hello.job, put_held, s);
    guest_frame(s->guest, CW_FRAME_HELD_END, NULL, 0);
}

/* --- connections ---------------------------------------------------------------------------------
 */

static const struct {
    uint8_t type;
    enum state state; /* in which it may come */
    void (*take)(struct session *s, const uint8_t *body);
} frames[] = {
    {CW_FRAME_HELLO, STRANGER, recv_hello},
    {CW_FRAME_PUT, IMAGE, recv_put},
    {CW_FRAME_FETCH, DISPATCHER, recv_fetch},
    {CW_FRAME_DROP, DISPATCHER, recv_drop},
};

static void on_frame(void *ctx, const struct cw_header *header, const uint8_t *body)
{
    struct session *s = ctx;

    for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
        if (frames[i].type == header->type && frames[i].state == s->state) {
            frames[i].take(s, body);
            return;
        }
    refuse_and_finish(s, CW_REFUSED_PROTOCOL,
                      s->state == STRANGER ? "expected HELLO"
                                           : "a frame that is not expected here");
}

static void on_space(void *ctx, uint8_t **at, size_t *size)
{
    struct session *s = ctx;

    *size = upload_space(s->upload, at);
}

static void on_came(void *ctx, size_t size)
{
    struct session *s = ctx;
    uint8_t *at;

    upload_came(s->upload, size);
    if (upload_space(s->upload, &at) > 0)
        return;
    guest_set_mode(s->guest, GUEST_PAUSED);
    guest_set_patience(s->guest, LOOP_NEVER);
}

static void on_written(void *ctx)
{
    struct session *s = ctx;

    if (s->download)
        download_sent(s->download);
}

static void on_late(void *ctx)
{
    struct session *s = ctx;

    if (s->state == FETCHING)
        guest_abandon(s->guest); /* it does not read */
    refuse_and_finish(s, CW_REFUSED_PROTOCOL,
                      s->state == STRANGER ? "no HELLO came in time"
                      : s->state == IMAGE  ? "no PUT came in time"
                                           : "nothing more of the image came for a minute");
}

static void on_over(void *ctx)
{
    struct session *s = ctx;

    guest_free(s->guest);
    s->guest = NULL;
    finish(s);
}

static const struct guest_handler handler = {on_frame,   on_space, on_came,
                                             on_written, on_late,  on_over};

static void make_room(struct service *service)
{
    struct session *s = cw_strangers_first(&service->strangers, CW_STRANGERS_MAX);

    if (!s)
        return;
    if (guest_closes(s->guest))
        guest_abandon(s->guest); /* it does not read why */
    refuse_and_finish(s, CW_REFUSED_LIMIT, CW_STRANGER_GOES);
}

void service_enter(struct service *service, int fd)
{
    struct session *s = calloc(1, sizeof(*s));
    struct cw_challenge challenge;
    uint8_t nonce[CW_NONCE_SIZE];

    make_room(service);
    if (!s) {
        close(fd);
        return;
    }
    s->service = service;
    s->guest = guest_new(service->loop, fd, &handler, s);
    if (!s->guest) {
        free(s);
        return;
    }
    TAILQ_INSERT_TAIL(&service->sessions, s, in_service);
    guest_set_patience(s->guest, CW_STRANGER_NS);
    randombytes_buf(nonce, sizeof(nonce));
    challenge = cw_stranger_enter(&service->strangers, &s->stranger, s, nonce);
    guest_frame(s->guest, CW_FRAME_CHALLENGE, &challenge, sizeof(challenge));
}

/* --- all of them ---------------------------------------------------------------------------------
 */

static void on_look(void *ctx)
{
    struct service *service = ctx;
    struct session *next;

    for (struct session *s = TAILQ_FIRST(&service->sessions); s; s = next) {
        next = TAILQ_NEXT(s, in_service);
        if (s->state == DONE && !s->guest && !s->upload && !s->download && !s->dropping) {
            TAILQ_REMOVE(&service->sessions, s, in_service);
            free(s);
        } else if (s->state == WAITING && !service->closing && may_upload(s)) {
            start_upload(s);
        } else if (s->state == FETCHING && !s->download && !service->closing &&
                   service->transfers < SERVICE_TRANSFERS_MAX) {
            start_download(s);
        }
    }
}

struct service *service_new(struct loop *loop, struct vault *vault, struct workers *workers,
                            const uint8_t key[CW_KEY_SIZE])
{
    struct service *service = calloc(1, sizeof(*service));

    if (!service)
        return NULL;
    service->loop = loop;
    service->vault = vault;
    service->workers = workers;
    service->key = key;
    TAILQ_INIT(&service->sessions);
    cw_strangers_init(&service->strangers);
    loop_timer_add(loop, &service->look, on_look, service);
    return service;
}

void service_free(struct service *service)
{
    struct session *s;

    if (!service)
        return;
    service->closing = true;
    TAILQ_FOREACH (s, &service->sessions, in_service) {
        guest_free(s->guest);
        s->guest = NULL;
        finish(s);
    }
    for (on_look(service); !TAILQ_EMPTY(&service->sessions); on_look(service)) {
        struct pollfd ready = {.fd = workers_fd(service->workers), .events = POLLIN};

        poll(&ready, 1, -1);
        workers_collect(service->workers);
    }
    loop_timer_remove(&service->look);
    free(service);
}
