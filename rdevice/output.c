/* From the device to its relay. A message is written before the call returns: the relay never stops
 * reading a rank for long, and while we wait for room we take in what it has for us, so that two
 * ranks that send before they receive do not block each other. */
#include "common/clock.h"
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
    return begin(type, size, size);
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
    struct msghdr msg = {.msg_iov = vectors, .msg_iovlen = (size_t)count};
    uint64_t since = 0;

    while (msg.msg_iovlen > 0) {
        ssize_t n = msg.msg_iovlen == 1 ? send(device.fd, msg.msg_iov->iov_base,
                                               msg.msg_iov->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                                        : sendmsg(device.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

        device.stats.syscalls++;
        if (n >= 0) {
            int done = advance(msg.msg_iov, (int)msg.msg_iovlen, (size_t)n);

            msg.msg_iov += done;
            msg.msg_iovlen -= (size_t)done;
            since = 0;
        } else if (errno == EAGAIN) {
            if (!since)
                since = cw_clock_ns();
            if (!input_read())
                wait_socket(true, since);
        } else if (errno != EINTR) {
            /* the relay may have said why before it closed */
            while (input_read())
                ;
            device_fatal(CW_REPORT_RELAY_LOST, "relay %s: connection lost: %s",
                         device.setup.address, strerror(errno));
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

static void put_send(uint32_t dst, uint32_t kind, uint64_t tag, uint32_t req, uint64_t total,
                     size_t first)
{
    struct cw_send send = {.dst = dst, .kind = kind, .req = req, .tag = tag, .total = total};

    cw_send_put(begin(CW_FRAME_SEND, CW_SEND_SIZE, CW_SEND_SIZE + first), &send);
}

void output_message(uint32_t dst, uint32_t kind, uint64_t tag, uint32_t req,
                    const struct iovec *pieces, int count)
{
    struct iovec rest[DEVICE_PIECES_MAX];
    struct iovec chunk[DEVICE_PIECES_MAX];
    struct iovec *from = rest;
    size_t total = 0;
    size_t size;
    int n;

    for (int i = 0; i < count; i++) {
        rest[i] = pieces[i];
        total += pieces[i].iov_len;
    }
    if (total <= DEVICE_COPY_MAX) {
        room(CW_FRAME_HEADER + CW_SEND_SIZE + total);
        put_send(dst, kind, tag, req, total, total);
        put_small(pieces, count);
        output_flush();
        return;
    }
    n = cut(&from, &count, CW_FRAME_DATA_MAX, chunk, &size);
    put_send(dst, kind, tag, req, total, size);
    flush_with(chunk, n);
    while ((n = cut(&from, &count, CW_FRAME_DATA_MAX, chunk, &size)) > 0) {
        begin(CW_FRAME_SEND_DATA, 0, size);
        flush_with(chunk, n);
    }
}

void output_begin(uint32_t dst, uint32_t kind, uint64_t tag, uint32_t req, uint64_t total,
                  const void *first, size_t size)
{
    struct iovec piece = {.iov_base = (void *)first, .iov_len = size};

    put_send(dst, kind, tag, req, total, size);
    flush_with(&piece, 1);
}

void output_data(const void *bytes, size_t size)
{
    struct iovec piece = {.iov_base = (void *)bytes, .iov_len = size};

    begin(CW_FRAME_SEND_DATA, 0, size);
    flush_with(&piece, 1);
}
