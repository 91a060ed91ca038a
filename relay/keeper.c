#include "relay/keeper.h"
#include "common/signals.h"
#include "common/unit.h"
#include "relay/process.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define NS_IN_S 1000000000u
#define WORDS_ADDED 32 /* to those that we were started with */

struct keeper {
    const struct keeper_config *config;
    struct relay_kept kept;
    struct loop *loop;
    struct signals signals;
    struct unit unit;
    bool over;
    int code;
    struct cw_err *err;
};

static void keeper_end(struct keeper *k, int code)
{
    k->over = true;
    k->code = code;
}

/* --- what it is started with ------------------------------------------------------------------ */

/* Descriptors that were handed down to us are not there for it. */
static bool is_descriptor(const char *word)
{
    return strcmp(word, "--ready-fd") == 0 || strcmp(word, "--key-fd") == 0;
}

/* Our own words, and what they mean here: each of its processes has the same. */
static int make_command(void *ctx, struct command *command, struct cw_err *err)
{
    struct keeper *k = ctx;
    const struct keeper_config *config = k->config;
    const struct relay_place *place = config->place;

    if (config->argc > (int)(COMMAND_WORDS_MAX - WORDS_ADDED))
        return cw_err_set(err, CW_EINVAL, "more than %u words are too many for a relay's keeper",
                          COMMAND_WORDS_MAX - WORDS_ADDED);
    for (int i = 1; i < config->argc; i++)
        if (is_descriptor(config->argv[i]))
            i++;
        else
            command_word(command, config->argv[i]);
    command_word(command, "--engine");
    command_word(command, config->settings->engine->name);
    command_number(command, "--memory-max", "%llu",
                   (unsigned long long)config->settings->memory_max);
    for (int i = 0; i < place->count; i++)
        command_fd(command, "--listen-fd", place->listeners[i].fd);
    if (relay_kept_make(&k->kept, relay_settings_disk_dir(config->settings), err) < 0)
        return err->code;
    command_fd(command, "--state-fd", k->kept.state_fd);
    command_fd(command, "--disk-fd", k->kept.disk_fd);
    command->death = SIGKILL;
    return command_key(command, place->key, err);
}

/* --- what becomes of it ----------------------------------------------------------------------- */

/* What is in a log may take its time to be read, the first time. */
static void on_started(void *ctx, pid_t pid)
{
    struct keeper *k = ctx;

    (void)pid;
    if (k->unit.restarts.count == 0)
        loop_timer_set(&k->unit.timer, LOOP_NEVER);
}

/* One that never listened has no jobs, and another one would not listen either. */
static void on_listens(void *ctx)
{
    struct keeper *k = ctx;

    if (!k->unit.returns)
        k->config->listens(k->config->ctx);
    k->unit.returns = true;
}

static void describe_end(const struct keeper *k, char how[128])
{
    int status = k->unit.status;

    if (k->unit.why[0])
        snprintf(how, 128, "the relay did not listen for %llu s and was killed",
                 RELAY_RETURN_NS_MAX / NS_IN_S);
    else if (WIFSIGNALED(status))
        snprintf(how, 128, "the relay was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, 128, "the relay ended with code %d", WEXITSTATUS(status));
}

static void say_again(const struct keeper *k, const char *how)
{
    fprintf(stderr, "causeway relay: %s; starting it again on its log (%u of %u)\n", how,
            k->unit.restarts.in_row, RELAY_RESTARTS_MAX);
}

static void on_ended(void *ctx, int status, const char *why)
{
    char how[128];

    (void)status;
    (void)why;
    describe_end(ctx, how);
    say_again(ctx, how);
}

static void on_not_started(void *ctx, const struct cw_err *err)
{
    say_again(ctx, err->text);
}

static void on_failed(void *ctx, int status, const struct cw_err *err)
{
    struct keeper *k = ctx;
    char how[128];

    keeper_end(k, 1);
    describe_end(k, how);
    if (status != UNIT_NO_STATUS)
        cw_err_set(k->err, CW_ESYS, "%s, after it was started again %u times", how,
                   k->unit.restarts.in_row);
    else if (k->unit.returns || k->unit.status == UNIT_NO_STATUS)
        *k->err = *err; /* it cannot be started */
    else if (WIFEXITED(k->unit.status))
        k->code = WEXITSTATUS(k->unit.status); /* it has said why */
    else
        cw_err_set(k->err, CW_ESYS, "%s before it listened", how);
}

static const struct unit_ops unit_ops = {make_command, on_started, on_listens,
                                         on_ended,     on_failed,  on_not_started};

/* One that ends well was asked to. */
static void on_signal(void *ctx, int number)
{
    struct keeper *k = ctx;
    int status;

    if (number != SIGCHLD)
        keeper_end(k, 0);
    if (k->over || k->unit.pid <= 0 || waitpid(k->unit.pid, &status, WNOHANG) != k->unit.pid)
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        k->unit.pid = 0;
        keeper_end(k, 0);
    } else {
        unit_ended(&k->unit, status);
    }
}

/* --- its life --------------------------------------------------------------------------------- */

static void keeper_close(struct keeper *k)
{
    unit_end(&k->unit, SIGTERM);
    unit_await_end(&k->unit);
    relay_kept_close(&k->kept);
    signals_close(&k->signals);
    loop_free(k->loop);
}

int keeper_run(const struct keeper_config *config, struct cw_err *err)
{
    struct keeper k = {
        .config = config, .kept = {.state_fd = -1, .disk_fd = -1}, .code = 1, .err = err};

    prctl(PR_SET_NAME, "causeway-keeper");
    k.loop = loop_new(err);
    if (k.loop && signals_open(&k.signals, k.loop, on_signal, &k, err) == CW_OK) {
        k.unit = (struct unit){.loop = k.loop, .ops = &unit_ops, .ctx = &k, .name = "relay"};
        unit_start(&k.unit);
        while (!k.over)
            loop_turn(k.loop, LOOP_NEVER);
    }
    keeper_close(&k);
    return k.code;
}
