#include "tests/conformance/site.h"
#include "common/cred.h"
#include "common/hello.h"
#include "tests/lib/scratch.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WRITE_MAX (128u << 10) /* bytes of one write */

#define SPIN_NS 20000
#define MEMORY_MAX (512ull << 20)
#define HELLO_MS 20000
#define DESCRIPTORS_OTHER 64 /* of this process, not of peers and their relay */

struct site site;
struct relay_pools site_pools = RELAY_POOLS_DEFAULT;
bool site_rings;
struct relay_disk site_disk;
struct peer peers[SITE_PEERS];
int peer_count;

int site_count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int count = 0;

    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count;
}

void site_raise_descriptors(void)
{
    struct rlimit limit;

    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    CU_ASSERT_TRUE_FATAL(limit.rlim_max >= 3 * SITE_PEERS + DESCRIPTORS_OTHER);
    limit.rlim_cur = limit.rlim_max;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void *run_engine(void *unused)
{
    (void)unused;
    site.result = site.ops->run(site.engine, &site.err);
    return NULL;
}

static void site_listen(int i, const char *text)
{
    struct relay_listener *l = &site.listeners[i];

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&l->address, text, &site.err), CW_OK);
    l->fd = cw_listen(&l->address, &site.err);
    CU_ASSERT_TRUE_FATAL(l->fd >= 0);
}

static void open_disk(struct relay_engine_config *config, struct relay_core_config *core_config)
{
    struct relay_listener *results = &site.listeners[config->listener_count];

    if (!site_disk.take)
        return;
    *results = (struct relay_listener){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .wakes = true};
    CU_ASSERT_TRUE_FATAL(results->fd >= 0);
    config->listener_count++;
    config->disk = site_disk;
    core_config->log_memory = SITE_LOG_MEMORY;
    core_config->log_disk = SITE_LOG_DISK;
}

void site_start(const struct relay_engine_ops *ops)
{
    struct relay_engine_config config = {.listeners = site.listeners,
                                         .listener_count = 2,
                                         .spin_ns = SPIN_NS,
                                         .pools = site_pools,
                                         .rings = site_rings};
    struct relay_core_config core_config = {.memory_max = MEMORY_MAX, .log_memory = MEMORY_MAX};
    char path[128];

    memset(&site, 0, sizeof(site));
    peer_count = 0;
    site.ops = ops;
    site.hello_flags = CW_HELLO_LOG;
    site.descriptors = site_count_descriptors();
    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    snprintf(path, sizeof(path), "unix:%s/relay", scratch_dir);
    site_listen(SITE_UNIX, path);
    site_listen(SITE_TCP, "tcp:127.0.0.1:0");
    open_disk(&config, &core_config);
    memset(site.key, 3, sizeof(site.key));
    memset(site.job, 4, sizeof(site.job));
    core_config.key = site.key;
    site.core = relay_core_new(&core_config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(site.core);
    config.core = site.core;
    CU_ASSERT_EQUAL_FATAL(ops->open(&site.engine, &config, &site.err), CW_OK);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&site.thread, NULL, run_engine, NULL), 0);
}

/* Peers of sessions that can resume keep from the first byte on. */
static struct peer *connect_of_job(int listener)
{
    struct peer *p = peer_connect(listener);

    if (site.resume_ms)
        peer_keep(p);
    return p;
}

static void open_job(uint32_t ranks)
{
    CU_ASSERT_EQUAL_FATAL(peer_hello_dispatcher(connect_of_job(SITE_UNIX), ranks), CW_OK);
    for (uint32_t rank = 0; rank < ranks; rank++)
        CU_ASSERT_EQUAL_FATAL(peer_hello_rank(connect_of_job(rank % 2), rank, 1), CW_OK);
}

void site_start_job(const struct relay_engine_ops *ops, uint32_t ranks)
{
    site_start(ops);
    open_job(ranks);
}

void site_start_unlogged_job(const struct relay_engine_ops *ops, uint32_t ranks)
{
    site_start(ops);
    site.hello_flags = 0;
    open_job(ranks);
}

void site_start_resuming_job(const struct relay_engine_ops *ops, uint32_t ranks, uint32_t flags,
                             uint32_t resume_ms)
{
    site_start(ops);
    site.hello_flags = flags;
    site.resume_ms = resume_ms;
    open_job(ranks);
}

void site_join(void)
{
    CU_ASSERT_EQUAL(pthread_join(site.thread, NULL), 0);
    CU_ASSERT_EQUAL(site.result, CW_OK);
    site.memory_max = relay_core_stats(site.core)->memory_max;
    site.calls = relay_core_stats(site.core)->syscalls;
    site.ops->close(site.engine);
}

void site_close(void)
{
    relay_core_free(site.core);
    for (int i = 0; i < peer_count; i++)
        peer_leave(&peers[i]);
    for (int i = 0; i < 2; i++)
        cw_unlisten(site.listeners[i].fd, &site.listeners[i].address);
    if (site.listeners[2].wakes)
        close(site.listeners[2].fd);
    CU_ASSERT_EQUAL(scratch_end(), 0);
    CU_ASSERT_EQUAL(site_count_descriptors(), site.descriptors);
}

void site_stop(void)
{
    site.ops->stop(site.engine);
    site_join();
    site_close();
}

static void connect_wire(struct peer *p, int listener)
{
    struct cw_err err;

    p->wire.fd = cw_connect(&site.listeners[listener].address, &err);
    CU_ASSERT_TRUE_FATAL(p->wire.fd >= 0);
    if (site_rings && listener == SITE_UNIX)
        cw_wire_want(&p->wire, NULL);
}

static void connect_as(struct peer *p, int listener)
{
    memset(p, 0, sizeof(*p));
    connect_wire(p, listener);
}

struct peer *peer_connect(int listener)
{
    CU_ASSERT_TRUE_FATAL(peer_count < SITE_PEERS);
    connect_as(&peers[peer_count], listener);
    return &peers[peer_count++];
}

void peer_reconnect(struct peer *p, int listener)
{
    peer_leave(p);
    connect_as(p, listener);
}

static int hello(struct peer *p)
{
    struct cw_err err;

    memcpy(p->hello.job, site.job, CW_ID_SIZE);
    return cw_hello_open(&p->wire, &p->codec.session, &p->hello, p->key, HELLO_MS, &p->welcome,
                         &err);
}

int peer_hello_rank(struct peer *p, uint32_t rank, uint32_t incarnation)
{
    p->hello = (struct cw_hello){.role = CW_ROLE_RANK, .rank = rank, .incarnation = incarnation};
    cw_cred_job_key(p->key, site.key, site.job);
    cw_cred_rank_key(p->key, p->key, rank, incarnation);
    return hello(p);
}

/* They are for ranks. */
static void decline_rings(struct peer *p)
{
    cw_wire_close(&p->wire);
}

int peer_hello_dispatcher(struct peer *p, uint32_t ranks)
{
    decline_rings(p);
    p->hello = (struct cw_hello){.role = CW_ROLE_DISPATCHER,
                                 .rank = ranks,
                                 .flags = site.hello_flags,
                                 .resume_ms = site.resume_ms};
    cw_cred_job_key(p->key, site.key, site.job);
    return hello(p);
}

int peer_hello_relay(struct peer *p, uint32_t number)
{
    decline_rings(p);
    p->hello = (struct cw_hello){.role = CW_ROLE_RELAY, .rank = number, .incarnation = 1};
    cw_cred_job_key(p->key, site.key, site.job);
    cw_cred_link_key(p->key, p->key, number);
    return hello(p);
}

void peer_leave(struct peer *p)
{
    cw_wire_close(&p->wire);
    if (p->wire.fd >= 0)
        close(p->wire.fd);
    p->wire.fd = -1;
    free(p->kept.bytes);
    p->kept.bytes = NULL;
    codec_fini(&p->codec);
    codec_inbox_fini(&p->inbox);
}

/* --- sessions that resume --------------------------------------------------------------------- */
void peer_keep(struct peer *p)
{
    uint8_t *bytes = malloc(CW_KEPT_MAX);

    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    cw_kept_init(&p->kept, bytes, CW_KEPT_MAX);
}

void peer_break(struct peer *p)
{
    struct iovec unread[2];
    int count = cw_wire_unread(&p->wire, unread);

    CU_ASSERT_TRUE(count >= 0);
    if (count > 0)
        CU_ASSERT_EQUAL(cw_kept_restore(&p->kept, unread, count), CW_OK);
    cw_wire_close(&p->wire);
    close(p->wire.fd);
    p->wire.fd = -1;
}

int peer_resume_once(struct peer *p, int listener)
{
    struct cw_err err;
    int code;

    p->ended = false;
    connect_wire(p, listener);
    if (p->hello.role != CW_ROLE_RANK)
        decline_rings(p);
    code = cw_hello_resume(&p->wire, peer_received_bytes(p), &p->hello, p->key, HELLO_MS,
                           &p->welcome, &err);
    if (code == CW_OK) {
        CU_ASSERT_EQUAL_FATAL(cw_kept_rewind(&p->kept, p->welcome.received), CW_OK);
        return CW_OK;
    }
    cw_wire_close(&p->wire);
    close(p->wire.fd);
    p->wire.fd = -1;
    return code;
}

static int64_t clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int peer_resume(struct peer *p, int listener)
{
    int64_t end = clock_ms() + SITE_WAIT_MS;
    int code = peer_resume_once(p, listener);

    while ((code == CW_EBUSY || code == CW_ECLOSED) && clock_ms() < end) {
        poll(NULL, 0, 1);
        code = peer_resume_once(p, listener);
    }
    return code;
}

void peer_send(struct peer *p, uint32_t dst, uint64_t tag, uint64_t total)
{
    struct cw_send send = {.dst = dst, .kind = CW_SEND_TAG, .tag = tag, .total = total};
    uint64_t size = total < CW_FRAME_DATA_MAX ? total : CW_FRAME_DATA_MAX;
    uint8_t *to = codec_begin(&p->codec, CW_FRAME_SEND, CW_SEND_SIZE + size);

    cw_send_put(to, &send);
    codec_pattern(to + CW_SEND_SIZE, tag, 0, size);
    peer_send_rest(p, tag, total, size);
}

void peer_send_rest(struct peer *p, uint64_t tag, uint64_t total, uint64_t sent)
{
    for (uint64_t size; sent < total; sent += size) {
        size = total - sent < CW_FRAME_DATA_MAX ? total - sent : CW_FRAME_DATA_MAX;
        codec_pattern(codec_begin(&p->codec, CW_FRAME_SEND_DATA, size), tag, sent, size);
    }
}

void peer_recv(struct peer *p, uint32_t req, uint64_t tag)
{
    codec_recv(&p->codec, CW_FRAME_RECV, req, tag, CODEC_ALL, CODEC_ALL);
}

bool peer_received(const struct peer *p, uint32_t req, uint64_t tag, size_t size)
{
    const struct codec_received *r = codec_inbox_find(&p->inbox, req);

    return r && r->event && r->size == size && codec_pattern_is(r->bytes, tag, size);
}

/* --- moving bytes ----------------------------------------------------------------------------- */
/* The bytes of a message that is forwarded to a relay are checked and dropped. */
static void hear_forwarded(struct peer *p, const struct codec_frame *frame)
{
    size_t fixed = cw_frame_fixed(frame->header.type);
    struct cw_forward forward;

    if (frame->header.type == CW_FRAME_FORWARD) {
        CU_ASSERT_TRUE(cw_forward_get(frame->body, &forward));
        p->forwarded_tag = forward.send.tag;
        p->forwarded_at = 0;
    }
    for (size_t i = fixed; i < frame->header.length; i++)
        CU_ASSERT_EQUAL(frame->body[i], codec_pattern_at(p->forwarded_tag, p->forwarded_at++));
    p->forwarded += frame->header.length - fixed;
}

static void hear(struct peer *p, const struct codec_frame *frame)
{
    struct cw_notice_body notice;
    struct cw_taken taken;
    uint64_t event = codec_event(frame);

    p->heard[frame->header.type]++;
    if (event)
        CU_ASSERT_EQUAL(event, ++p->event);
    if (frame->header.type == CW_FRAME_TAKEN && cw_taken_get(frame->body, &taken))
        p->taken = taken.event;
    if (frame->header.type == CW_FRAME_MESSAGE)
        CU_ASSERT_PTR_NOT_NULL(codec_inbox_take(&p->inbox, frame));
    if (frame->header.type == CW_FRAME_NOTICE &&
        cw_notice_get(frame->body, frame->header.length, &notice) && notice.code < SITE_NOTICES)
        p->notices[notice.code]++;
    if (frame->header.type == CW_FRAME_FORWARD || frame->header.type == CW_FRAME_FORWARD_DATA)
        hear_forwarded(p, frame);
    if (frame->header.type == CW_FRAME_ACK && p->kept.bytes)
        CU_ASSERT_EQUAL(cw_kept_acknowledge(&p->kept, cw_ack_get(frame->body)), CW_OK);
}

/* How many bytes it may read now, up to `most`. */
static size_t readable(const struct peer *p, size_t most)
{
    uint64_t left = p->read_stop - peer_received_bytes(p);

    if (p->stalled)
        return 0;
    return p->read_stop && left < most ? (size_t)left : most;
}

static void peer_read(struct peer *p)
{
    static uint8_t bytes[256 << 10];
    struct codec_frame frame;
    struct cw_err err;
    ssize_t n = cw_wire_recv(&p->wire, &(struct iovec){bytes, readable(p, sizeof(bytes))}, 1);
    int whole;

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        p->ended = true;
    if (n <= 0)
        return;
    p->codec.session.received += (size_t)n;
    codec_receive(&p->codec, bytes, (size_t)n);
    while ((whole = codec_next(&p->codec, &frame, &err)) > 0)
        hear(p, &frame);
    CU_ASSERT_EQUAL(whole, 0);
    if (cw_session_owes_ack(&p->codec.session, p->wire.mode == CW_WIRE_SOCKET))
        cw_ack_put(codec_begin(&p->codec, CW_FRAME_ACK, CW_ACK_SIZE), &p->codec.session);
}

/* The next bytes to write: those that are to be sent again, then those that are queued. Empty if it
 * must not write now. */
static struct iovec writable(const struct peer *p)
{
    size_t left = codec_left(&p->codec.out);
    struct iovec iov[2] = {{p->codec.out.at + p->codec.out.start, left}};
    size_t most = p->slow ? 1 : WRITE_MAX;

    if (p->kept.bytes && cw_kept_unsent(&p->kept, iov) == 0 && p->wire.mode == CW_WIRE_SOCKET &&
        cw_kept_room(&p->kept) < most)
        most = cw_kept_room(&p->kept);
    if (p->write_stop && p->write_stop - peer_sent(p) < most)
        most = (size_t)(p->write_stop - peer_sent(p));
    if (iov[0].iov_len > most)
        iov[0].iov_len = most;
    return iov[0];
}

/* `size` bytes of writable() were written. What goes through rings is kept by them. */
static void written(struct peer *p, size_t size)
{
    if (cw_kept_left(&p->kept) > 0) {
        cw_kept_sent(&p->kept, size);
    } else {
        if (p->kept.bytes && p->wire.mode == CW_WIRE_SOCKET) {
            cw_kept_put(&p->kept, p->codec.out.at + p->codec.out.start, size);
            cw_kept_sent(&p->kept, size);
        } else if (p->kept.bytes) {
            cw_kept_skip(&p->kept, size);
        }
        codec_take(&p->codec.out, size);
    }
    if (p->kept.bytes && p->wire.mode == CW_WIRE_RINGS)
        CU_ASSERT_EQUAL(cw_kept_acknowledge(&p->kept, peer_sent(p)), CW_OK);
}

/* A bounded part at a time, so that a test can stop in the middle of a message. */
static void peer_write(struct peer *p)
{
    struct iovec iov = writable(p);
    ssize_t n = cw_wire_send(&p->wire, &iov, 1);

    if (n > 0)
        written(p, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR && !p->kept.bytes)
        codec_take(&p->codec.out, codec_left(&p->codec.out)); /* the last frames may be read */
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        p->ended = true;
}

/* What poll() is to wait for. Returns whether it may wait. */
static bool pump_waits(struct peer *p, struct pollfd *fd)
{
    bool in = readable(p, 1) > 0;
    bool out = writable(p).iov_len > 0;

    *fd = (struct pollfd){.fd = -1};
    if (p->wire.fd < 0 || p->ended || !(in || out))
        return true;
    *fd = (struct pollfd){.fd = p->wire.fd, .events = cw_wire_sleep(&p->wire, in, out)};
    return fd->events;
}

/* poll() knows nothing of rings: bytes are moved whenever they can. */
static void pump_peer(struct peer *p, const struct pollfd *fd)
{
    bool rings = p->wire.mode == CW_WIRE_RINGS;

    if (fd->fd < 0)
        return;
    cw_wire_woke(&p->wire, fd->revents);
    if ((rings || fd->revents & POLLOUT) && writable(p).iov_len > 0)
        peer_write(p);
    if ((rings || fd->revents & (POLLIN | POLLHUP | POLLERR)) && readable(p, 1) > 0)
        peer_read(p);
}

static void pump_once(int wait_ms)
{
    static struct pollfd fds[SITE_PEERS];
    bool waits = true;

    for (int i = 0; i < peer_count; i++)
        waits &= pump_waits(&peers[i], &fds[i]);
    if (poll(fds, (nfds_t)peer_count, waits ? wait_ms : 0) < 0)
        return;
    for (int i = 0; i < peer_count; i++)
        pump_peer(&peers[i], &fds[i]);
}

bool pump_until(bool (*done)(void))
{
    int64_t end = clock_ms() + SITE_WAIT_MS;

    while (!done() && clock_ms() < end)
        pump_once(20);
    return done();
}

void pump_for(int ms)
{
    int64_t end = clock_ms() + ms;

    while (clock_ms() < end)
        pump_once(5);
}

/* --- exchanges of other ranks, which must not be disturbed ------------------------------------ */
static struct peer *awaited;
static size_t awaited_count;

static bool awaited_has_all(void)
{
    return awaited->inbox.complete >= awaited_count;
}

/* Returns whether the message arrives unchanged. */
static bool pass(uint32_t from, uint32_t to, uint32_t req, uint64_t size)
{
    peer_send(rank_of(from), to, 1, size);
    awaited = rank_of(to);
    awaited_count = req;
    return pump_until(awaited_has_all) && peer_received(awaited, req, 1, size);
}

void ping_pong(uint32_t a, uint32_t b, uint32_t count, uint64_t size)
{
    bool right = true;

    for (uint32_t i = 0; i < count && right; i++) {
        uint32_t req = (uint32_t)rank_of(a)->inbox.complete + 1;

        peer_recv(rank_of(b), req, 1);
        peer_recv(rank_of(a), req, 1);
        right = pass(a, b, req, size + i) && pass(b, a, req, size + i);
    }
    CU_ASSERT_TRUE(right);
}
