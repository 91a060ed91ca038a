#include "ckptsrv/server.h"
#include "ckptsrv/service.h"
#include "common/fd.h"
#include "common/listen.h"
#include "common/signals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct server {
    const struct ckptsrv_config *config;
    struct loop *loop;
    struct vault *vault;
    struct workers *workers;
    struct service *service;
    struct listeners listeners;
    struct signals signals;
    struct loop_watch done;
    int wakes; /* an eventfd: threads have done something */
    bool ended;
};

static void on_signal(void *ctx, int number)
{
    ((struct server *)ctx)->ended |= number != SIGCHLD;
}

static void on_done(void *ctx)
{
    workers_collect(((struct server *)ctx)->workers);
}

static void on_came(void *ctx, uint32_t number, int fd)
{
    (void)number;
    service_enter(((struct server *)ctx)->service, fd);
}

static int listen_at(struct server *server, const char *text, struct cw_err *err)
{
    struct cw_address address;

    if (cw_address_parse(&address, text, err) < 0)
        return cw_err_wrap(err, "--listen");
    return listeners_add(&server->listeners, &address, err);
}

static void announce(const struct server *server)
{
    int fd = server->config->ready_fd;

    for (uint32_t i = 0; i < server->listeners.count; i++) {
        const char *at = server->listeners.at[i].address.text;

        if (fd >= 0)
            dprintf(fd, "%s\n", at);
        else
            fprintf(stderr, "causeway ckptsrv: listening on %s, images in %s\n", at,
                    server->config->dir);
    }
    cw_close(&fd);
}

static int serve(struct server *server, struct cw_err *err)
{
    const struct ckptsrv_config *config = server->config;

    server->service = service_new(server->loop, server->vault, server->workers, config->key);
    if (!server->service)
        return cw_err_set(err, CW_ENOMEM, "no memory for a checkpoint server");
    for (int i = 0; i < config->address_count && !err->code; i++)
        listen_at(server, config->addresses[i], err);
    if (err->code)
        return err->code;
    announce(server);
    while (!server->ended)
        loop_turn(server->loop, LOOP_NEVER);
    return CW_OK;
}

static int open_all(struct server *server, struct cw_err *err)
{
    server->loop = loop_new(err);
    if (!server->loop || signals_open(&server->signals, server->loop, on_signal, server, err) < 0)
        return err->code;
    listeners_init(&server->listeners, server->loop, on_came, server);
    server->vault = vault_open(server->config->dir, server->config->max_bytes, err);
    if (!server->vault)
        return err->code;
    server->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wakes < 0)
        return cw_err_set(err, CW_ESYS, "eventfd: %s", strerror(errno));
    server->workers = workers_new(WORKERS_MAX, server->wakes, err);
    if (!server->workers)
        return err->code;
    if (loop_watch(server->loop, &server->done, workers_fd(server->workers), EPOLLIN, on_done,
                   server) < 0)
        return cw_err_set(err, CW_ESYS, "epoll: %s", strerror(errno));
    return CW_OK;
}

int ckptsrv_run(const struct ckptsrv_config *config, struct cw_err *err)
{
    struct server server = {.config = config, .wakes = -1, .done.fd = -1};
    bool opened;

    cw_raise_descriptor_limit();
    opened = open_all(&server, err) == CW_OK;
    if (opened)
        serve(&server, err);
    if (err->code && config->ready_fd >= 0) {
        dprintf(config->ready_fd, "!%s\n", err->text);
        close(config->ready_fd);
    }
    listeners_close(&server.listeners);
    service_free(server.service);
    loop_unwatch(server.loop, &server.done);
    workers_free(server.workers);
    cw_close(&server.wakes);
    vault_close(server.vault, config->ephemeral && opened, config->job);
    signals_close(&server.signals);
    loop_free(server.loop);
    return err->code;
}
