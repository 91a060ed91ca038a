/* A wire between a relay's side and a client's over a socket pair: through the socket, through
 * rings, and how the two sides come to terms. No descriptor stays open. */
#include "common/wire.h"
#include "tests/conformance/site.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

SUITE("wire");

#define HELLO "hello"
#define CHALLENGE "challenge"
#define MEMORY_BYTES 2101248 /* docs/protocol.md, "Rings" */
#define LOOKS 1000           /* in vain, after which nothing will come */
#define LONG 100000u         /* bytes; they fit a ring and the buffer of a socket */

static struct cw_wire relay;
static struct cw_wire client;
static int descriptors;
static uint64_t calls; /* of the relay's side */
static uint8_t bytes[2 * CW_RING_BYTES];

/* Two sides that know of nothing but the socket. */
static void start(void)
{
    int fds[2];

    descriptors = site_count_descriptors();
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    calls = 0;
    relay = (struct cw_wire){.fd = fds[0], .calls = &calls};
    client = (struct cw_wire){.fd = fds[1]};
}

/* Closes a side, and its socket. */
static void leave(struct cw_wire *wire)
{
    cw_wire_close(wire);
    if (wire->fd >= 0)
        close(wire->fd);
    wire->fd = -1;
}

static void finish(void)
{
    leave(&relay);
    leave(&client);
    CU_ASSERT_EQUAL(site_count_descriptors(), descriptors);
}

static ssize_t put(struct cw_wire *wire, const void *from, size_t size)
{
    return cw_wire_send(wire, &(struct iovec){(void *)from, size}, 1);
}

static ssize_t take(struct cw_wire *wire, void *to, size_t size)
{
    return cw_wire_recv(wire, &(struct iovec){to, size}, 1);
}

/* Nothing moved, for this reason. */
static bool fails(ssize_t n, int error)
{
    return n == -1 && errno == error;
}

static bool says(struct cw_wire *from, struct cw_wire *to, const char *text)
{
    char heard[64];
    ssize_t size = (ssize_t)strlen(text);

    return put(from, text, (size_t)size) == size && take(to, heard, sizeof(heard)) == size &&
           memcmp(heard, text, (size_t)size) == 0;
}

/* Bytes that wait on the socket itself. */
static int on_socket(const struct cw_wire *wire)
{
    int size = -1;

    CU_ASSERT_EQUAL(ioctl(wire->fd, FIONREAD, &size), 0);
    return size;
}

/* Looks until something else than EAGAIN comes. */
static ssize_t take_at_last(struct cw_wire *wire, void *to, size_t size)
{
    ssize_t n = -1;

    errno = EAGAIN;
    for (int i = 0; i < LOOKS && fails(n, EAGAIN); i++)
        n = take(wire, to, size);
    return n;
}

static void offer_and_want(void)
{
    start();
    CU_ASSERT_TRUE(cw_wire_offer(&relay));
    CU_ASSERT_EQUAL_FATAL(relay.mode, CW_WIRE_OFFERED);
    cw_wire_want(&client, NULL);
    CU_ASSERT_TRUE(says(&relay, &client, CHALLENGE));
}

/* Both use the rings, are awake, and nothing is on the socket. */
static void start_rings(void)
{
    offer_and_want();
    cw_wire_join(&client);
    CU_ASSERT_EQUAL_FATAL(client.mode, CW_WIRE_RINGS);
    CU_ASSERT_TRUE(says(&client, &relay, HELLO));
    CU_ASSERT_EQUAL_FATAL(relay.mode, CW_WIRE_RINGS);
    CU_ASSERT_EQUAL(on_socket(&relay), 1); /* the relay slept until the client had chosen */
    cw_wire_woke(&relay, true);
    CU_ASSERT_EQUAL(on_socket(&relay), 0);
}

/* --- through the socket ----------------------------------------------------------------------- */
TEST(socket_alone)
{
    struct iovec parts[2] = {{"hel", 3}, {"lo", 2}};

    start();
    CU_ASSERT_TRUE(fails(take(&relay, bytes, 10), EAGAIN));
    CU_ASSERT_TRUE(says(&client, &relay, HELLO));
    CU_ASSERT_TRUE(says(&relay, &client, CHALLENGE));
    CU_ASSERT_EQUAL(cw_wire_send(&client, parts, 2), 5);
    parts[0] = (struct iovec){bytes, 1};
    parts[1] = (struct iovec){bytes + 1, 100};
    CU_ASSERT_EQUAL(cw_wire_recv(&relay, parts, 2), 5);
    CU_ASSERT_EQUAL(memcmp(bytes, HELLO, 5), 0);
    CU_ASSERT_EQUAL(calls, 4);
    CU_ASSERT_EQUAL(cw_wire_sleep(&relay, true, false), POLLIN);
    CU_ASSERT_EQUAL(cw_wire_sleep(&relay, false, true), POLLOUT);
    CU_ASSERT_EQUAL(cw_wire_sleep(&relay, true, true), POLLIN | POLLOUT);
    finish();
}

TEST(end_of_a_socket)
{
    start();
    CU_ASSERT_EQUAL(put(&client, HELLO, 5), 5);
    leave(&client);
    CU_ASSERT_EQUAL(take(&relay, bytes, 100), 5);
    CU_ASSERT_EQUAL(take(&relay, bytes, 100), 0);
    CU_ASSERT_TRUE(fails(put(&relay, HELLO, 5), EPIPE));
    finish();
}

TEST(socket_that_is_full)
{
    ssize_t n = 0;

    start();
    for (int i = 0; i < LOOKS && n >= 0; i++)
        n = put(&client, bytes, sizeof(bytes));
    CU_ASSERT_TRUE(fails(n, EAGAIN));
    CU_ASSERT_TRUE(take(&relay, bytes, sizeof(bytes)) > 0);
    finish();
}

/* --- coming to terms -------------------------------------------------------------------------- */
TEST(offer_that_is_taken)
{
    start_rings();
    CU_ASSERT_EQUAL(relay.memory, 0);
    CU_ASSERT_EQUAL(client.memory, 0);
    CU_ASSERT_EQUAL(site_count_descriptors(), descriptors + 2); /* the two sockets */
    CU_ASSERT_TRUE(says(&relay, &client, "welcome"));
    CU_ASSERT_TRUE(says(&client, &relay, "thanks"));
    CU_ASSERT_EQUAL(on_socket(&relay) + on_socket(&client), 0);
    finish();
}

/* Its first bytes take the offer back; a descriptor that it does not ask for is nowhere. */
TEST(offer_that_is_not_wanted)
{
    start();
    CU_ASSERT_TRUE(cw_wire_offer(&relay));
    CU_ASSERT_TRUE(says(&relay, &client, CHALLENGE));
    CU_ASSERT_EQUAL(site_count_descriptors(), descriptors + 2);
    CU_ASSERT_EQUAL(cw_wire_sleep(&relay, true, false), POLLIN);
    CU_ASSERT_TRUE(fails(take(&relay, bytes, 10), EAGAIN));
    CU_ASSERT_EQUAL(relay.mode, CW_WIRE_OFFERED);
    CU_ASSERT_TRUE(says(&client, &relay, HELLO));
    CU_ASSERT_EQUAL(relay.mode, CW_WIRE_SOCKET);
    CU_ASSERT_PTR_NULL(relay.shared);
    CU_ASSERT_TRUE(says(&relay, &client, "welcome"));
    CU_ASSERT_TRUE(says(&client, &relay, "thanks"));
    finish();
}

TEST(offer_that_never_leaves)
{
    start();
    CU_ASSERT_TRUE(cw_wire_offer(&relay));
    CU_ASSERT_EQUAL(put(&client, HELLO, 5), 5);
    CU_ASSERT_EQUAL(take(&relay, bytes, 100), 5);
    CU_ASSERT_EQUAL(site_count_descriptors(), descriptors + 2);
    CU_ASSERT_TRUE(says(&relay, &client, CHALLENGE));
    finish();
}

TEST(no_descriptor_for_an_offer)
{
    struct rlimit limit;
    struct rlimit none;

    start();
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    CU_ASSERT_FALSE(cw_wire_offer(&relay));
    CU_ASSERT_EQUAL(errno, EMFILE);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CU_ASSERT_EQUAL(relay.mode, CW_WIRE_SOCKET);
    CU_ASSERT_TRUE(says(&relay, &client, CHALLENGE));
    CU_ASSERT_TRUE(says(&client, &relay, HELLO));
    finish();
}

TEST(wish_without_an_offer)
{
    start();
    cw_wire_want(&client, NULL);
    CU_ASSERT_TRUE(says(&relay, &client, CHALLENGE));
    cw_wire_join(&client);
    CU_ASSERT_EQUAL(client.mode, CW_WIRE_SOCKET);
    CU_ASSERT_TRUE(says(&client, &relay, HELLO));
    CU_ASSERT_TRUE(says(&relay, &client, "welcome"));
    finish();
}

TEST(client_that_leaves_before_it_joins)
{
    offer_and_want();
    CU_ASSERT_TRUE(client.memory > 0);
    leave(&client);
    CU_ASSERT_EQUAL(take(&relay, bytes, 100), 0);
    finish();
}

/* It goes on through the socket, which the relay takes for a refusal. */
TEST(place_that_is_taken)
{
    void *place = mmap(NULL, MEMORY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(place, MAP_FAILED);
    offer_and_want();
    client.place = place;
    cw_wire_join(&client);
    CU_ASSERT_EQUAL(client.mode, CW_WIRE_SOCKET);
    CU_ASSERT_TRUE(says(&client, &relay, HELLO));
    CU_ASSERT_EQUAL(relay.mode, CW_WIRE_SOCKET);
    CU_ASSERT_TRUE(says(&relay, &client, "welcome"));
    finish();
    munmap(place, MEMORY_BYTES);
}

TEST(place_that_is_chosen)
{
    void *place;

    offer_and_want();
    place = mmap(NULL, MEMORY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(place, MAP_FAILED);
    munmap(place, MEMORY_BYTES); /* nothing is there now */
    client.place = place;
    cw_wire_join(&client);
    CU_ASSERT_PTR_EQUAL(client.shared, place);
    CU_ASSERT_TRUE(says(&client, &relay, HELLO));
    finish();
}

TEST(memory_of_fixed_size)
{
    int fd;

    offer_and_want();
    fd = client.memory - 1;
    CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_END), MEMORY_BYTES);
    CU_ASSERT_TRUE(fails(ftruncate(fd, 0), EPERM));
    CU_ASSERT_TRUE(fails(ftruncate(fd, 2 * MEMORY_BYTES), EPERM));
    CU_ASSERT_EQUAL(lseek(fd, 0, SEEK_END), MEMORY_BYTES);
    CU_ASSERT_TRUE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
    finish();
}

/* --- a relay that offers something else ------------------------------------------------------- */

/* CHALLENGE, and so many copies of the descriptor. */
static void offer_by_hand(int fd, size_t count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    int fds[2] = {fd, fd};
    struct iovec iov = {CHALLENGE, strlen(CHALLENGE)};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = CMSG_SPACE(count * sizeof(int))};

    control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
    CU_ASSERT_EQUAL(sendmsg(relay.fd, &msg, 0), (ssize_t)iov.iov_len);
}

/* The client does not take it, keeps no descriptor, and goes on through the socket. */
static void offer_is_refused(int fd)
{
    start();
    offer_by_hand(fd, 1);
    cw_wire_want(&client, NULL);
    CU_ASSERT_EQUAL(take(&client, bytes, 100), (ssize_t)strlen(CHALLENGE));
    CU_ASSERT_TRUE(client.memory > 0);
    cw_wire_join(&client);
    CU_ASSERT_EQUAL(client.mode, CW_WIRE_SOCKET);
    CU_ASSERT_EQUAL(site_count_descriptors(), descriptors + 2);
    CU_ASSERT_TRUE(says(&client, &relay, HELLO));
    CU_ASSERT_TRUE(says(&relay, &client, "welcome"));
    finish();
}

TEST(memory_of_another_size)
{
    static const off_t sizes[] = {0, 4096, MEMORY_BYTES - 1, MEMORY_BYTES + 1};
    int fd = memfd_create("test", MFD_CLOEXEC);

    CU_ASSERT_TRUE_FATAL(fd >= 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        CU_ASSERT_EQUAL_FATAL(ftruncate(fd, sizes[i]), 0);
        offer_is_refused(fd);
    }
    close(fd);
}

/* The relay could make it smaller later. */
TEST(memory_that_can_shrink)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, MEMORY_BYTES), 0);
    offer_is_refused(fd);
    CU_ASSERT_EQUAL_FATAL(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    offer_is_refused(fd);
    close(fd);
}

TEST(offer_of_no_memory)
{
    int fds[2];

    CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
    offer_is_refused(fds[0]);
    close(fds[0]);
    close(fds[1]);
}

/* It keeps none that it does not use. */
TEST(offer_of_more)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    CU_ASSERT_TRUE_FATAL(fd >= 0);
    start();
    offer_by_hand(fd, 1);
    offer_by_hand(fd, 2);
    cw_wire_want(&client, NULL);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(take(&client, bytes, strlen(CHALLENGE)), (ssize_t)strlen(CHALLENGE));
    cw_wire_join(&client);
    CU_ASSERT_EQUAL(site_count_descriptors(), descriptors + 2);
    finish();
    close(fd);
}

/* --- through the rings ------------------------------------------------------------------------ */
static bool passes(struct cw_wire *from, struct cw_wire *to, uint64_t message)
{
    codec_pattern(bytes, message, 0, LONG);
    return put(from, bytes, LONG) == LONG && memset(bytes, 0, LONG) &&
           take(to, bytes, sizeof(bytes)) == LONG && codec_pattern_is(bytes, message, LONG);
}

/* Those that are awake need no system call. */
TEST(nothing_on_the_socket)
{
    uint64_t before;

    start_rings();
    before = calls;
    for (uint64_t i = 0; i < 30; i++)
        CU_ASSERT_TRUE(passes(&client, &relay, 2 * i) && passes(&relay, &client, 2 * i + 1));
    CU_ASSERT_TRUE(fails(take(&relay, bytes, 10), EAGAIN));
    CU_ASSERT_EQUAL(calls, before);
    CU_ASSERT_EQUAL(on_socket(&relay) + on_socket(&client), 0);
    finish();
}

TEST(several_pieces)
{
    struct iovec parts[3] = {{"he", 2}, {"", 0}, {"llo", 3}};
    char heard[8];

    start_rings();
    CU_ASSERT_EQUAL(cw_wire_send(&client, parts, 3), 5);
    parts[0] = (struct iovec){heard, 3};
    parts[1] = (struct iovec){heard + 3, 5};
    CU_ASSERT_EQUAL(cw_wire_recv(&relay, parts, 2), 5);
    CU_ASSERT_EQUAL(memcmp(heard, HELLO, 5), 0);
    finish();
}

/* One byte for a reader that sleeps, however much is written. */
static void sleeping_reader(struct cw_wire *sleeper, struct cw_wire *other)
{
    start_rings();
    CU_ASSERT_EQUAL(cw_wire_sleep(sleeper, true, false), POLLIN);
    CU_ASSERT_EQUAL(on_socket(sleeper), 0);
    CU_ASSERT_EQUAL(put(other, HELLO, 5), 5);
    CU_ASSERT_EQUAL(put(other, HELLO, 5), 5);
    CU_ASSERT_EQUAL(on_socket(sleeper), 1);
    cw_wire_woke(sleeper, true);
    CU_ASSERT_EQUAL(on_socket(sleeper), 0);
    CU_ASSERT_EQUAL(cw_wire_sleep(sleeper, true, false), 0); /* there is something */
    cw_wire_woke(sleeper, false);
    CU_ASSERT_EQUAL(put(other, HELLO, 5), 5);
    CU_ASSERT_EQUAL(on_socket(sleeper), 0); /* it is awake */
    CU_ASSERT_EQUAL(take(sleeper, bytes, 100), 15);
    finish();
}

TEST(reader_that_sleeps)
{
    sleeping_reader(&relay, &client);
    sleeping_reader(&client, &relay);
}

static void sleeping_writer(struct cw_wire *sleeper, struct cw_wire *other)
{
    start_rings();
    CU_ASSERT_EQUAL(cw_wire_sleep(sleeper, false, true), 0); /* there is room */
    cw_wire_woke(sleeper, false);
    CU_ASSERT_EQUAL(put(sleeper, bytes, sizeof(bytes)), CW_RING_BYTES);
    CU_ASSERT_TRUE(fails(put(sleeper, bytes, 1), EAGAIN));
    CU_ASSERT_EQUAL(cw_wire_sleep(sleeper, true, true), POLLIN);
    CU_ASSERT_EQUAL(take(other, bytes, 10), 10);
    CU_ASSERT_EQUAL(take(other, bytes, 10), 10);
    CU_ASSERT_EQUAL(on_socket(sleeper), 1);
    CU_ASSERT_EQUAL(cw_wire_sleep(sleeper, true, true), 0);
    cw_wire_woke(sleeper, true);
    CU_ASSERT_EQUAL(on_socket(sleeper), 0);
    CU_ASSERT_EQUAL(put(sleeper, bytes, 100), 20);
    finish();
}

TEST(writer_that_sleeps)
{
    sleeping_writer(&relay, &client);
    sleeping_writer(&client, &relay);
}

/* The receiver is woken by what passes, the sender by what is released. The client is both here. */
/* A client computes until it says that it waits, and again when there is something for it; one that
 * talks never does. */
TEST(client_that_waits)
{
    start_rings();
    CU_ASSERT_TRUE(cw_wire_computes(&relay));
    cw_wire_wait(&client, true, false);
    CU_ASSERT_FALSE(cw_wire_computes(&relay));
    CU_ASSERT_EQUAL(put(&relay, HELLO, 5), 5);
    CU_ASSERT_TRUE(cw_wire_computes(&relay));
    CU_ASSERT_EQUAL(take(&client, bytes, 100), 5);
    CU_ASSERT_TRUE(cw_wire_computes(&relay));
    cw_wire_wait(&client, true, false);
    CU_ASSERT_FALSE(cw_wire_computes(&relay));
    cw_wire_wait(&client, false, false);
    CU_ASSERT_TRUE(cw_wire_computes(&relay));
    cw_wire_wait(&client, false, true);
    CU_ASSERT_FALSE(cw_wire_computes(&relay));
    CU_ASSERT_TRUE(cw_wire_other_cpu(&relay) >= 0);
    finish();
}

/* Who writes learns that it has woken the other side. */
TEST(writer_that_woke)
{
    start_rings();
    client.rang = false;
    CU_ASSERT_EQUAL(put(&client, HELLO, 5), 5);
    CU_ASSERT_FALSE(client.rang);
    CU_ASSERT_EQUAL(take(&relay, bytes, 100), 5);
    CU_ASSERT_EQUAL(cw_wire_sleep(&relay, true, false), POLLIN);
    CU_ASSERT_EQUAL(put(&client, HELLO, 5), 5);
    CU_ASSERT_TRUE(client.rang);
    cw_wire_woke(&relay, true);
    finish();
}

TEST(wakes_by_passing)
{
    start_rings();
    CU_ASSERT_EQUAL(put(&client, bytes, sizeof(bytes)), CW_RING_BYTES);
    CU_ASSERT_EQUAL(cw_wire_sleep(&client, true, false), POLLIN);
    cw_wire_pass(&relay, &relay, LONG);
    CU_ASSERT_EQUAL(on_socket(&client), 1);
    cw_wire_woke(&client, true);
    CU_ASSERT_EQUAL(cw_wire_sleep(&client, false, true), POLLIN);
    cw_wire_pass(&relay, NULL, LONG);
    CU_ASSERT_EQUAL(on_socket(&client), 0);
    cw_wire_release(&relay, 0);
    CU_ASSERT_EQUAL(on_socket(&client), 1);
    cw_wire_woke(&client, true);
    CU_ASSERT_EQUAL(put(&client, bytes, sizeof(bytes)), 2 * LONG);
    CU_ASSERT_EQUAL(take(&client, bytes, sizeof(bytes)), LONG);
    finish();
}

/* Who never reads the socket: writing to it must not wait, or fail. */
TEST(bells_that_nobody_hears)
{
    start_rings();
    for (int i = 0; i < 50 * LOOKS; i++) {
        CU_ASSERT_EQUAL_FATAL(cw_wire_sleep(&client, true, false), POLLIN);
        CU_ASSERT_EQUAL_FATAL(put(&relay, HELLO, 5), 5);
        CU_ASSERT_EQUAL_FATAL(take(&client, bytes, 10), 5);
    }
    CU_ASSERT_TRUE(on_socket(&client) > 1);
    finish();
}

/* --- the end of rings ------------------------------------------------------------------------- */

/* What was written before the end is received, then the end. */
static void one_leaves(struct cw_wire *leaver, struct cw_wire *other)
{
    start_rings();
    codec_pattern(bytes, 9, 0, LONG);
    CU_ASSERT_EQUAL(put(leaver, bytes, LONG), LONG);
    leave(leaver);
    memset(bytes, 0, LONG);
    cw_wire_woke(other, true); /* it knows of the end before it reads */
    CU_ASSERT_EQUAL(cw_wire_sleep(other, true, false), 0);
    CU_ASSERT_EQUAL(take(other, bytes, LONG / 2), LONG / 2);
    CU_ASSERT_EQUAL(take(other, bytes + LONG / 2, LONG), LONG / 2);
    CU_ASSERT_TRUE(codec_pattern_is(bytes, 9, LONG));
    CU_ASSERT_EQUAL(take(other, bytes, 10), 0);
    CU_ASSERT_EQUAL(take(other, bytes, 10), 0);
    CU_ASSERT_TRUE(fails(put(other, HELLO, 5), EPIPE));
    finish();
}

TEST(end_after_writing)
{
    one_leaves(&client, &relay);
    one_leaves(&relay, &client);
}

/* Also by one that never asks poll(). */
TEST(end_that_is_found_by_looking)
{
    start_rings();
    CU_ASSERT_EQUAL(put(&client, HELLO, 5), 5);
    leave(&client);
    CU_ASSERT_EQUAL(take_at_last(&relay, bytes, 100), 5);
    CU_ASSERT_EQUAL(take_at_last(&relay, bytes, 100), 0);
    finish();
}

/* The client says all it has to say before the relay has looked once. */
TEST(client_that_joins_and_leaves)
{
    offer_and_want();
    cw_wire_join(&client);
    CU_ASSERT_EQUAL(put(&client, HELLO, 5), 5);
    leave(&client);
    CU_ASSERT_EQUAL(take(&relay, bytes, 100), 5);
    CU_ASSERT_EQUAL(take_at_last(&relay, bytes, 100), 0);
    finish();
}

/* --- positions that cannot be ----------------------------------------------------------------- */
static void written_by_a_liar(struct cw_wire *liar, struct cw_wire *other, uint64_t written)
{
    start_rings();
    atomic_store(&liar->out.shared->written, written);
    CU_ASSERT_EQUAL(cw_wire_sleep(other, true, false), 0);
    CU_ASSERT_TRUE(fails(take(other, bytes, sizeof(bytes)), EPROTO));
    CU_ASSERT_TRUE(fails(take(other, bytes, sizeof(bytes)), EPROTO));
    finish();
}

static void taken_by_a_liar(struct cw_wire *liar, struct cw_wire *other, uint64_t taken)
{
    start_rings();
    atomic_store(&liar->in.shared->taken, taken);
    CU_ASSERT_TRUE(fails(put(other, HELLO, 5), EPROTO));
    CU_ASSERT_TRUE(fails(put(other, HELLO, 5), EPROTO));
    finish();
}

TEST(positions_that_cannot_be)
{
    static const uint64_t wrong[] = {2 * CW_RING_BYTES, 1ull << 40, 1ull << 63};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        written_by_a_liar(&client, &relay, wrong[i]);
        written_by_a_liar(&relay, &client, wrong[i]);
        taken_by_a_liar(&client, &relay, wrong[i]);
        taken_by_a_liar(&relay, &client, wrong[i]);
    }
    written_by_a_liar(&client, &relay, 1); /* less than the relay has taken */
}

/* --- rings that break, and are made anew ------------------------------------------------------ */

/* What `out` has written and the other side has not taken is this many bytes of the pattern's end.
 */
static void unread_is(struct cw_wire *out, size_t from, size_t size)
{
    struct iovec iov[2];
    int count = cw_wire_unread(out, iov);
    size_t all = 0;

    CU_ASSERT_TRUE(count >= 0 && count <= 2);
    for (int i = 0; i < count; i++) {
        CU_ASSERT_TRUE(iov[i].iov_len > 0);
        CU_ASSERT_EQUAL(memcmp(iov[i].iov_base, bytes + from + all, iov[i].iov_len), 0);
        all += iov[i].iov_len;
    }
    CU_ASSERT_EQUAL(all, size);
}

static void unread_of(struct cw_wire *writer, struct cw_wire *reader)
{
    static uint8_t taken[CW_RING_BYTES];

    start_rings();
    codec_pattern(bytes, 3, 0, sizeof(bytes));
    unread_is(writer, 0, 0);
    CU_ASSERT_EQUAL(put(writer, bytes, 1000), 1000);
    unread_is(writer, 0, 1000);
    CU_ASSERT_EQUAL(take(reader, taken, 900), 900);
    unread_is(writer, 900, 100);
    CU_ASSERT_EQUAL(put(writer, bytes + 1000, sizeof(bytes) - 1000), CW_RING_BYTES - 100);
    unread_is(writer, 900, CW_RING_BYTES); /* around the end of the memory */
    leave(reader);
    unread_is(writer, 900, CW_RING_BYTES); /* also when nobody has the other side any more */
    finish();
}

TEST(bytes_that_were_not_taken)
{
    struct iovec iov[2];

    unread_of(&client, &relay);
    unread_of(&relay, &client);
    start();
    CU_ASSERT_EQUAL(put(&relay, HELLO, 5), 5);
    CU_ASSERT_EQUAL(cw_wire_unread(&relay, iov), 0); /* of a socket it is not known */
    finish();
}

TEST(unread_of_a_liar)
{
    static const uint64_t wrong[] = {1000, 2 * CW_RING_BYTES, 1ull << 63};
    struct iovec iov[2];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        start_rings();
        CU_ASSERT_EQUAL(put(&relay, bytes, 999), 999);
        atomic_store(&client.in.shared->taken, wrong[i]);
        CU_ASSERT_EQUAL(cw_wire_unread(&relay, iov), -1);
        finish();
    }
}

/* The next connection of the same session has rings of its own, at the same place. */
TEST(rings_again_at_the_same_place)
{
    void *place = NULL;
    int fds[2];

    start();
    for (int i = 0; i < 3; i++) {
        /* reserved, so that the relay's side, in this process too, does not take it */
        place = mmap(place, MEMORY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CU_ASSERT_PTR_NOT_EQUAL_FATAL(place, MAP_FAILED);
        CU_ASSERT_TRUE(cw_wire_offer(&relay));
        munmap(place, MEMORY_BYTES);
        cw_wire_want(&client, place);
        CU_ASSERT_TRUE(says(&relay, &client, CHALLENGE));
        cw_wire_join(&client);
        CU_ASSERT_EQUAL_FATAL(client.mode, CW_WIRE_RINGS);
        CU_ASSERT_PTR_EQUAL(client.shared, place);
        CU_ASSERT_TRUE(says(&client, &relay, HELLO) && says(&relay, &client, HELLO));
        CU_ASSERT_EQUAL(put(&relay, HELLO, 5), 5);
        leave(&relay);
        CU_ASSERT_EQUAL(take_at_last(&client, bytes, 3), 3);
        CU_ASSERT_EQUAL(take_at_last(&client, bytes, 3), 2);
        CU_ASSERT_EQUAL(take_at_last(&client, bytes, 3), 0);
        leave(&client);
        CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        relay.fd = fds[0];
        client.fd = fds[1];
        CU_ASSERT_TRUE(says(&client, &relay, HELLO)); /* nothing is left of the old rings */
    }
    finish();
}
