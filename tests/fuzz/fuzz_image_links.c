/* What a checkpoint server says to a dispatcher (HELD, STORED, IMAGE, REFUSED) and to the copy of a
 * rank that stores an image (GO, STORED). The first byte chooses who listens, and whether the bytes
 * that follow come as they are, or are the bodies of right frames: a byte of type, one of length.
 */
#include "dispatcher/images/server_link.h"

/* The reader of answers is static there. */
#include "rdevice/store.c"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define BYTES_MAX 32768u /* fits into a socket */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

bool clock_pause(void)
{
    return true;
}

void clock_go_on(void)
{
}

/* --- a server ------------------------------------------------------------------------------------
 */

static const uint8_t types[] = {CW_FRAME_HELD,  CW_FRAME_HELD_END, CW_FRAME_STORED, CW_FRAME_GO,
                                CW_FRAME_IMAGE, CW_FRAME_REFUSED,  CW_FRAME_PUT};

/* Of each frame the type, a length if it is not fixed, and the body. Returns bytes in `to`. */
static size_t make_frames(const uint8_t *data, size_t size, uint8_t *to)
{
    struct cw_session session = {0};
    size_t used = 0;

    while (size >= 2) {
        uint8_t type = types[data[0] % sizeof(types)];
        size_t length = cw_frame_fixed(type) + (type == CW_FRAME_REFUSED ? data[1] % 64u : 0);

        data += 2;
        size -= 2;
        length = length < size ? length : size;
        if (used + CW_FRAME_HEADER + length > BYTES_MAX)
            break;
        cw_frame_begin(&session, to + used, type, (uint32_t)length);
        memcpy(to + used + CW_FRAME_HEADER, data, length);
        used += CW_FRAME_HEADER + length;
        data += length;
        size -= length;
    }
    return used;
}

/* Returns the end of a client, to which all of it has been said. */
static int say(const uint8_t *bytes, size_t size, int *other)
{
    int pair[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    must(size == 0 || send(pair[1], bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
    shutdown(pair[1], SHUT_WR);
    *other = pair[1];
    return pair[0];
}

/* --- who listens ---------------------------------------------------------------------------------
 */

static void on_stored(void *ctx, const struct cw_stored *stored)
{
    (void)ctx;
    must(stored->number > 0);
}

static void on_held_end(void *ctx)
{
    ++*(int *)ctx;
}

static void on_image(void *ctx)
{
    (void)ctx;
}

static void dispatcher(int fd, bool fetches)
{
    static const struct server_link_ops listening = {on_stored, on_held_end, on_stored, NULL};
    static const struct server_link_ops fetching = {NULL, NULL, on_stored, on_image};
    static struct server_link link;
    struct cw_session session = {0};
    struct cw_err err = {0};
    int ends = 0;

    server_link_begin(&link, fd, &session);
    must(server_link_tell(&link, CW_FRAME_FETCH, &(struct cw_image_ref){1, 2}, &err) == CW_OK);
    server_link_flush(&link);
    server_link_input(&link, fetches ? &fetching : &listening, &ends, &err);
    server_link_close(&link);
}

static void rank(int fd)
{
    static const struct image_order order = {.rank = 1, .ranks = 2, .incarnation = 1, .number = 3};
    struct store_place place = {.order = &order, .wire = {.fd = fd}};
    struct cw_err err = {0};
    uint32_t base = 2;

    if (announce(&place, 1 << 20, &base, &err) == CW_OK) {
        must(base == 2 || base == 0);
        store_finish(&place, fd, &err);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t made[BYTES_MAX];
    const uint8_t *bytes = data + 1;
    size_t count = size - 1;
    int other;
    int fd;

    if (size == 0 || size > BYTES_MAX)
        return 0;
    if (data[0] & 4) {
        count = make_frames(bytes, count, made);
        bytes = made;
    }
    fd = say(bytes, count, &other);
    if (data[0] & 2)
        rank(fd);
    else
        dispatcher(fd, data[0] & 1);
    close(other);
    return 0;
}
