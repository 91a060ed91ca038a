#include "rdevice/store.h"
#include "common/hello.h"
#include "common/secret.h"
#include "common/transport.h"
#include "rdevice/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define OPEN_MS 20000    /* between two bytes of the server in the handshake */
#define GO_MS 60000      /* for it to have room and a thread: others may write to a slow disk */
#define STREAM_S 60      /* for it to take more of the stream, likewise */
#define STORED_MS 120000 /* for what was sent to be on its disk */

static struct cw_address servers[CW_IMAGE_SERVERS_MAX]; /* count 0: it is not known */
static uint8_t *key;

/* One of several that is nowhere now is not asked for. */
static int find_servers(const struct cw_setup *setup, struct cw_err *err)
{
    bool any = false;

    for (uint32_t i = 0; i < CW_IMAGE_SERVERS_MAX; i++) {
        bool known = i < setup->image_servers && setup->image_address[i][0] &&
                     cw_address_parse(&servers[i], setup->image_address[i], err) == CW_OK;

        any |= known;
        if (!known)
            servers[i].count = 0;
    }
    if (!any && !err->code)
        cw_err_set(err, CW_EINVAL, "no address of one is known");
    return any ? err->code = CW_OK : err->code;
}

bool store_knows(uint32_t asked)
{
    for (uint32_t i = 0; i < CW_IMAGE_SERVERS_MAX; i++)
        if (asked >> i & 1 && servers[i].count == 0)
            return false;
    return asked >> CW_IMAGE_SERVERS_MAX == 0 &&
           (uint32_t)__builtin_popcount(asked) <= CW_IMAGE_COPIES_MAX;
}

int store_begin(const struct cw_setup *setup, struct cw_err *err)
{
    err->code = CW_OK;
    if (find_servers(setup, err) < 0)
        return cw_err_wrap(err, "the checkpoint server");
    key = cw_secret_alloc(CW_KEY_SIZE);
    if (!key)
        return cw_err_set(err, CW_ENOMEM, "no memory for the key of the checkpoint server");
    memcpy(key, setup->image_key, CW_KEY_SIZE);
    return CW_OK;
}

const void *store_secret(void)
{
    return key;
}

void store_put_in(struct store_place *place, const struct image_order *order, uint32_t asked)
{
    *place = (struct store_place){.order = order};
    memcpy(place->key, key, CW_KEY_SIZE);
    for (uint32_t i = 0; i < CW_IMAGE_SERVERS_MAX; i++)
        if (asked >> i & 1)
            place->at[place->count++] = (struct store_session){.server = i, .wire = {.fd = -1}};
}

void store_wipe(struct store_place *place)
{
    sodium_memzero(place->key, CW_KEY_SIZE);
}

static int shake_hands(struct store_place *place, struct store_session *at, struct cw_err *err)
{
    struct cw_hello hello = {.role = CW_ROLE_IMAGE,
                             .rank = place->order->rank,
                             .incarnation = place->order->incarnation};
    struct cw_welcome welcome;

    memcpy(hello.job, place->order->job, sizeof(hello.job));
    return cw_hello_open(&at->wire, &at->numbers, &hello, place->key, OPEN_MS, &welcome, err);
}

/* Reads the answer of this type, into CW_FRAME_BODY_MAX bytes. */
static int answer(struct store_session *at, uint8_t type, uint8_t *body, int timeout_ms,
                  struct cw_err *err)
{
    struct cw_notice_body refused;
    struct cw_header header;

    if (cw_read_frame(&at->wire, &at->numbers, &header, body, timeout_ms, err) < 0) {
        if (err->code == CW_ETIME)
            cw_err_set(err, CW_ETIME,
                       "it said nothing for %d s, where %s was expected: its disk is slow, or it "
                       "stands still",
                       timeout_ms / 1000, cw_frame_name(type));
        return err->code;
    }
    if (header.type == CW_FRAME_REFUSED && cw_notice_get(body, header.length, &refused))
        return cw_err_set(err, CW_ELIMIT, "%s", refused.text);
    if (header.type != type)
        return cw_err_set(err, CW_EPROTO, "it speaks something else: %s frame, expected %s",
                          cw_frame_name(header.type), cw_frame_name(type));
    return CW_OK;
}

static int announce(const struct store_place *place, struct store_session *at, uint64_t bytes,
                    uint32_t *base, struct cw_err *err)
{
    uint8_t frame[CW_FRAME_HEADER + CW_PUT_SIZE];
    uint8_t body[CW_FRAME_BODY_MAX];
    struct cw_put put = {.number = place->order->number,
                         .base = *base,
                         .bytes = bytes,
                         .point = {.event = place->order->event,
                                   .clock = place->order->clock,
                                   .acts = place->order->acts}};

    cw_frame_begin(&at->numbers, frame, CW_FRAME_PUT, CW_PUT_SIZE);
    cw_put_put(frame + CW_FRAME_HEADER, &put);
    if (cw_write_all(&at->wire, frame, sizeof(frame), OPEN_MS, err) < 0 ||
        answer(at, CW_FRAME_GO, body, GO_MS, err) < 0)
        return err->code;
    if (cw_word_get(body) != *base)
        *base = 0;
    return CW_OK;
}

static int open_one(struct store_place *place, struct store_session *at, uint64_t bytes,
                    uint32_t *base, struct cw_err *err)
{
    struct timeval bound = {.tv_sec = STREAM_S};
    int fd = cw_connect(&servers[at->server], err);

    if (fd < 0)
        return err->code;
    at->wire.fd = fd;
    if (shake_hands(place, at, err) < 0 || announce(place, at, bytes, base, err) < 0)
        return err->code;
    /* the stream waits for room, but not for ever: the copy keeps memory that the program changes
     */
    fcntl(fd, F_SETFL, 0);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound)) < 0)
        return cw_err_set(err, CW_ESYS, "a time for the stream cannot be set: %s", strerror(errno));
    return CW_OK;
}

static int fail(const struct store_session *at, struct cw_err *err)
{
    cw_err_wrap(err, "checkpoint server %s", servers[at->server].text);
    return -1;
}

/* What one of them does not have as the base, the stream does not refer to: it is whole then, and
 * suits the others too. */
static int open_all(struct store_place *place, uint64_t bytes, uint32_t *base, struct cw_err *err)
{
    for (uint32_t i = 0; i < place->count; i++)
        if (open_one(place, &place->at[i], bytes, base, err) < 0)
            return fail(&place->at[i], err);
    return place->at[0].wire.fd;
}

/* The handshake's random numbers are no readings of the program's, and the key does not get into
 * the stream: it is wiped before the memory is read. */
int store_open(void *ctx, uint64_t bytes, uint32_t *base, struct cw_err *err)
{
    struct store_place *place = ctx;
    int fd;

    inputs_pause(true);
    fd = open_all(place, bytes, base, err);
    inputs_pause(false);
    store_wipe(place);
    return fd;
}

int store_also(void *ctx)
{
    const struct store_place *place = ctx;

    return place->count > 1 ? place->at[1].wire.fd : -1;
}

int store_finish(void *ctx, int fd, struct cw_err *err)
{
    struct store_place *place = ctx;
    uint8_t body[CW_FRAME_BODY_MAX];

    (void)fd;
    for (uint32_t i = 0; i < place->count; i++) {
        fcntl(place->at[i].wire.fd, F_SETFL, O_NONBLOCK);
        if (answer(&place->at[i], CW_FRAME_STORED, body, STORED_MS, err) < 0)
            return fail(&place->at[i], err);
    }
    return 0;
}
