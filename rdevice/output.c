/* From the device to its relay. A message is written before the call returns: the relay never stops
 * reading a rank for long, and while we wait for room we take in what it has for us, so that two
 * ranks that send before they receive do not block each other. */
#include "common/clock.h"
#include "rdevice/clock.h"
#include "rdevice/device.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define VECTORS_MAX (DEVICE_PIECES_MAX + 2)

/* Room for a frame of this size in the buffer. */
static uint8_t *room(size_t size)
{
    if (DEVICE_OUT_BYTES - device.out_used < size)
        output_flush();
    return device.out + device.out_used;
}

static uint8_t *begin(uint8_t type, size_t buffered, size_t length)
{
    uint8_t *at = room(CW_FRAME_HEADER + buffered);

    cw_frame_begin(&device.session, at, type, (uint32_t)length);
    device.out_used += CW_FRAME_HEADER + buffered;
    return at + CW_FRAME_HEADER;
}

uint8_t *output_frame(uint8_t type, size_t size)
{
    device.out_urgent = true;
    return begin(type, size, size);
}

/* The pessimistic rule: what a rank did is seen by others only after its determinants are logged.
 * So they go before whatever else goes. */
void output_readings(void)
{
    size_t size;
    const uint8_t *bytes = clock_pending(&size);

    if (size == 0 || !device.logged)
        return;
    memcpy(begin(CW_FRAME_READINGS, size, size), bytes, size);
    clock_flushed();
}

void device_send_readings(void)
{
    if (device.logged && device.wire.fd >= 0) {
        output_readings();
        output_flush();
    } else {
        clock_flushed();
    }
}

void output_taken(uint64_t event)
{
    struct cw_taken taken = {.event = event, .clock = device.stats.polls};

    output_readings();
    cw_taken_put(begin(CW_FRAME_TAKEN, CW_TAKEN_SIZE, CW_TAKEN_SIZE), &taken);
}

uint8_t *output_act(uint8_t type, size_t size)
{
    device_enter();
    device.acts++;
    if (replay_act())
        return NULL;
    output_readings();
    return output_frame(type, size);
}

uint8_t *output_probe(void)
{
    output_readings();
    return output_frame(CW_FRAME_PROBE, CW_PROBE_SIZE);
}

/* Drops `size` written bytes from the front of the vectors; returns how many vectors are empty. */
static int advance(struct iovec *vectors, int count, size_t size)
{
    int done = 0;

    while (done < count && size >= vectors[done].iov_len)
        size -= vectors[done++].iov_len;
    if (done < count) {
        vectors[done].iov_base = (uint8_t *)vectors[done].iov_base + size;
        vectors[done].iov_len -= size;
    }
    return done;
}

static void write_all(struct iovec *vectors, int count)
{
    uint64_t since = 0;

    while (count > 0) {
        ssize_t n = cw_wire_send(&device.wire, vectors, count);

        if (n >= 0) {
            int done = advance(vectors, count, (size_t)n);

            vectors += done;
            count -= done;
            since = 0;
        } else if (errno == EAGAIN) {
            if (!since)
                since = cw_clock_ns();
            /* what the relay says while we repeat is taken when its time has come */
            if (device.replay.active || !input_read())
                wait_socket(true, since);
        } else if (errno != EINTR) {
            /* the relay may have said why before it closed */
            while (!device.replay.active && input_read())
                ;
            device_fatal(CW_REPORT_RELAY_LOST, "relay %s: connection lost: %s",
                         device.setup.address, cw_wire_error(errno));
        }
    }
}

/* Writes the buffer, then `pieces`. */
static void flush_with(const struct iovec *pieces, int count)
{
    struct iovec vectors[VECTORS_MAX] = {{.iov_base = device.out, .iov_len = device.out_used}};

    if (count)
        memcpy(vectors + 1, pieces, (size_t)count * sizeof(*pieces));
    write_all(vectors, count + 1);
    device.out_used = 0;
    device.out_urgent = false;
}

void output_flush(void)
{
    if (device.out_used)
        flush_with(NULL, 0);
}

/* The next at most `max` bytes of the vectors, as vectors; moves the start past them. */
static int cut(struct iovec **from, int *count, size_t max, struct iovec *to, size_t *size)
{
    int n = 0;

    *size = 0;
    while (*count > 0 && *size < max) {
        size_t take = (*from)->iov_len < max - *size ? (*from)->iov_len : max - *size;

        to[n++] = (struct iovec){.iov_base = (*from)->iov_base, .iov_len = take};
        *size += take;
        (*from)->iov_base = (uint8_t *)(*from)->iov_base + take;
        (*from)->iov_len -= take;
        if ((*from)->iov_len == 0) {
            (*from)++;
            (*count)--;
        }
    }
    return n;
}

static void put_small(const struct iovec *pieces, int count)
{
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len)
            memcpy(device.out + device.out_used, pieces[i].iov_base, pieces[i].iov_len);
        device.out_used += pieces[i].iov_len;
    }
}

/* Queues the header of a message with its first bytes to follow; or, when an earlier incarnation
 * has sent it, notes in device.out_skip how much of it the relay has. Returns false then. */
static bool put_send(uint32_t dst, uint32_t kind, uint64_t tag, uint32_t req, uint64_t total,
                     size_t first, size_t copied)
{
    struct cw_send send = {.dst = dst,
                           .kind = kind,
                           .req = req,
                           .tag = tag,
                           .total = total,
                           .clock = device.stats.polls};

    device_enter();
    device.acts++;
    device.out_skip = 0;
    if (replay_send(&send, &device.out_skip))
        return false;
    output_readings();
    room(CW_FRAME_HEADER + CW_SEND_SIZE + copied);
    cw_send_put(begin(CW_FRAME_SEND, CW_SEND_SIZE, CW_SEND_SIZE + first), &send);
    return true;
}

/* The bytes that the vectors hold, as SEND_DATA frames. */
static void put_rest(struct iovec *from, int count)
{
    struct iovec chunk[DEVICE_PIECES_MAX];
    size_t size;
    int n;

    while ((n = cut(&from, &count, CW_FRAME_DATA_MAX, chunk, &size)) > 0) {
        if (size == 0)
            continue; /* empty pieces at the end */
        begin(CW_FRAME_SEND_DATA, 0, size);
        flush_with(chunk, n);
    }
}

void output_message(uint32_t dst, uint32_t kind, uint64_t tag, uint32_t req,
                    const struct iovec *pieces, int count)
{
    struct iovec rest[DEVICE_PIECES_MAX];
    struct iovec chunk[DEVICE_PIECES_MAX];
    struct iovec *from = rest;
    size_t total = 0;
    size_t first;
    int done;
    int n;

    for (int i = 0; i < count; i++) {
        rest[i] = pieces[i];
        total += pieces[i].iov_len;
    }
    first = total < CW_FRAME_DATA_MAX ? total : CW_FRAME_DATA_MAX;
    if (!put_send(dst, kind, tag, req, total, first, total <= DEVICE_COPY_MAX ? total : 0)) {
        done = advance(rest, count, device.out_skip);
        put_rest(rest + done, count - done);
        return;
    }
    if (total <= DEVICE_COPY_MAX) {
        put_small(pieces, count);
        output_flush();
        return;
    }
    n = cut(&from, &count, CW_FRAME_DATA_MAX, chunk, &first);
    flush_with(chunk, n);
    put_rest(from, count);
}

void output_begin(uint32_t dst, uint32_t kind, uint64_t tag, uint32_t req, uint64_t total,
                  const void *first, size_t size)
{
    struct iovec piece = {.iov_base = (void *)first, .iov_len = size};

    if (put_send(dst, kind, tag, req, total, size, 0))
        flush_with(&piece, 1);
    else
        output_data(first, size);
}

void output_data(const void *bytes, size_t size)
{
    size_t skip = size < device.out_skip ? size : device.out_skip;
    struct iovec piece = {.iov_base = (uint8_t *)bytes + skip, .iov_len = size - skip};

    device.out_skip -= skip;
    put_rest(&piece, 1);
}
