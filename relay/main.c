/* `causeway relay`: one relay in the foreground. */
#include "relay/main.h"
#include "common/fd.h"
#include "common/signals.h"
#include "relay/channel_file.h"
#include "relay/dial.h"
#include "relay/keeper.h"
#include "relay/log_files.h"
#include "relay/options.h"
#include "relay/place.h"
#include "relay/region.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SPIN_NS_DEFAULT 200000ull
#define RETURN_POLL_MS 1000 /* between looks at a disk that says nothing */

struct relay_options {
    struct relay_settings settings;
    struct relay_place place;
    int ready_fd; /* -1, or where to say that all listeners are open */
    struct channel_file channel;
    int state_fd; /* -1, or what is kept of a relay whose process ends, and is there for the next */
    int disk_fd;  /* -1, or the file of its log, likewise */
    uint32_t copy_count; /* relays of its job of whose logs it may keep a copy ... */
    int copy_fd;         /* ... in memory that outlives it, too: of the first; others follow */
    uint32_t incarnation;
    uint64_t spin_ns;
    bool drop_unreadable; /* of jobs in a log that survives the loss of power */
    bool list, help;
};

static const struct relay_engine_ops *running_ops;
static struct relay_engine *running;

static const char usage[] =
    "usage: causeway relay --listen ADDRESS [options]\n"
    "\n"
    "Runs one relay in the foreground until SIGTERM or SIGINT. ADDRESS is unix:PATH or\n"
    "tcp:HOST:PORT; --listen may be repeated. With --log-safety file this process is the keeper "
    "of\n"
    "the relay, which it starts again; with sync, --log-dir DIR is of this relay alone, and where "
    "its\n"
    "next start goes on, with the same --key-file.\n"
    "\n";

static int add_address(void *place, const char *address, struct cw_err *err)
{
    return relay_place_add(place, address, err);
}

static int keep_listener(void *place, const char *words, struct cw_err *err)
{
    return relay_place_keep(place, words, err);
}

/* FIRST,COUNT: descriptor FIRST + n is for the copy of relay n of the job. */
static int take_copies(void *to, const char *words, struct cw_err *err)
{
    struct relay_options *o = to;
    int end = 0;

    if (sscanf(words, "%d,%u%n", &o->copy_fd, &o->copy_count, &end) == 2 && !words[end] &&
        o->copy_fd > STDERR_FILENO && o->copy_count > 0 && o->copy_count <= CW_RELAYS_MAX)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--copy-fds %s: expected FIRST,COUNT of 1 to %u descriptors",
                      words, CW_RELAYS_MAX);
}

#define AT(field) offsetof(struct relay_options, field)

static const struct cw_option place_options[] = {
    {"listen", .argument = "ADDRESS", CW_OPTION_CALL, AT(place), .take = add_address,
     .help = "where ranks and dispatchers connect"},
    {"key-file", .argument = "FILE", CW_OPTION_TEXT, AT(place.key_file),
     .help = "the relay key (made when missing); for a unix address the default is PATH.key, "
             "removed at the end"},
    {"listen-fd", .argument = "WORDS", CW_OPTION_CALL, AT(place), .take = keep_listener},
    {"key-fd", .argument = "FD", CW_OPTION_FD, AT(place.key_fd)},
    {0}};

/* The descriptors are for the own use of a dispatcher or keeper. */
static const struct cw_option own_options[] = {
    {"drop-unreadable", .kind = CW_OPTION_FLAG, .at = AT(drop_unreadable),
     .help = "with --log-safety sync: jobs in --log-dir whose log cannot be read are given up and "
             "deleted; else the relay does not start"},
    {"spin", .argument = "TIME", CW_OPTION_TIME, AT(spin_ns),
     .help = "how long to spin before sleeping (default 0.2ms)"},
    {"threads", .argument = "N", CW_OPTION_NUMBER, AT(settings.pools.threads), 1, RELAY_POOL_MAX,
     .help = "of engine pool: threads that take turns (default 2)"},
    {"receivers", .argument = "N", CW_OPTION_NUMBER, AT(settings.pools.receivers), 1,
     RELAY_POOL_MAX, .help = "of engine pipeline: threads that receive (default 1)"},
    {"loggers", .argument = "N", CW_OPTION_NUMBER, AT(settings.pools.loggers), 0, RELAY_POOL_MAX,
     .help = "... that match and log (default 0: the receivers do it)"},
    {"senders", .argument = "N", CW_OPTION_NUMBER, AT(settings.pools.senders), 1, RELAY_POOL_MAX,
     .help = "... that send (default 1)"},
    {"ready-fd", .argument = "FD", CW_OPTION_FD, AT(ready_fd)},
    {"state-fd", .argument = "FD", CW_OPTION_FD, AT(state_fd)},
    {"disk-fd", .argument = "FD", CW_OPTION_FD, AT(disk_fd)},
    {"channel-fd", .argument = "FD", CW_OPTION_FD, AT(channel.memory)},
    {"channel-disk-fd", .argument = "FD", CW_OPTION_FD, AT(channel.file)},
    {"copy-fds", .argument = "FIRST,COUNT", CW_OPTION_CALL, 0, .take = take_copies},
    {"incarnation", .argument = "N", CW_OPTION_NUMBER, AT(incarnation), 1, UINT32_MAX},
    {"list-engines", .kind = CW_OPTION_FLAG, .at = AT(list), .help = "one line for each engine"},
    {"help", .kind = CW_OPTION_FLAG, .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    .command = "causeway relay",
    .usage = usage,
    .groups = (const struct cw_option_group[]){{NULL, place_options, 0},
                                               {NULL, relay_setting_options, AT(settings)},
                                               {NULL, own_options, 0},
                                               {0}}};

static void list_engines(void)
{
    for (int i = 0; relay_engines[i]; i++)
        printf("%-10s %s\n", relay_engines[i]->name, relay_engines[i]->summary);
}

/* What survives the loss of power has to be found again, and its sessions go on with the same key
 * only. */
static int check_sync(const struct relay_options *o, struct cw_err *err)
{
    const struct relay_settings *settings = &o->settings;

    if (settings->log_safety != RELAY_LOG_SYNCED)
        return CW_OK;
    if (!settings->log_dir)
        return cw_err_set(err, CW_EINVAL,
                          "--log-safety sync needs --log-dir DIR: a directory of this relay alone");
    if (!o->place.key_file && o->place.key_fd < 0)
        return cw_err_set(err, CW_EINVAL,
                          "--log-safety sync needs --key-file FILE, with the key that the relay "
                          "will have the next time");
    if (settings->log_disk == 0)
        return cw_err_set(err, CW_EINVAL, "--log-disk 0: --log-safety sync keeps the log on disk");
    return CW_OK;
}

static int check_copies(const struct relay_options *o, struct cw_err *err)
{
    if (o->copy_count > 0 && (o->settings.log_safety != RELAY_LOG_COPIED || o->state_fd < 0))
        return cw_err_set(err, CW_EINVAL, "--copy-fds needs --log-safety copy and --state-fd");
    return CW_OK;
}

/* Returns -1 to go on, or an exit code. */
static int parse(struct relay_options *o, int argc, char **argv, struct cw_err *err)
{
    if (cw_options_parse(&options, argc, argv, o, NULL, err) < 0)
        return 2;
    if (o->help)
        cw_options_help(&options, stdout);
    if (o->list && !o->help)
        list_engines();
    if (o->help || o->list)
        return 0;
    if (optind < argc)
        cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see causeway relay --help",
                   argv[optind]);
    else if (o->place.count == 0)
        cw_err_set(err, CW_EINVAL, "no --listen ADDRESS; see causeway relay --help");
    else if (check_sync(o, err) == CW_OK && check_copies(o, err) == CW_OK)
        return -1;
    return 2;
}

static void on_signal(int signal_number)
{
    int saved = errno;

    (void)signal_number;
    running_ops->stop(running);
    errno = saved;
}

static void handle_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (!cw_signal_ignored(numbers[i]))
            sigaction(numbers[i], &action, NULL);
    cw_signals_ignore_writes();
    action.sa_handler = SIG_DFL;
    action.sa_flags = SA_NOCLDWAIT; /* nobody waits for the tunnels to other relays */
    sigaction(SIGCHLD, &action, NULL);
}

static void announce(const struct relay_options *o)
{
    for (int i = 0; i < o->place.count; i++) {
        if (o->ready_fd >= 0)
            dprintf(o->ready_fd, "%s\n", o->place.listeners[i].address.text);
        else
            fprintf(stderr, "causeway relay: listening on %s (engine %s)\n",
                    o->place.listeners[i].address.text, o->settings.engine->name);
    }
    if (o->ready_fd >= 0)
        close(o->ready_fd);
}

static int serve(const struct relay_options *o, struct relay_core *core, struct dial *dial,
                 struct disk *disk, uint32_t *jobs, struct cw_err *err)
{
    struct relay_listener listeners[RELAY_LISTENERS_MAX];
    struct relay_engine_config config = {.core = core,
                                         .listeners = listeners,
                                         .listener_count = o->place.count + (disk ? 2 : 1),
                                         .dialler = dial_dialler(dial),
                                         .disk = disk_ops(disk),
                                         .give_back = region_give_back,
                                         .spin_ns = o->spin_ns,
                                         .pools = o->settings.pools,
                                         .rings = !o->settings.rings_off};
    const struct relay_engine_ops *engine = o->settings.engine;
    int failed;

    memcpy(listeners, o->place.listeners, sizeof(o->place.listeners));
    listeners[o->place.count] = dial_listener(dial);
    if (disk)
        listeners[o->place.count + 1] = disk_listener(disk);
    failed = engine->open(&running, &config, err);
    if (failed)
        return failed;
    running_ops = engine;
    handle_signals();
    announce(o);
    failed = engine->run(running, err);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    *jobs = relay_core_jobs(core);
    engine->close(running);
    return failed;
}

/* Returns whether there were results. */
static bool carry_out(struct relay_core *core, const struct relay_disk *disk)
{
    struct relay_log_done done;
    struct relay_log_io io;
    bool any = false;

    while (relay_core_next_io(core, &io))
        disk->take(disk->ctx, &io);
    while (disk->next_done(disk->ctx, &done)) {
        relay_core_io_done(core, &done);
        any = true;
    }
    return any;
}

/* A log in a directory stays as it is where a part of it cannot be read now: what we have made of
 * its journal in memory is not for the next one, who reads the journal again. */
static int keep_unread(const struct relay_options *o, const struct log_dir *dir,
                       struct ledger_memory *ledger, const struct relay_returned *returned,
                       struct cw_err *err)
{
    if (returned->unread == 0 || dir->dir < 0 || o->drop_unreadable)
        return CW_OK;
    ledger->header.magic = 0;
    return cw_err_set(err, CW_EINVAL,
                      "--log-dir %s: %u of its jobs cannot be taken up (%s); nothing there was "
                      "changed. 'causeway log verify' says more; start the relay again when the "
                      "disk can be read, or with --drop-unreadable to delete the logs of these "
                      "jobs, or give another directory",
                      dir->path, returned->unread, returned->why);
}

/* What a relay has left whose place we take. */
static int take_up(const struct relay_options *o, struct relay_core *core,
                   const struct log_files *files, struct ledger_memory *ledger, struct cw_err *err)
{
    struct disk *disk = files->disk;
    const struct relay_disk ops = disk_ops(disk);
    struct relay_returned returned = {0};

    while (!relay_core_return(core, &returned)) {
        struct pollfd results = {.fd = disk ? disk_listener(disk).fd : -1, .events = POLLIN};
        eventfd_t count;

        if (!disk)
            return cw_err_set(err, CW_EINVAL,
                              "what a relay has left is on disk, and there is none");
        if (!carry_out(core, &ops) && poll(&results, 1, RETURN_POLL_MS) > 0)
            eventfd_read(results.fd, &count);
    }
    if (keep_unread(o, &files->dir, ledger, &returned, err) == CW_OK && returned.lost > 0)
        fprintf(stderr, "causeway relay: %u jobs could not be taken up again; the last one: %s\n",
                returned.lost, returned.why);
    return err->code;
}

/* *jobs: how many were left. */
static int serve_jobs(const struct relay_options *o, struct relay_core *core,
                      const struct log_files *files, struct ledger_memory *ledger, uint32_t *jobs,
                      struct cw_err *err)
{
    struct dial *dial = dial_open(err);

    if (!dial)
        return err->code;
    if (take_up(o, core, files, ledger, err) == CW_OK)
        serve(o, core, dial, files->disk, jobs, err);
    dial_close(dial);
    return err->code;
}

/* Closes the files. What was restored and not served stays there. */
static int serve_core(const struct relay_options *o, const struct relay_core_config *config,
                      struct log_files *files, struct cw_err *err)
{
    struct relay_core *core = relay_core_new(config);
    uint32_t jobs = 0;

    if (core)
        serve_jobs(o, core, files, config->ledger, &jobs, err);
    else
        cw_err_set(err, CW_ENOMEM, "no memory for a relay");
    log_files_settle(files); /* before the memory goes that it may be writing */
    if (core)
        relay_core_free(core);
    if (jobs > 0 && files->dir.dir >= 0)
        fprintf(stderr, "causeway relay: the log of %u jobs stays in %s for the next start\n", jobs,
                files->dir.path);
    log_files_close(files, jobs > 0 || err->code);
    return err->code;
}

/* Memory for the copies of other relays' logs, each like that of our own. */
static int map_copies(const struct relay_options *o, struct relay_core_config *config,
                      struct cw_err *err)
{
    for (uint32_t i = 0; i < o->copy_count; i++)
        if (region_open_outliving(o->copy_fd + (int)i, o->settings.memory_max,
                                  &config->copies[i].region, &config->copies[i].memory, err) < 0)
            return err->code;
    return CW_OK;
}

static void unmap_copies(const struct relay_core_config *config)
{
    for (uint32_t i = 0; i < CW_RELAYS_MAX; i++)
        if (config->copies[i].memory)
            region_close_outliving(&config->copies[i].region, config->copies[i].memory);
}

static int run(struct relay_options *o, const struct relay_region *region,
               struct ledger_memory *ledger, struct cw_err *err)
{
    const struct relay_settings *settings = &o->settings;
    struct relay_core_config config = {.memory_max = settings->memory_max,
                                       .log_memory = relay_settings_log_memory(settings),
                                       .region = *region,
                                       .channel = channel_file_source(&o->channel),
                                       .ledger = ledger,
                                       .journal.copies = settings->log_safety == RELAY_LOG_COPIED,
                                       .incarnation = o->incarnation};
    struct log_files files;
    int failed = relay_place_open(&o->place, err);

    if (failed)
        return failed;
    config.key = o->place.key;
    failed = log_files_open(&files, settings, o->disk_fd, o->state_fd >= 0, &config, err);
    if (!failed && map_copies(o, &config, err) == CW_OK)
        serve_core(o, &config, &files, err);
    unmap_copies(&config);
    relay_place_close(&o->place);
    return err->code;
}

static int run_on_region(struct relay_options *o, struct cw_err *err)
{
    struct ledger_memory *ledger = NULL;
    struct relay_region region;

    if (o->state_fd < 0) {
        region = region_open(o->settings.memory_max);
        run(o, &region, NULL, err);
        region_close(&region);
    } else if (region_open_outliving(o->state_fd, o->settings.memory_max, &region, &ledger, err) ==
               CW_OK) {
        run(o, &region, ledger, err);
        region_close_outliving(&region, ledger);
    }
    return err->code;
}

/* Whether the engine can run here, before anything is opened; `auto` becomes one that can. Where a
 * log is copied, it has to know when nothing is left to be read of a rank (relay_core_covers). */
static int settle_engine(struct relay_settings *settings, struct cw_err *err)
{
    struct cw_err why = {0};

    if (settings->log_safety == RELAY_LOG_COPIED && !settings->engine)
        settings->engine = relay_engine_find(RELAY_ENGINE_COPIES);
    if (settings->log_safety == RELAY_LOG_COPIED &&
        strcmp(settings->engine->name, RELAY_ENGINE_COPIES) != 0)
        return cw_err_set(err, CW_EINVAL, "--log-safety copy needs --engine " RELAY_ENGINE_COPIES);
    if (settings->engine)
        return settings->engine->check ? settings->engine->check(err) : CW_OK;
    settings->engine = relay_engine_auto(&why);
    if (why.code)
        fprintf(stderr, "causeway relay: --engine auto takes %s: %s\n", settings->engine->name,
                why.text);
    return CW_OK;
}

/* Returns `code`; says why. */
static int report(int code, const struct cw_err *err)
{
    if (err->code)
        fprintf(stderr, "causeway relay: %s\n", err->text);
    return code;
}

static void on_listens(void *ctx)
{
    struct relay_options *o = ctx;

    announce(o);
    o->ready_fd = -1;
}

static int run_keeper(struct relay_options *o, int argc, char **argv, struct cw_err *err)
{
    struct keeper_config config = {.settings = &o->settings,
                                   .place = &o->place,
                                   .argc = argc,
                                   .argv = argv,
                                   .ctx = o,
                                   .listens = on_listens};
    int code;

    if (relay_place_open(&o->place, err) < 0)
        return 1;
    code = keeper_run(&config, err);
    relay_place_close(&o->place);
    return code;
}

/* The name tells a kept one from its keeper, which has the same words; who keeps it has raised the
 * limit. */
static int run_relay(struct relay_options *o, struct cw_err *err)
{
    if (o->place.kept)
        prctl(PR_SET_NAME, "causeway-relay");
    else
        cw_raise_descriptor_limit();
    return run_on_region(o, err) < 0 ? 1 : 0;
}

int cmd_relay(int argc, char **argv)
{
    struct relay_options o = {.place.key_fd = -1,
                              .ready_fd = -1,
                              .channel = {-1, -1},
                              .state_fd = -1,
                              .disk_fd = -1,
                              .incarnation = 1,
                              .spin_ns = SPIN_NS_DEFAULT};
    struct cw_err err = {0};
    int code;

    relay_settings_init(&o.settings);
    code = parse(&o, argc, argv, &err);
    if (code < 0 && settle_engine(&o.settings, &err) < 0)
        code = 1;
    if (code >= 0)
        return report(code, &err);
    /* with --state-fd its keeper is another program */
    if (o.settings.log_safety == RELAY_LOG_IN_MEMORY || o.state_fd >= 0)
        return report(run_relay(&o, &err), &err);
    cw_raise_descriptor_limit();
    return report(run_keeper(&o, argc, argv, &err), &err);
}
