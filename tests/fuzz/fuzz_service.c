/* Connections to a checkpoint server: what comes there, in any order, on up to CLIENTS of them. The
 * service and the store are the real ones; what its threads do is done between two turns.
 *
 * The input is a script; a dispatcher and a rank are there when it begins. A byte says what is done
 * (its lowest 3 bits) and by which client (the next 2), and bytes that follow say how. */
#include "ckptsrv/service.h"
#include "common/cred.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/image_maker.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 4u
#define STEPS_MAX 64u
#define QUOTA (2u << 20)
#define BLOCKS 5u

static const uint8_t key[CW_KEY_SIZE] = {1};

/* --- the threads' work
 * ----------------------------------------------------------------------------
 */

struct workers {
    STAILQ_HEAD(, work) todo;
    int fd;
};

struct workers *workers_new(int count, int wakes, struct cw_err *err)
{
    static struct workers workers;

    (void)count;
    (void)err;
    STAILQ_INIT(&workers.todo);
    workers.fd = wakes;
    return &workers;
}

void workers_free(struct workers *workers)
{
    must(STAILQ_EMPTY(&workers->todo));
    close(workers->fd);
}

void workers_add(struct workers *workers, struct work *work)
{
    STAILQ_INSERT_TAIL(&workers->todo, work, next);
    must(eventfd_write(workers->fd, 1) == 0);
}

int workers_fd(const struct workers *workers)
{
    return workers->fd;
}

void workers_collect(struct workers *workers)
{
    eventfd_t count;

    eventfd_read(workers->fd, &count);
    while (!STAILQ_EMPTY(&workers->todo)) {
        struct work *work = STAILQ_FIRST(&workers->todo);

        STAILQ_REMOVE_HEAD(&workers->todo, next);
        work->run(work);
        work->done(work);
    }
}

/* --- the server ----------------------------------------------------------------------------------
 */

static struct loop *loop;
static struct workers *workers;
static struct vault *vault;
static struct service *service;

static void open_server(char *dir)
{
    struct cw_err err = {0};

    strcpy(dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/cwfuzz.XXXXXX" : "/tmp/cwfuzz.XXXXXX");
    must(mkdtemp(dir) != NULL);
    loop = loop_new(&err);
    workers = workers_new(1, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), &err);
    vault = vault_open(dir, QUOTA, &err);
    must(loop && vault);
    service = service_new(loop, vault, workers, key);
    must(service != NULL);
}

static void close_server(const char *dir)
{
    uint64_t used;
    uint64_t max;

    registry_use(vault_registry(vault), &used, &max);
    must(used <= max);
    service_free(service);
    workers_free(workers);
    vault_close(vault, true, NULL);
    loop_free(loop);
    must(rmdir(dir) == 0);
}

static void turn(void)
{
    for (int i = 0; i < 3; i++) {
        loop_turn(loop, 0);
        workers_collect(workers);
    }
}

/* --- clients -------------------------------------------------------------------------------------
 */

struct client {
    int fd; /* -1: it is not connected */
    struct cw_session session;
    struct image_plan plan;
    struct image_stream stream;
    size_t sent; /* of the stream */
};

static struct client clients[CLIENTS];

static void say(struct client *c, const void *bytes, size_t size)
{
    if (c->fd >= 0)
        send(c->fd, bytes, size, MSG_NOSIGNAL);
    turn();
}

static void say_frame(struct client *c, uint8_t type, const uint8_t *body, uint32_t size)
{
    uint8_t frame[CW_FRAME_HEADER + CW_FRAME_BODY_MAX] = {0};

    cw_frame_begin(&c->session, frame, type, size);
    memcpy(frame + CW_FRAME_HEADER, body, size);
    say(c, frame, CW_FRAME_HEADER + size);
}

static void leave(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->stream.bytes);
    *c = (struct client){.fd = -1};
    turn();
}

/* As a dispatcher, or with images of rank 0 or 1: a right HELLO. */
static void enter(struct client *c, uint8_t how)
{
    uint8_t came[CW_FRAME_HEADER + CW_CHALLENGE_SIZE];
    struct cw_hello hello = {.magic = CW_PROTOCOL_MAGIC,
                             .version = CW_PROTOCOL_VERSION,
                             .role = how & 1 ? CW_ROLE_DISPATCHER : CW_ROLE_IMAGE,
                             .rank = how & 1 ? 2 : how >> 1 & 1,
                             .incarnation = how & 1 ? 0 : 1 + (how >> 2 & 1)};
    struct cw_challenge challenge;
    uint8_t own[CW_KEY_SIZE];
    uint8_t body[CW_HELLO_SIZE];
    int pair[2];

    leave(c);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    c->fd = pair[0];
    c->plan = (struct image_plan){.rank = hello.rank, .incarnation = hello.incarnation, .seed = 1};
    service_enter(service, pair[1]);
    turn();
    must(recv(c->fd, came, sizeof(came), 0) == (ssize_t)sizeof(came));
    must(cw_challenge_get(came + CW_FRAME_HEADER, &challenge));
    cw_cred_job_key(own, key, hello.job);
    if (hello.role == CW_ROLE_IMAGE)
        cw_cred_rank_key(own, own, hello.rank, hello.incarnation);
    cw_cred_mac_hello(hello.mac, own, &hello, challenge.nonce);
    if (how & 0x80)
        hello.mac[0] ^= 1;
    cw_hello_put(body, &hello);
    say_frame(c, CW_FRAME_HELLO, body, sizeof(body));
}

static void put(struct client *c, uint8_t number, uint8_t base)
{
    uint8_t body[CW_PUT_SIZE];
    struct cw_put ask;

    c->plan.number = number % 8 + 1;
    c->plan.base = base % 4 ? 0 : number % 8;
    c->plan.blocks = BLOCKS + number / 64;
    ask = image_put(&c->plan);
    cw_put_put(body, &ask);
    free(c->stream.bytes);
    c->stream = (struct image_stream){0};
    image_make(&c->plan, &c->stream);
    c->sent = 0;
    say_frame(c, CW_FRAME_PUT, body, sizeof(body));
}

/* As much of a right stream, and one byte of it may be another one. */
static void go_on(struct client *c, uint8_t share, uint8_t wrong)
{
    size_t size = c->stream.size / 16 * (share % 16 + 1u);

    size = size < c->stream.size - c->sent ? size : c->stream.size - c->sent;
    if (size == 0)
        return;
    if (wrong)
        c->stream.bytes[c->sent + size * wrong / 256] ^= share;
    say(c, c->stream.bytes + c->sent, size);
    c->sent += size;
}

static void refer(struct client *c, uint8_t type, uint8_t what)
{
    struct cw_image_ref ref = {what % 4 == 3 ? CW_EVERY_RANK : what % 4, what / 4 % 10};
    uint8_t body[CW_IMAGE_REF_SIZE];

    cw_image_ref_put(body, &ref);
    say_frame(c, type, body, sizeof(body));
}

/* What the server says is read, or, of what it says first, left there. */
static void listen_to(struct client *c)
{
    static uint8_t bytes[1 << 16];

    while (c->fd >= 0 && recv(c->fd, bytes, sizeof(bytes), 0) > 0)
        turn();
}

/* Returns how many bytes it took. */
static size_t step(const uint8_t *data, size_t size)
{
    struct client *c = &clients[data[0] >> 3 & 3];
    size_t left = size - 3;
    size_t n = data[1] < left ? data[1] : left;

    switch (data[0] & 7) {
    case 0:
        enter(c, data[1]);
        return 2;
    case 1:
        put(c, data[1], data[2]);
        return 3;
    case 2:
        go_on(c, data[1], data[2]);
        return 3;
    case 3:
        refer(c, data[2] & 1 ? CW_FRAME_DROP : CW_FRAME_FETCH, data[1]);
        return 3;
    case 4: /* any frame */
        n = n < CW_FRAME_BODY_MAX ? n : CW_FRAME_BODY_MAX;
        say_frame(c, data[2], data + 3, (uint32_t)n);
        return 3 + n;
    case 5: /* any bytes */
        say(c, data + 3, n);
        return 3 + n;
    case 6:
        listen_to(c);
        return 1;
    default:
        leave(c);
        return 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[32];

    open_server(dir);
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = (struct client){.fd = -1};
    enter(&clients[0], 1);
    enter(&clients[1], 0);
    for (unsigned i = 0; i < STEPS_MAX && size >= 3; i++) {
        size_t n = step(data, size);

        data += n;
        size -= n;
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        leave(&clients[i]);
    close_server(dir);
    return 0;
}
