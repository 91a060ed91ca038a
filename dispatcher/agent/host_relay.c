#include "dispatcher/agent/host_relay.h"
#include "common/secret.h"
#include "common/transport.h"
#include "dispatcher/agent/agent_tell.h"
#include "dispatcher/relays/own_relay.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host_relay {
    struct mux *mux;
    struct own_relay own;
    struct agent_relay order; /* without the key, */
    uint8_t *key;             /* which is here: of cw_secret_alloc */
    const char *options[RELAY_OPTIONS];
    char listen[CW_ADDRESS_MAX]; /* beside its socket; "": nowhere */
    bool started;
    bool failed; /* which was told: nothing more is */
};

static void on_started(void *ctx, pid_t pid)
{
    agent_tell(((struct host_relay *)ctx)->mux, AGENT_RELAY_STARTED, 0, (uint32_t)pid, "");
}

/* Both addresses, with a blank between. */
static void on_listens(void *ctx)
{
    struct host_relay *r = ctx;
    char text[2 * CW_ADDRESS_MAX];

    snprintf(text, sizeof(text), "unix:%s %s", r->own.path, r->listen);
    agent_tell(r->mux, AGENT_RELAY_LISTENS, 0, 0, text);
}

static void on_failed(void *ctx, const struct cw_err *err)
{
    struct host_relay *r = ctx;

    r->failed = true;
    agent_tell(r->mux, AGENT_RELAY_FAILED, 0, 0, err->text);
}

static const struct own_relay_events own_relay_events = {on_started, on_listens, on_failed};

struct host_relay *host_relay_new(struct loop *loop, struct mux *mux, const char *dir,
                                  struct cw_err *err)
{
    struct host_relay *r = calloc(1, sizeof(*r));

    if (r)
        r->key = cw_secret_alloc(CW_KEY_SIZE);
    if (!r || !r->key) {
        free(r);
        cw_err_set(err, CW_ENOMEM, "no memory for a relay");
        return NULL;
    }
    own_relay_init(&r->own);
    r->mux = mux;
    r->own.loop = loop;
    r->own.events = &own_relay_events;
    r->own.ctx = r;
    snprintf(r->own.path, sizeof(r->own.path), "%s/relay", dir);
    return r;
}

void host_relay_free(struct host_relay *r)
{
    if (!r)
        return;
    own_relay_close(&r->own);
    if (r->own.pid > 0)
        relay_process_await_end(r->own.pid);
    cw_secret_free(r->key, CW_KEY_SIZE);
    free(r);
}

int host_relay_start(struct host_relay *r, const uint8_t *body, size_t size, struct cw_err *err)
{
    if (r->started || !agent_relay_get(body, size, &r->order))
        return cw_err_set(err, CW_EPROTO, "an order to start a relay that makes no sense");
    r->started = true;
    memcpy(r->key, r->order.key, CW_KEY_SIZE);
    sodium_memzero(r->order.key, CW_KEY_SIZE);
    for (int i = 0; i < RELAY_OPTIONS; i++)
        r->options[i] = r->order.has[i] ? r->order.option[i] : NULL;
    err->code = CW_OK;
    /* the same port for each of its processes */
    if (r->order.listen[0])
        cw_address_choose_port(r->order.listen, r->listen, err);
    r->own.child =
        (struct relay_child_config){.socket_path = r->own.path,
                                    .listen = r->listen[0] ? r->listen : NULL,
                                    .key = r->key,
                                    .options = r->options,
                                    .spin_ns = r->order.spin_ns,
                                    .kept = r->order.returns ? &r->own.kept : NULL,
                                    .log_dir = r->order.log_dir[0] ? r->order.log_dir : NULL};
    if (err->code || own_relay_start(&r->own, err) < 0)
        on_failed(r, err);
    return err->code = CW_OK;
}

void host_relay_kill(struct host_relay *r)
{
    own_relay_kill(&r->own);
}

pid_t host_relay_pid(const struct host_relay *r)
{
    return r ? r->own.pid : 0;
}

void host_relay_ended(struct host_relay *r, int status)
{
    bool again;

    own_relay_ended(&r->own);
    if (r->failed)
        return;
    again = r->order.returns && own_relay_again(&r->own);
    agent_tell(r->mux, AGENT_RELAY_ENDED, again, (uint32_t)status, "");
}
