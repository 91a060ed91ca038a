#include "dispatcher/agent/host_server.h"
#include "common/secret.h"
#include "common/transport.h"
#include "dispatcher/agent/agent_tell.h"
#include "dispatcher/images/image_dir.h"
#include "dispatcher/images/own_server.h"
#include "relay/process.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct host_server {
    struct mux *mux;
    struct own_server own;
    struct image_dir dir;
    struct agent_server order; /* without the key, */
    uint8_t *key;              /* which is here: of cw_secret_alloc */
    uint8_t job[CW_ID_SIZE];
    char local[CW_ADDRESS_MAX];
    char listen[CW_ADDRESS_MAX]; /* beside that; "": nowhere */
    bool started;
};

static void on_started(void *ctx, pid_t pid)
{
    struct host_server *s = ctx;

    agent_tell(s->mux, AGENT_SERVER_STARTED, s->dir.in_memory, (uint32_t)pid, s->dir.path);
}

/* Both addresses, with a blank between. */
static void on_listens(void *ctx)
{
    struct host_server *s = ctx;
    char text[2 * CW_ADDRESS_MAX];

    image_dir_hold(&s->dir);
    snprintf(text, sizeof(text), "%s %s", s->local, s->listen);
    agent_tell(s->mux, AGENT_SERVER_LISTENS, 0, 0, text);
}

static void on_failed(void *ctx, const struct cw_err *err)
{
    agent_tell(((struct host_server *)ctx)->mux, AGENT_SERVER_FAILED, 0, 0, err->text);
}

static const struct own_server_events own_server_events = {on_started, on_listens, on_failed};

struct host_server *host_server_new(struct loop *loop, struct mux *mux, const char *dir,
                                    const uint8_t *job, struct cw_err *err)
{
    struct host_server *s = calloc(1, sizeof(*s));

    if (s)
        s->key = cw_secret_alloc(CW_KEY_SIZE);
    if (!s || !s->key) {
        free(s);
        cw_err_set(err, CW_ENOMEM, "no memory for a checkpoint server");
        return NULL;
    }
    own_server_init(&s->own);
    s->mux = mux;
    s->own.loop = loop;
    s->own.events = &own_server_events;
    s->own.ctx = s;
    memcpy(s->job, job, sizeof(s->job));
    snprintf(s->local, sizeof(s->local), "unix:%s/images", dir);
    return s;
}

void host_server_free(struct host_server *s)
{
    if (!s)
        return;
    own_server_close(&s->own);
    if (s->own.pid > 0)
        relay_process_await_end(s->own.pid);
    if (s->own.begun)
        image_dir_remove(&s->dir);
    cw_secret_free(s->key, CW_KEY_SIZE);
    free(s);
}

static int start(struct host_server *s, struct cw_err *err)
{
    const struct agent_server *order = &s->order;
    uint64_t bytes_max = order->bytes_max;

    if (image_dir_choose(&s->dir, order->dir[0] ? order->dir : NULL, s->job, false, err) < 0)
        return err->code;
    /* the same port for each of its processes */
    if (order->listen[0] && cw_address_choose_port(order->listen, s->listen, err) < 0)
        return err->code;
    s->own.config = (struct ckptsrv_config){.dir = s->dir.path,
                                            .addresses = {s->local, s->listen},
                                            .address_count = s->listen[0] ? 2 : 1,
                                            .key = s->key,
                                            .max_bytes = bytes_max ? bytes_max : s->dir.bytes_max,
                                            .ready_fd = -1,
                                            .life_fd = -1,
                                            .ephemeral = true,
                                            .job = s->job};
    return own_server_start(&s->own, err);
}

int host_server_start(struct host_server *s, const uint8_t *body, size_t size, struct cw_err *err)
{
    if (s->started || !agent_server_get(body, size, &s->order))
        return cw_err_set(err, CW_EPROTO,
                          "an order to start a checkpoint server that makes no sense");
    s->started = true;
    memcpy(s->key, s->order.key, CW_KEY_SIZE);
    sodium_memzero(s->order.key, CW_KEY_SIZE);
    err->code = CW_OK;
    if (start(s, err) < 0)
        on_failed(s, err);
    return err->code = CW_OK;
}

pid_t host_server_pid(const struct host_server *s)
{
    return s ? s->own.pid : 0;
}

void host_server_ended(struct host_server *s, int status)
{
    struct cw_err err;

    if (own_server_ended(&s->own, WIFEXITED(status), &err))
        agent_tell(s->mux, AGENT_SERVER_ENDED, 0, (uint32_t)status, s->own.why);
    else
        on_failed(s, &err);
}
