#include "dispatcher/node/units.h"
#include "common/secret.h"
#include "common/transport.h"
#include "dispatcher/node/copy_fds.h"
#include "dispatcher/servers/image_dir.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct job_unit {
    struct units *of;
    struct unit unit;
    struct node_unit *order; /* without the key; owned; NULL: it was not ordered */
    uint8_t *key;            /* of cw_secret_alloc */
    char local[CW_ADDRESS_MAX];
    char tcp[CW_ADDRESS_MAX]; /* "": nowhere */
    bool untold;              /* of a dispatcher before; not ordered by the one that there is */
    struct relay_kept kept;   /* of a relay that returns */
    struct copy_fds copies;   /* that it keeps of others' logs */
    struct image_dir images;  /* of a server */
};

struct units {
    struct units_config config;
    uint8_t job[CW_ID_SIZE];
    struct job_unit unit[NODE_UNITS_MAX];
};

static bool has(const struct job_unit *u, enum node_unit_flag flag)
{
    return u->order->flags & flag;
}

static bool is_relay(const struct job_unit *u)
{
    return u->order->kind == NODE_UNIT_IS_RELAY;
}

/* --- what it is started with --- */

/* Where the dead process used io_uring, the kernel may still be about to close its sockets, and
 * what looks like another process listens there. */
static void remove_socket(const struct job_unit *u)
{
    const char *path = u->local + strlen("unix:");
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        unlink(path);
}

/* It clears up when it is asked to end. */
static int ending_signal(const struct job_unit *u)
{
    return is_relay(u) && has(u, NODE_UNIT_KEPT) ? SIGKILL : SIGTERM;
}

static int add_kept(struct job_unit *u, struct command *command, struct cw_err *err)
{
    const struct channel_fds *channel = &u->of->config.memory->group[u->order->number];
    const char *log_dir = u->order->dir[0] ? u->order->dir : NULL;

    if (relay_kept_make(&u->kept, log_dir, err) < 0)
        return err->code;
    command_fd(command, "--state-fd", u->kept.state_fd);
    command_fd(command, "--disk-fd", u->kept.disk_fd);
    command_fds(command, "--copy-fds", u->copies.first, u->copies.count);
    if (u->copies.count > 0) {
        command_fd(command, "--channel-fd", channel->memory);
        command_fd(command, "--channel-disk-fd", channel->file);
    }
    command->death = ending_signal(u);
    return CW_OK;
}

static int add_relay(struct job_unit *u, struct command *command, struct cw_err *err)
{
    if (u->unit.restarts.count > 0)
        remove_socket(u);
    return has(u, NODE_UNIT_RETURNS) ? add_kept(u, command, err) : CW_OK;
}

static void add_server(const struct job_unit *u, struct command *command)
{
    uint64_t bytes_max = u->order->bytes_max ? u->order->bytes_max : u->images.bytes_max;

    command_word(command, "--dir");
    command_word(command, u->images.path);
    if (bytes_max)
        command_number(command, "--max", "%llu", (unsigned long long)bytes_max);
}

static int make_command(void *ctx, struct command *command, struct cw_err *err)
{
    struct job_unit *u = ctx;
    const char *word = u->order->words;

    command_word(command, "--listen");
    command_word(command, u->local);
    if (u->tcp[0]) {
        command_word(command, "--listen");
        command_word(command, u->tcp);
    }
    for (uint32_t i = 0; i < u->order->count; i++, word += strlen(word) + 1)
        command_word(command, word);
    if (!is_relay(u))
        add_server(u, command);
    else if (add_relay(u, command, err) < 0)
        return err->code;
    return command_key(command, u->key, err);
}

/* --- what becomes of it --- */

static void tell(const struct job_unit *u, uint32_t type, uint32_t value, const char *text)
{
    if (!u->untold)
        node_event_send(u->of->config.mux, type, u->order->number, value, text);
}

static void on_started(void *ctx, pid_t pid)
{
    const struct job_unit *u = ctx;

    tell(u, NODE_UNIT_STARTED, (uint32_t)pid, is_relay(u) ? u->local : u->images.path);
}

/* Both addresses, with a blank between. */
static void on_listens(void *ctx)
{
    struct job_unit *u = ctx;
    char text[2 * CW_ADDRESS_MAX];

    if (!is_relay(u))
        image_dir_hold(&u->images);
    snprintf(text, sizeof(text), "%s %s", u->local, u->tcp);
    tell(u, NODE_UNIT_LISTENS, u->images.in_memory, text);
}

static void on_ended(void *ctx, int status, const char *why)
{
    tell(ctx, NODE_UNIT_ENDED, (uint32_t)status, why);
}

static void on_failed(void *ctx, int status, const struct cw_err *err)
{
    tell(ctx, NODE_UNIT_FAILED, (uint32_t)status, err->text);
}

static const struct unit_ops unit_ops = {make_command, on_started, on_listens,
                                         on_ended,     on_failed,  NULL};

/* --- all of them --- */

struct units *units_new(const struct units_config *config, struct cw_err *err)
{
    struct units *units = calloc(1, sizeof(*units));

    if (!units) {
        cw_err_set(err, CW_ENOMEM, "no memory for relays and checkpoint servers");
        return NULL;
    }
    units->config = *config;
    memcpy(units->job, config->job, sizeof(units->job));
    return units;
}

static void end(struct job_unit *u)
{
    if (u->order)
        unit_end(&u->unit, ending_signal(u));
}

static void forget(struct job_unit *u)
{
    if (!u->order)
        return;
    unit_await_end(&u->unit);
    if (u->unit.begun && !is_relay(u))
        image_dir_remove(&u->images);
    relay_kept_close(&u->kept);
    copy_fds_close(&u->copies);
    cw_secret_free(u->key, CW_KEY_SIZE);
    free(u->order);
}

void units_free(struct units *units)
{
    if (!units)
        return;
    for (uint32_t i = 0; i < NODE_UNITS_MAX; i++)
        end(&units->unit[i]);
    for (uint32_t i = 0; i < NODE_UNITS_MAX; i++)
        forget(&units->unit[i]);
    free(units);
}

/* Its key is where no core dump has it. */
static int take_order(struct job_unit *u, const struct node_unit *order, struct cw_err *err)
{
    struct node_unit *taken = malloc(sizeof(*taken));
    uint8_t *key = cw_secret_alloc(CW_KEY_SIZE);

    if (!taken || !key) {
        free(taken);
        cw_secret_free(key, CW_KEY_SIZE);
        return cw_err_set(err, CW_ENOMEM, "no memory for unit %u", order->number);
    }
    *taken = *order;
    memcpy(key, order->key, CW_KEY_SIZE);
    sodium_memzero(taken->key, sizeof(taken->key));
    u->order = taken;
    u->key = key;
    return CW_OK;
}

/* The first relay has no number: its place is where others look. */
static void choose_local(struct job_unit *u)
{
    const char *dir = u->of->config.dir;

    if (!is_relay(u))
        snprintf(u->local, sizeof(u->local), "unix:%s/images", dir);
    else if (u->order->number == 0)
        snprintf(u->local, sizeof(u->local), "unix:%s/relay", dir);
    else
        snprintf(u->local, sizeof(u->local), "unix:%s/relay.%u", dir, u->order->number);
}

/* The same ones for each of its processes. */
static int choose_places(struct job_unit *u, struct cw_err *err)
{
    const struct node_unit *order = u->order;

    err->code = CW_OK;
    choose_local(u);
    if (order->listen[0] && cw_address_choose_port(order->listen, u->tcp, err) < 0)
        return cw_err_wrap(err, "where other hosts reach it");
    if (!is_relay(u))
        image_dir_choose(&u->images, order->dir[0] ? order->dir : NULL, u->of->job,
                         has(u, NODE_UNIT_KEPT), err);
    return err->code;
}

/* What is kept of one that returns is for one relay. */
static struct relay_kept take_kept(struct units *units, const struct node_unit *order)
{
    static const struct relay_kept none = {.state_fd = -1, .disk_fd = -1};
    struct relay_kept kept = units->config.kept;

    if (order->kind != NODE_UNIT_IS_RELAY || !(order->flags & NODE_UNIT_KEPT))
        return none;
    units->config.kept = none;
    return kept;
}

/* The relay that has kept the copy finds an empty one in its place, should it be started again. */
static int take_copy(struct job_unit *u, struct cw_err *err)
{
    const struct node_unit *order = u->order;
    int fd;

    err->code = CW_OK;
    if (order->copies && (copy_fds_make(&u->copies, order->copies, err) < 0 ||
                          group_memory_make(u->of->config.memory, order->number, err) < 0))
        return err->code;
    if (!has(u, NODE_UNIT_COPIED))
        return CW_OK;
    fd = copy_fds_take(&u->of->unit[order->from].copies, order->number, err);
    if (fd >= 0)
        relay_kept_take(&u->kept, fd, order->dir[0] ? order->dir : NULL);
    return err->code;
}

/* It runs, and has its places and its key. */
static void tell_again(struct job_unit *u)
{
    struct cw_err err;

    u->untold = false;
    if (u->unit.over) {
        cw_err_set(&err, CW_ESYS, "%s", u->unit.no_more);
        on_failed(u, u->unit.status, &err);
        return;
    }
    if (u->unit.pid > 0)
        on_started(u, u->unit.pid);
    if (u->unit.pid > 0 && u->unit.heard && !u->unit.why[0])
        on_listens(u);
}

void units_begin_again(struct units *units, struct mux *mux)
{
    units->config.mux = mux;
    for (uint32_t i = 0; i < NODE_UNITS_MAX; i++)
        units->unit[i].untold = units->unit[i].order;
}

static int start(struct units *units, const struct node_unit *order, struct cw_err *err)
{
    struct job_unit *u = &units->unit[order->number];
    bool relay = order->kind == NODE_UNIT_IS_RELAY;

    if (u->order && u->untold) {
        tell_again(u);
        return err->code = CW_OK;
    }
    if (u->order)
        return cw_err_set(err, CW_EPROTO, "unit %u is ordered once more", order->number);
    if (take_order(u, order, err) < 0)
        return err->code;
    u->of = units;
    u->kept = take_kept(units, order);
    u->unit =
        (struct unit){.loop = units->config.loop,
                      .ops = &unit_ops,
                      .ctx = u,
                      .name = relay ? "relay" : "ckptsrv",
                      .not_once = relay ? "the job's own relay did not start"
                                        : "the job's own checkpoint server cannot be started",
                      .no_more = relay ? "the job's own relay has ended"
                                       : "the job's own checkpoint server ends again and again",
                      .returns = has(u, NODE_UNIT_RETURNS)};
    if (take_copy(u, err) == CW_OK && choose_places(u, err) == CW_OK)
        unit_start(&u->unit);
    else
        on_failed(u, UNIT_NO_STATUS, err);
    return err->code = CW_OK;
}

int units_start(struct units *units, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node_unit order;

    if (!node_unit_get(body, size, &order))
        return cw_err_set(err, CW_EPROTO, "an order to start a unit that makes no sense");
    start(units, &order, err);
    sodium_memzero(order.key, sizeof(order.key));
    return err->code;
}

int units_kill(struct units *units, const uint8_t *body, size_t size, struct cw_err *err)
{
    struct node_event event;

    if (!node_event_get(body, size, &event) || event.of >= NODE_UNITS_MAX)
        return cw_err_set(err, CW_EPROTO, "an order to kill a unit that makes no sense");
    unit_kill(&units->unit[event.of].unit);
    return CW_OK;
}

/* --- their processes --- */

static struct job_unit *unit_of(const struct units *units, pid_t pid)
{
    for (uint32_t i = 0; units && pid > 0 && i < NODE_UNITS_MAX; i++)
        if (units->unit[i].unit.pid == pid)
            return (struct job_unit *)&units->unit[i];
    return NULL;
}

bool units_have(const struct units *units, pid_t pid)
{
    return unit_of(units, pid);
}

void units_child_ended(struct units *units, pid_t pid, int status)
{
    struct job_unit *u = unit_of(units, pid);

    if (u)
        unit_ended(&u->unit, status);
}
