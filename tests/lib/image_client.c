#include "tests/lib/image_client.h"
#include "common/cred.h"
#include "common/hello.h"
#include "common/transport.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 30000

int image_client_open(struct image_client *client, const char *address,
                      const uint8_t key[CW_KEY_SIZE], struct cw_hello *hello, struct cw_err *err)
{
    struct cw_wire wire = {0};
    uint8_t own[CW_KEY_SIZE];
    struct cw_welcome welcome;
    struct cw_address at;

    *client = (struct image_client){.fd = -1};
    if (cw_address_parse(&at, address, err) < 0)
        return err->code;
    client->fd = wire.fd = cw_connect(&at, err);
    if (client->fd < 0)
        return err->code;
    cw_cred_job_key(own, key, hello->job);
    if (hello->role == CW_ROLE_IMAGE)
        cw_cred_rank_key(own, own, hello->rank, hello->incarnation);
    if (cw_hello_open(&wire, &client->session, hello, own, PATIENCE_MS, &welcome, err) < 0)
        image_client_close(client);
    return err->code;
}

void image_client_close(struct image_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

static int wait_for(struct image_client *client, short events, struct cw_err *err)
{
    struct pollfd ready = {.fd = client->fd, .events = events};

    if (poll(&ready, 1, PATIENCE_MS) > 0)
        return CW_OK;
    return cw_err_set(err, CW_ETIME, "no answer in time");
}

int image_client_write(struct image_client *client, const uint8_t *bytes, size_t size,
                       struct cw_err *err)
{
    while (size > 0) {
        ssize_t n = write(client->fd, bytes, size);

        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            return cw_err_set(err, CW_ECLOSED, "writing: %s", strerror(errno));
        } else if (wait_for(client, POLLOUT, err) < 0) {
            return err->code;
        }
    }
    return CW_OK;
}

int image_client_read(struct image_client *client, uint8_t *to, size_t size, struct cw_err *err)
{
    while (size > 0) {
        ssize_t n = read(client->fd, to, size);

        if (n > 0) {
            to += n;
            size -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return cw_err_set(err, CW_ECLOSED, "the server closed the connection");
        } else if (wait_for(client, POLLIN, err) < 0) {
            return err->code;
        }
    }
    return CW_OK;
}

int image_client_send(struct image_client *client, uint8_t type, const uint8_t *body, uint32_t size,
                      struct cw_err *err)
{
    uint8_t frame[CW_FRAME_HEADER + CW_FRAME_BODY_MAX];

    cw_frame_begin(&client->session, frame, type, size);
    if (size > 0)
        memcpy(frame + CW_FRAME_HEADER, body, size);
    return image_client_write(client, frame, CW_FRAME_HEADER + size, err);
}

int image_client_next(struct image_client *client, struct cw_header *header,
                      uint8_t body[CW_FRAME_BODY_MAX], struct cw_err *err)
{
    struct cw_notice_body notice;
    uint8_t bytes[CW_FRAME_HEADER];

    if (image_client_read(client, bytes, sizeof(bytes), err) < 0 ||
        cw_frame_accept(&client->session, bytes, header, err) < 0 ||
        image_client_read(client, body, header->length, err) < 0)
        return err->code;
    if (header->type == CW_FRAME_REFUSED && cw_notice_get(body, header->length, &notice))
        return cw_err_set(err, CW_EAUTH, "refused (%u): %s", notice.code, notice.text);
    return CW_OK;
}

/* The next frame has to be of this type. */
static int expect(struct image_client *client, uint8_t type, uint8_t body[CW_FRAME_BODY_MAX],
                  struct cw_err *err)
{
    struct cw_header header;

    if (image_client_next(client, &header, body, err) < 0)
        return err->code;
    if (header.type != type)
        return cw_err_set(err, CW_EPROTO, "expected %s, got %s", cw_frame_name(type),
                          cw_frame_name(header.type));
    return CW_OK;
}

int image_client_begin(struct image_client *client, const struct cw_put *put, uint32_t *base,
                       struct cw_err *err)
{
    uint8_t body[CW_FRAME_BODY_MAX];

    cw_put_put(body, put);
    if (image_client_send(client, CW_FRAME_PUT, body, CW_PUT_SIZE, err) < 0 ||
        expect(client, CW_FRAME_GO, body, err) < 0)
        return err->code;
    *base = cw_word_get(body);
    return CW_OK;
}

int image_client_stored(struct image_client *client, struct cw_stored *stored, struct cw_err *err)
{
    uint8_t body[CW_FRAME_BODY_MAX];

    if (expect(client, CW_FRAME_STORED, body, err) < 0)
        return err->code;
    cw_stored_get(body, stored);
    return CW_OK;
}

int image_client_list(struct image_client *client,
                      void (*held)(void *ctx, const struct cw_stored *stored), void *ctx,
                      struct cw_err *err)
{
    uint8_t body[CW_FRAME_BODY_MAX];
    struct cw_stored stored;
    struct cw_header header;

    while (image_client_next(client, &header, body, err) == CW_OK) {
        if (header.type == CW_FRAME_HELD_END)
            return CW_OK;
        if (header.type != CW_FRAME_HELD || !cw_stored_get(body, &stored))
            return cw_err_set(err, CW_EPROTO, "expected HELD");
        if (held)
            held(ctx, &stored);
    }
    return err->code;
}

int image_client_fetch(struct image_client *client, uint32_t rank, uint32_t number, uint64_t *size,
                       struct cw_err *err)
{
    struct cw_image_ref ref = {rank, number};
    uint8_t body[CW_FRAME_BODY_MAX];
    struct cw_reader r;

    struct cw_header header;

    cw_image_ref_put(body, &ref);
    if (image_client_send(client, CW_FRAME_FETCH, body, CW_IMAGE_REF_SIZE, err) < 0)
        return err->code;
    do /* STORED may be on its way */
        if (image_client_next(client, &header, body, err) < 0)
            return err->code;
    while (header.type == CW_FRAME_STORED);
    if (header.type != CW_FRAME_IMAGE)
        return cw_err_set(err, CW_EPROTO, "expected IMAGE, got %s", cw_frame_name(header.type));
    r = cw_reader(body, CW_IMAGE_SIZE);
    *size = cw_get_u64(&r);
    return CW_OK;
}

int image_client_drop(struct image_client *client, uint32_t rank, uint32_t number,
                      struct cw_err *err)
{
    struct cw_image_ref ref = {rank, number};
    uint8_t body[CW_IMAGE_REF_SIZE];

    cw_image_ref_put(body, &ref);
    return image_client_send(client, CW_FRAME_DROP, body, sizeof(body), err);
}
