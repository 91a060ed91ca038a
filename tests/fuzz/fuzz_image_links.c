/* What a checkpoint server says to a dispatcher (HELD, STORED, IMAGE, REFUSED) and to the copy of a
 * rank that stores an image (GO, STORED). The first byte chooses who listens, and whether the bytes
 * that follow come as they are, or are the bodies of right frames: a byte of type, one of length.
 */
/* The readers of frames are static there. */
#include "dispatcher/servers/servers.c"
#include "rdevice/store.c"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/socket.h>

#define BYTES_MAX 32768u /* fits into a socket */

bool inputs_pause(bool paused)
{
    return paused;
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

static void on_opens(void *ctx, uint32_t number)
{
    (void)ctx;
    must(number == 0);
}

static void on_held(void *ctx, const struct cw_stored *held)
{
    (void)ctx;
    (void)held;
}

static void on_stored(void *ctx, uint32_t number, const struct cw_stored *stored)
{
    (void)stored;
    on_opens(ctx, number);
}

static void on_lost(void *ctx, uint32_t number, const struct cw_err *err)
{
    must(err->code && err->text[0]);
    on_opens(ctx, number);
}

static void on_fetched(void *ctx, uint32_t rank, uint32_t number, int fd, const struct cw_err *err)
{
    (void)ctx;
    must(rank == 1 && number == 2 && (fd >= 0 || err->code));
    if (fd >= 0)
        close(fd);
}

/* Its session, or a fetch. */
static void dispatcher(int fd, bool fetches)
{
    static const struct servers_events events = {on_opens,  on_held, on_opens,
                                                 on_stored, on_lost, on_fetched};
    static const char *const addresses[] = {"unix:/nowhere"};
    static struct server server;
    static struct fetch fetch;
    struct cw_err err = {0};
    struct servers all = {
        .config = {.events = &events, .ranks = 2, .addresses = addresses, .count = 1},
        .count = 1,
        .server = &server};
    struct cw_dial_result result = {.fd = fd};

    all.config.loop = loop_new(&err);
    server = (struct server){.of = &all};
    fetch = (struct fetch){.of = &all, .used = true, .rank = 1, .number = 2};
    must(party_init(&server.party, all.config.loop, &server_kind, &server, 4096, &err) == CW_OK);
    must(party_init(&fetch.party, all.config.loop, &fetch_kind, &fetch, 64, &err) == CW_OK);
    fetch.party.exactly = true;
    if (fetches)
        open_fetch(&fetch, &result);
    else
        open_session(&server, &result);
    party_hear(fetches ? &fetch.party : &server.party);
    party_free(&server.party);
    party_free(&fetch.party);
    loop_free(all.config.loop);
}

static void rank(int fd)
{
    static const struct image_order order = {.rank = 1, .ranks = 2, .incarnation = 1, .number = 3};
    struct store_place place = {.order = &order, .count = 1, .at = {{.wire = {.fd = fd}}}};
    struct cw_err err = {0};
    uint32_t base = 2;

    if (announce(&place, &place.at[0], 1 << 20, &base, &err) == CW_OK) {
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
