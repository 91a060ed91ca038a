/* `causeway ckptsrv`: one checkpoint server in the foreground. */
#include "ckptsrv/main.h"
#include "ckptsrv/imgdir.h"
#include "ckptsrv/service.h"
#include "common/fd.h"
#include "common/keyfile.h"
#include "common/listen.h"
#include "common/options.h"
#include "common/secret.h"
#include "common/signals.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CKPTSRV_LISTENERS_MAX 8

struct ckptsrv_config {
    const char *dir; /* made when missing, mode 700; locked by one server at a time */
    const char *addresses[CKPTSRV_LISTENERS_MAX]; /* unix:PATH or tcp:HOST:PORT */
    int address_count;
    const uint8_t *key; /* CW_KEY_SIZE bytes: the server's key, as a relay key */
    uint64_t max_bytes; /* of blocks on disk; 0: as much as the disk has */
    /* -1, or: a line with each address, as it is now, when it listens; or one with a '!' and why it
     * does not; then closed. */
    int ready_fd;
    bool ephemeral;     /* at the end images go, and the directory where the server made it: */
    const uint8_t *job; /* ... those of this job, CW_ID_SIZE bytes; NULL: of all jobs */
};

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

/* It leaves no socket. Errors: CW_ESYS, CW_EINVAL, CW_ENOMEM; CW_EBUSY: another server uses the
 * directory. */
static int run_server(const struct ckptsrv_config *config, struct cw_err *err)
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

/* --- the command -------------------------------------------------------------------------------
 */

static const char usage[] =
    "usage: causeway ckptsrv --dir DIR --listen ADDRESS --key-file FILE [options]\n"
    "\n"
    "Runs one checkpoint server in the foreground until SIGTERM or SIGINT: it keeps images of\n"
    "ranks, from which they can go on. ADDRESS is unix:PATH or tcp:HOST:PORT; --listen may be\n"
    "repeated.\n"
    "\n";

struct ckptsrv_options {
    struct ckptsrv_config config;
    const char *key_file; /* NULL: key_fd */
    int key_fd;
    uint8_t job[CW_ID_SIZE];
    bool help;
    bool told; /* why it does not listen: on ready_fd */
};

static int add_address(void *to, const char *address, struct cw_err *err)
{
    struct ckptsrv_config *config = to;

    if (config->address_count == CKPTSRV_LISTENERS_MAX)
        return cw_err_set(err, CW_EINVAL, "--listen %s: at most %d addresses", address,
                          CKPTSRV_LISTENERS_MAX);
    config->addresses[config->address_count++] = address;
    return CW_OK;
}

static int take_job(void *to, const char *text, struct cw_err *err)
{
    struct ckptsrv_options *o = to;

    o->config.ephemeral = true;
    o->config.job = o->job;
    return imgdir_job_parse(text, o->job)
               ? CW_OK
               : cw_err_set(err, CW_EINVAL, "--ephemeral-job: '%s' is no job", text);
}

#define AT(field) offsetof(struct ckptsrv_options, field)

/* Descriptors and --ephemeral-job are for the dispatcher's own use. */
static const struct cw_option list[] = {
    {"dir", .argument = "DIR", CW_OPTION_TEXT, AT(config.dir),
     .help = "where the images are (made when missing); of this server alone. What a server has "
             "stored there, the next one finds"},
    {"listen", .argument = "ADDRESS", CW_OPTION_CALL, AT(config), .take = add_address,
     .help = "where dispatchers and images connect"},
    {"key-file", .argument = "FILE", CW_OPTION_TEXT, AT(key_file),
     .help = "the server's key (made when missing)"},
    {"key-fd", .argument = "FD", CW_OPTION_FD, AT(key_fd)},
    {"max", .argument = "BYTES", CW_OPTION_BYTES, AT(config.max_bytes), .min = 1,
     .help = "how much of the disk images may take, like 200G (default: no bound)"},
    {"ready-fd", .argument = "FD", CW_OPTION_FD, AT(config.ready_fd)},
    {"ephemeral", .kind = CW_OPTION_FLAG, .at = AT(config.ephemeral),
     .help = "remove all images at the end"},
    {"ephemeral-job", .argument = "JOB", CW_OPTION_CALL, .take = take_job},
    {"help", .kind = CW_OPTION_FLAG, .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    .command = "causeway ckptsrv",
    .usage = usage,
    .groups = (const struct cw_option_group[]){{NULL, list, 0}, {0}}};

/* Returns -1 to go on, or an exit code. */
static int parse(struct ckptsrv_options *o, int argc, char **argv, struct cw_err *err)
{
    if (cw_options_parse(&options, argc, argv, o, NULL, err) < 0)
        return 2;
    if (o->help) {
        cw_options_help(&options, stdout);
        return 0;
    }
    if (optind < argc)
        cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see causeway ckptsrv --help",
                   argv[optind]);
    else if (!o->config.dir)
        cw_err_set(err, CW_EINVAL, "no --dir DIR; see causeway ckptsrv --help");
    else if (o->config.address_count == 0)
        cw_err_set(err, CW_EINVAL, "no --listen ADDRESS; see causeway ckptsrv --help");
    else if (!o->key_file && o->key_fd < 0)
        cw_err_set(err, CW_EINVAL, "no --key-file FILE; see causeway ckptsrv --help");
    else
        return -1;
    return 2;
}

static int run(struct ckptsrv_options *o, struct cw_err *err)
{
    uint8_t *key = cw_secret_alloc(CW_KEY_SIZE);
    bool made;

    if (!key)
        return cw_err_set(err, CW_ENOMEM, "no memory for a checkpoint server");
    o->config.key = key;
    if ((o->key_fd >= 0 ? cw_key_read_fd(o->key_fd, key, err)
                        : cw_key_load_or_make(o->key_file, key, &made, err)) == CW_OK)
        o->told = run_server(&o->config, err) < 0 && o->config.ready_fd >= 0;
    cw_secret_free(key, CW_KEY_SIZE);
    return err->code;
}

int cmd_ckptsrv(int argc, char **argv)
{
    struct ckptsrv_options o = {.config = {.ready_fd = -1}, .key_fd = -1};
    struct cw_err err = {0};
    int code = parse(&o, argc, argv, &err);

    if (code < 0)
        code = run(&o, &err) < 0 ? 1 : 0;
    if (err.code && !o.told)
        fprintf(stderr, "causeway ckptsrv: %s\n", err.text);
    return code;
}
