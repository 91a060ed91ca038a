#include "ckptsrv/server.h"
#include "ckptsrv/service.h"
#include "common/fd.h"
#include "common/signals.h"
#include "common/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define ACCEPTS_MAX 64               /* in one turn of the loop */
#define ACCEPT_PAUSE_NS 100000000ull /* where there are no descriptors left */

struct listener {
    struct server *server;
    struct cw_address address;
    struct loop_watch watch;
};

struct server {
    const struct ckptsrv_config *config;
    struct loop *loop;
    struct vault *vault;
    struct workers *workers;
    struct service *service;
    struct listener listeners[CKPTSRV_LISTENERS_MAX];
    int listening; /* how many do */
    struct loop_watch signals, done;
    struct loop_timer resume; /* accepting */
    int wakes;                /* an eventfd: threads have done something */
    bool ended;
};

static void on_signal(void *ctx)
{
    ((struct server *)ctx)->ended = true;
}

static void on_done(void *ctx)
{
    workers_collect(((struct server *)ctx)->workers);
}

/* --- accepting -----------------------------------------------------------------------------------
 */

static void on_resume(void *ctx)
{
    struct server *server = ctx;

    for (int i = 0; i < server->listening; i++)
        loop_change(server->loop, &server->listeners[i].watch, EPOLLIN);
}

static void on_accept(void *ctx)
{
    struct listener *listener = ctx;
    struct server *server = listener->server;

    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = cw_accept(listener->watch.fd, &listener->address);

        if (fd >= 0) {
            service_enter(server->service, fd);
            continue;
        }
        if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
            loop_change(server->loop, &listener->watch, 0);
            loop_timer_hasten(&server->resume, loop_now_ns(server->loop) + ACCEPT_PAUSE_NS);
        }
        return;
    }
}

static int listen_at(struct server *server, const char *address, struct cw_err *err)
{
    struct listener *listener = &server->listeners[server->listening];
    int fd;

    listener->server = server;
    if (cw_address_parse(&listener->address, address, err) < 0)
        return cw_err_wrap(err, "--listen");
    fd = cw_listen(&listener->address, err);
    if (fd < 0)
        return err->code;
    if (loop_watch(server->loop, &listener->watch, fd, EPOLLIN, on_accept, listener) < 0) {
        cw_unlisten(fd, &listener->address);
        return cw_err_set(err, CW_ESYS, "listening at %s: %s", address, strerror(errno));
    }
    server->listening++;
    return CW_OK;
}

static void unlisten(struct server *server)
{
    for (int i = 0; i < server->listening; i++) {
        struct listener *listener = &server->listeners[i];
        int fd = listener->watch.fd;

        loop_unwatch(server->loop, &listener->watch);
        cw_unlisten(fd, &listener->address);
    }
    server->listening = 0;
}

/* --- running -------------------------------------------------------------------------------------
 */

static int watch_signals(struct server *server, struct cw_err *err)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t set;
    int fd;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the disk says EFBIG */
    sigemptyset(&set);
    cw_signals_add(&set, numbers, sizeof(numbers) / sizeof(*numbers));
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0 || loop_watch(server->loop, &server->signals, fd, EPOLLIN, on_signal, server) < 0)
        return cw_err_set(err, CW_ESYS, "signalfd: %s", strerror(errno));
    return CW_OK;
}

static int watch_others(struct server *server, struct cw_err *err)
{
    if (loop_watch(server->loop, &server->done, workers_fd(server->workers), EPOLLIN, on_done,
                   server) < 0)
        return cw_err_set(err, CW_ESYS, "epoll: %s", strerror(errno));
    loop_timer_add(server->loop, &server->resume, on_resume, server);
    return CW_OK;
}

static void announce(const struct server *server)
{
    int fd = server->config->ready_fd;

    for (int i = 0; i < server->listening; i++) {
        if (fd >= 0)
            dprintf(fd, "%s\n", server->listeners[i].address.text);
        else
            fprintf(stderr, "causeway ckptsrv: listening on %s, images in %s\n",
                    server->listeners[i].address.text, server->config->dir);
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
    while (!server->ended) {
        loop_turn(server->loop, LOOP_NEVER);
        service_turned(server->service);
    }
    return CW_OK;
}

static int open_all(struct server *server, struct cw_err *err)
{
    server->loop = loop_new(err);
    if (!server->loop || watch_signals(server, err) < 0)
        return err->code;
    server->vault = vault_open(server->config->dir, server->config->max_bytes, err);
    if (!server->vault)
        return err->code;
    server->wakes = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wakes < 0)
        return cw_err_set(err, CW_ESYS, "eventfd: %s", strerror(errno));
    server->workers = workers_new(WORKERS_MAX, server->wakes, err);
    if (!server->workers)
        return err->code;
    return watch_others(server, err);
}

int ckptsrv_run(const struct ckptsrv_config *config, struct cw_err *err)
{
    struct server server = {.config = config, .wakes = -1, .signals.fd = -1, .done.fd = -1};
    bool opened;

    cw_raise_descriptor_limit();
    opened = open_all(&server, err) == CW_OK;
    if (opened)
        serve(&server, err);
    if (err->code && config->ready_fd >= 0) {
        dprintf(config->ready_fd, "!%s\n", err->text);
        close(config->ready_fd);
    }
    unlisten(&server);
    service_free(server.service);
    if (server.loop)
        loop_unwatch(server.loop, &server.done);
    workers_free(server.workers);
    cw_close(&server.wakes);
    vault_close(server.vault, config->ephemeral && opened, config->job);
    if (server.loop) {
        loop_timer_remove(&server.resume);
        loop_close(server.loop, &server.signals);
        loop_timer_remove(&server.resume);
        loop_free(server.loop);
    }
    return err->code;
}
