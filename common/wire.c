#include "common/wire.h"
#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_EVERY 64 /* reads of an empty ring before one of the socket, for its end */
#define BELLS 64      /* bytes that wake, read at once */

/* The memory; all zero at first. */
struct cw_wire_shared {
    struct cw_ring_shared to_relay;
    struct cw_ring_shared to_client;
    _Atomic uint32_t joined; /* by the opener: the rings are used */
};

#define HEADER_BYTES                                                                               \
    CW_WIRE_HEADER_BYTES /* of the struct; the bytes of both rings follow, to_relay first */
#define MEMORY_BYTES CW_WIRE_SHARED_BYTES
_Static_assert(sizeof(struct cw_wire_shared) <= HEADER_BYTES, "the header has its page");

/* docs/protocol.md, "Rings": both sides may be of different builds */
_Static_assert(offsetof(struct cw_ring_shared, writer_sleeps) == 8, "as in the protocol");
_Static_assert(offsetof(struct cw_ring_shared, taken) == 64, "as in the protocol");
_Static_assert(offsetof(struct cw_ring_shared, reader_sleeps) == 72, "as in the protocol");
_Static_assert(offsetof(struct cw_wire_shared, to_client) == 128, "as in the protocol");
_Static_assert(offsetof(struct cw_wire_shared, joined) == 256, "as in the protocol");
_Static_assert(offsetof(struct cw_ring_shared, reader_cpu) == 76, "as in the protocol");
_Static_assert(offsetof(struct cw_ring_shared, reader_waits) == 80, "as in the protocol");
_Static_assert(offsetof(struct cw_ring_shared, reader_talks) == 88, "as in the protocol");
_Static_assert(MEMORY_BYTES == 2101248, "as in the protocol");
_Static_assert((CW_RING_BYTES & (CW_RING_BYTES - 1)) == 0, "a power of two");

static void count(struct cw_wire *wire)
{
    if (wire->calls)
        ++*wire->calls;
}

static void drop_memory(struct cw_wire *wire)
{
    if (wire->memory)
        close(wire->memory - 1);
    wire->memory = 0;
}

void cw_wire_close(struct cw_wire *wire)
{
    drop_memory(wire);
    if (wire->shared)
        munmap(wire->shared, MEMORY_BYTES);
    *wire = (struct cw_wire){.fd = wire->fd, .rang = wire->rang, .calls = wire->calls};
}

int cw_wire_unread(struct cw_wire *wire, struct iovec iov[2])
{
    int iov_count;

    if (wire->mode != CW_WIRE_RINGS)
        return 0;
    iov_count = cw_ring_unread(&wire->out, iov);
    return wire->out.broken ? -1 : iov_count;
}

/* --- offering and accepting rings ------------------------------------------------------------- */
static bool map(struct cw_wire *wire)
{
    void *at = mmap(wire->place, MEMORY_BYTES, PROT_READ | PROT_WRITE,
                    MAP_SHARED | (wire->place ? MAP_FIXED_NOREPLACE : 0), wire->memory - 1, 0);

    if (at == MAP_FAILED)
        return false;
    wire->shared = at;
    return true;
}

static void use(struct cw_wire *wire, struct cw_ring *to_relay, struct cw_ring *to_client)
{
    uint8_t *bytes = (uint8_t *)wire->shared + HEADER_BYTES;

    *to_relay = (struct cw_ring){.shared = &wire->shared->to_relay, .bytes = bytes};
    *to_client =
        (struct cw_ring){.shared = &wire->shared->to_client, .bytes = bytes + CW_RING_BYTES};
}

/* Sealed: an opener that could shrink it could kill the relay. */
static bool make_memory(struct cw_wire *wire)
{
    int fd = memfd_create("causeway-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return false;
    wire->memory = fd + 1;
    return ftruncate(fd, MEMORY_BYTES) == 0 &&
           fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

bool cw_wire_offer(struct cw_wire *wire)
{
    if (!make_memory(wire) || !map(wire)) {
        int error = errno;

        cw_wire_close(wire);
        errno = error;
        return false;
    }
    use(wire, &wire->in, &wire->out);
    /* the relay sleeps until the opener has accepted or declined */
    atomic_store_explicit(&wire->in.shared->reader_sleeps, 1, memory_order_relaxed);
    wire->of_relay = true;
    wire->mode = CW_WIRE_OFFERED;
    return true;
}

void cw_wire_want(struct cw_wire *wire, void *place)
{
    wire->place = place;
    wire->mode = CW_WIRE_WANTED;
}

/* Memory that is too small, or that can shrink, would kill us when we read beyond its end. */
static bool is_memory(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & F_SEAL_SHRINK) && lseek(fd, 0, SEEK_END) == (off_t)MEMORY_BYTES;
}

void cw_wire_join(struct cw_wire *wire)
{
    if (!wire->memory || !is_memory(wire->memory - 1) || !map(wire)) {
        cw_wire_close(wire);
        return;
    }
    drop_memory(wire);
    madvise(wire->shared, MEMORY_BYTES, MADV_DONTFORK); /* a child must not write there */
    use(wire, &wire->out, &wire->in);
    wire->mode = CW_WIRE_RINGS;
    atomic_store_explicit(&wire->shared->joined, 1, memory_order_release);
}

/* --- through the socket ----------------------------------------------------------------------- */
static ssize_t socket_recv(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iov_count};

    count(wire);
    return iov_count == 1 ? recv(wire->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT)
                          : recvmsg(wire->fd, &msg, MSG_DONTWAIT);
}

static ssize_t socket_send(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iov_count};

    count(wire);
    return iov_count == 1 ? send(wire->fd, iov->iov_base, iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                          : sendmsg(wire->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

union one_descriptor {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static ssize_t send_offer(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    union one_descriptor control = {0};
    struct msghdr msg = {.msg_iov = (struct iovec *)iov,
                         .msg_iovlen = (size_t)iov_count,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};
    int fd = wire->memory - 1;
    ssize_t n;

    control.header = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    count(wire);
    n = sendmsg(wire->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0)
        drop_memory(wire);
    return n;
}

static ssize_t recv_offer(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    union one_descriptor control = {0};
    struct msghdr msg = {.msg_iov = (struct iovec *)iov,
                         .msg_iovlen = (size_t)iov_count,
                         .msg_control = &control,
                         .msg_controllen = CMSG_LEN(sizeof(int))}; /* not two */
    ssize_t n;
    int fd;

    count(wire);
    n = recvmsg(wire->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n > 0 && control.header.cmsg_level == SOL_SOCKET &&
        control.header.cmsg_type == SCM_RIGHTS && control.header.cmsg_len == CMSG_LEN(sizeof(fd))) {
        drop_memory(wire);
        memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
        wire->memory = fd + 1;
    }
    return n;
}

/* --- through the rings ------------------------------------------------------------------------ */
static void ring_bell(struct cw_wire *wire)
{
    count(wire);
    wire->rang = true;
    /* no room: bells are there already; an error: the end, which the next receive sees */
    (void)!send(wire->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Reads the bells, and notes the end. */
static void look_at_socket(struct cw_wire *wire)
{
    char bells[BELLS];
    ssize_t n;

    wire->misses = 0;
    count(wire);
    n = recv(wire->fd, bells, sizeof(bells), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        wire->ended = true;
}

static ssize_t nothing(int error)
{
    errno = error;
    return -1;
}

static size_t take(struct cw_ring *ring, const struct iovec *iov, int iov_count)
{
    size_t all = 0;

    for (int i = 0; i < iov_count; i++) {
        size_t n = cw_ring_take(ring, iov[i].iov_base, iov[i].iov_len);

        all += n;
        if (n < iov[i].iov_len)
            break;
    }
    return all;
}

static void tell_cpu(struct cw_wire *wire)
{
    _Atomic uint32_t *told = &wire->in.shared->reader_cpu;
    uint32_t cpu = (uint32_t)cw_cpu() + 1;

    if (atomic_load_explicit(told, memory_order_relaxed) != cpu)
        atomic_store_explicit(told, cpu, memory_order_relaxed);
}

int cw_wire_other_cpu(const struct cw_wire *wire)
{
    if (wire->mode != CW_WIRE_RINGS)
        return -1;
    return (int)atomic_load_explicit(&wire->out.shared->reader_cpu, memory_order_relaxed) - 1;
}

void cw_wire_wait(struct cw_wire *wire, bool waits, bool talks)
{
    if (wire->mode != CW_WIRE_RINGS)
        return;
    if (waits)
        tell_cpu(wire);
    atomic_store_explicit(&wire->in.shared->reader_talks, talks, memory_order_relaxed);
    atomic_store_explicit(&wire->in.shared->reader_waits, waits ? wire->in.at + 1 : 0,
                          memory_order_relaxed);
}

bool cw_wire_computes(const struct cw_wire *wire)
{
    const struct cw_ring_shared *client = wire->out.shared;

    return atomic_load_explicit(&client->reader_waits, memory_order_relaxed) != wire->out.at + 1 &&
           !atomic_load_explicit(&client->reader_talks, memory_order_relaxed);
}

static ssize_t rings_recv(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    bool ended = wire->ended;
    size_t n = take(&wire->in, iov, iov_count);

    if (n > 0) {
        wire->misses = 0;
        if (wire->of_relay)
            tell_cpu(wire);
        if (!wire->holds && cw_ring_wakes_writer(&wire->in))
            ring_bell(wire);
        return (ssize_t)n;
    }
    if (wire->in.broken)
        return nothing(EPROTO);
    /* the ring was read after the end was noted: all that was written before the end is taken */
    if (ended)
        return 0;
    if (++wire->misses >= LOOK_EVERY)
        look_at_socket(wire);
    return nothing(EAGAIN);
}

static ssize_t rings_send(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    size_t all = 0;
    bool full = false;

    if (wire->ended)
        return nothing(EPIPE);
    for (int i = 0; i < iov_count && !full; i++) {
        size_t n = cw_ring_put(&wire->out, iov[i].iov_base, iov[i].iov_len);

        all += n;
        full = n < iov[i].iov_len;
    }
    if (wire->out.broken)
        return nothing(EPROTO);
    if (full && all == 0)
        return nothing(EAGAIN);
    if (cw_ring_wakes_reader(&wire->out))
        ring_bell(wire);
    return (ssize_t)all;
}

void cw_wire_pass(struct cw_wire *from, struct cw_wire *to, size_t size)
{
    cw_ring_pass(&from->in, to ? &to->out : NULL, size);
    from->misses = 0;
    if (to && cw_ring_wakes_reader(&to->out))
        ring_bell(to);
}

void cw_wire_hold(struct cw_wire *wire)
{
    wire->holds = true;
    wire->in.holds = true;
}

void cw_wire_release(struct cw_wire *from, size_t held)
{
    if (cw_ring_released(&from->in) == from->in.at - held)
        return;
    tell_cpu(from);
    cw_ring_release(&from->in, held);
    if (cw_ring_wakes_writer(&from->in))
        ring_bell(from);
}

/* --- either ----------------------------------------------------------------------------------- */
static bool has_joined(struct cw_wire *wire)
{
    if (!atomic_load_explicit(&wire->shared->joined, memory_order_acquire))
        return false;
    wire->mode = CW_WIRE_RINGS;
    return true;
}

/* Bytes that come before the opener has joined are frames: it has declined. */
static ssize_t choose(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    ssize_t n;

    if (has_joined(wire))
        return rings_recv(wire, iov, iov_count);
    n = socket_recv(wire, iov, iov_count);
    if (n > 0 && has_joined(wire)) /* it was a bell */
        return rings_recv(wire, iov, iov_count);
    if (n > 0)
        cw_wire_close(wire);
    return n;
}

ssize_t cw_wire_recv(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    switch (wire->mode) {
    case CW_WIRE_RINGS:
        return rings_recv(wire, iov, iov_count);
    case CW_WIRE_OFFERED:
        return choose(wire, iov, iov_count);
    case CW_WIRE_WANTED:
        return recv_offer(wire, iov, iov_count);
    case CW_WIRE_SOCKET:
        break;
    }
    return socket_recv(wire, iov, iov_count);
}

ssize_t cw_wire_send(struct cw_wire *wire, const struct iovec *iov, int iov_count)
{
    if (wire->mode == CW_WIRE_RINGS)
        return rings_send(wire, iov, iov_count);
    if (wire->mode == CW_WIRE_OFFERED && wire->memory)
        return send_offer(wire, iov, iov_count);
    return socket_send(wire, iov, iov_count);
}

const char *cw_wire_error(int error)
{
    return error == EPROTO ? "the positions in the rings that it shares with us make no sense"
                           : strerror(error);
}

short cw_wire_sleep(struct cw_wire *wire, bool in, bool out)
{
    if (wire->mode != CW_WIRE_RINGS)
        return (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
    if (wire->ended || (in && !cw_ring_reader_sleeps(&wire->in)) ||
        (out && !cw_ring_writer_sleeps(&wire->out)))
        return 0;
    return POLLIN;
}

void cw_wire_woke(struct cw_wire *wire, bool readable)
{
    if (wire->mode != CW_WIRE_RINGS)
        return;
    atomic_store_explicit(&wire->in.shared->reader_sleeps, 0, memory_order_relaxed);
    atomic_store_explicit(&wire->out.shared->writer_sleeps, 0, memory_order_relaxed);
    if (readable)
        look_at_socket(wire);
}
