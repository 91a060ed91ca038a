#include "dispatcher/options/options.h"
#include "common/frame.h"
#include "common/parse.h"
#include "common/setup.h"
#include "dispatcher/job/homes.h"
#include "dispatcher/job/job.h"
#include "dispatcher/options/grid_options.h"
#include "dispatcher/stage/stage_program.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const char run_usage[] =
    "usage: causeway run [options] -n RANKS PROGRAM [ARGUMENTS] [: [options] -n RANKS PROGRAM "
    "...]\n"
    "\n"
    "Runs an MPI program (Debian's MPICH, unmodified) with every message carried by a relay.\n"
    "\n"
    "what most jobs need (-n, --wdir and --env are of one program, and may stand after a ':' "
    "again):\n"
    "  -n, -np RANKS        how many ranks (default 1)\n"
    "  --wdir DIR           working directory\n"
    "  --env NAME=VALUE     set in its environment\n"
    "  --host HOST[:SLOTS],...\n"
    "                       run on these hosts, with so many slots for ranks (default: their\n"
    "                       cores); may be given again (default: the hosts of a Slurm allocation,\n"
    "                       if it has more than one; otherwise this machine alone)\n"
    "  --hostfile FILE      the same from a file: a line HOST[:SLOTS], or HOST slots=N "
    "max_slots=N,\n"
    "                       for each\n"
    "  --output-dir DIR     write what the ranks print to DIR/rank.R.out and DIR/rank.R.err\n"
    "  --timeout TIME       end the job after this time (seconds, or like 5m); exit code 124\n"
    "  --verbose            say what happens\n"
    "  --job-dir DIR        keep in DIR, a new directory on a disk, all that is needed to go on "
    "after\n"
    "                       a crash of causeway run, or of the machine; it is removed when the "
    "job\n"
    "                       ends well\n"
    "  --resume DIR         (alone, or with --timeout, --stats, --verbose) go on with that job\n"
    "  --no-log             no recovery: keep no log; a crash ends the job\n"
    "the environment of all programs:\n"
    "  --genv NAME=VALUE    set in every environment\n"
    "  -x NAME[=VALUE]      the same; without a value: the one that it has here\n"
    "what is printed, and its end:\n"
    "  --tag-output         begin every line that is printed with its rank: [R]\n"
    "  --events FILE        write what happens to the ranks, a line of JSON for each event\n"
    "  --stats              count messages, bytes, polls and sleeps, and print them at the end\n"
    "  --help               this text\n"
    "  --kill-after TIME    after a signal or --timeout, kill ranks that have not ended (default "
    "30s)\n"
    "several machines (an agent is started on each, and the ranks by it):\n"
    "  --rankfile FILE      the slot of each rank: lines rank R=HOST slot=S\n"
    "  --ppn N              ranks on each host (default: as many as it has slots)\n"
    "  --map-by slot|node|site\n"
    "                       fill one host after the other, or take hosts in turn, or give each\n"
    "                       site of a grid its part (default slot)\n"
    "  --oversubscribe      ranks may share slots when there are too few\n"
    "  --spares N           the last N hosts get no ranks before others are lost\n"
    "  --launcher ssh|srun|COMMAND\n"
    "                       starts the agents (default ssh)\n"
    "  --launcher-args TEXT words for it\n"
    "  --agent PATH         causeway on the hosts (default: the path that it has here)\n"
    "  --host-timeout TIME  a host that is silent for this time is lost, and its ranks are "
    "started\n"
    "                       on others (default 10s)\n"
    "  --relay-at host|cluster\n"
    "                       a relay on each host with ranks, or one here for all (default host)\n"
    "  --ckptsrv HOST       the job's own checkpoint server stands there, also where no ranks are\n"
    "                       (default: on this machine)\n"
    "  --stage              send the programs to the hosts\n"
    "  --stage-dir DIR      ... below DIR there (default " STAGE_DIR ")\n"
    "a grid (sites that see each other through SSH alone; see causeway up):\n"
    "  -f FILE              run on this grid, with the relays and checkpoint servers of its sites\n"
    "  --here SITE          this machine is at that site; -: at none (default: by its name)\n"
    "  --restart-at site|grid\n"
    "                       where ranks of lost hosts are started again (default site)\n"
    "  --relay-at SITE      the relay of that site keeps the logs of all ranks, also of those "
    "that\n"
    "                       run elsewhere (default: each site those of its ranks)\n"
    "recovery (a crashed rank is restarted alone, and repeats what it did before):\n"
    "  --trust-files        also restart ranks that write to files which other ranks open: the\n"
    "                       program gives the same result when it writes to them again\n"
    "  --log-lost go-on|end what to do when a rank can no longer be restarted, for instance "
    "because\n"
    "                       its log has no room any more (default go-on)\n"
    "  --check-contents some|all|none\n"
    "                       how much of each message a restarted rank has to send again as "
    "before:\n"
    "                       all bytes, or 1 KiB of what is larger (default some)\n"
    "  --contents-differ go-on|end\n"
    "                       what to do when a rank repeats a message with other contents (default\n"
    "                       go-on, with a warning)\n"
    "  --max-restarts N     of each rank (default 100)\n"
    "  --slots N            places for processes (default and minimum: the number of ranks)\n"
    "  --alive-period TIME  between two signs of life of a rank (default 500ms)\n"
    "  --alive-timeout TIME a rank that is silent for this time is replaced (default 10s; with "
    "hosts\n"
    "                       at least twice the host-timeout)\n"
    "  --resume-timeout TIME\n"
    "                       a broken connection is opened again within this time, and nothing is\n"
    "                       lost; after it, the process counts as crashed (default: the\n"
    "                       alive-timeout)\n"
    "images (of the processes of ranks, so that less is to be repeated and logs stay short):\n"
    "  --no-ckpt            take none; also without a log (--no-log)\n"
    "  --ckpt-every TIME    of each rank one in this time (default: by what they cost and gain)\n"
    "  --mtbf TIME          mean time between crashes of one rank, not of the job (default: as\n"
    "                       observed)\n"
    "  --ckpt-dir DIR       where the own checkpoint server keeps them (default: a new directory\n"
    "                       under $TMPDIR or /var/tmp, which is removed at the end)\n"
    "  --ckpt-max BYTES     what they may take there (default: half of what is free)\n"
    "  --ckpt-server ADDRESS\n"
    "                       use this checkpoint server (unix:PATH or tcp:HOST:PORT) instead of "
    "one\n"
    "                       of its own (given again: several servers)\n"
    "  --ckpt-key-file FILE the key of that server (default for unix:PATH: PATH.key)\n"
    "relays:\n"
    "  --relay ADDRESS      use this relay (unix:PATH or tcp:HOST:PORT) instead of one of its own\n"
    "                       (given again: several relays)\n"
    "  --key-file FILE      the key of that relay (default for unix:PATH: PATH.key)\n"
    "  --relays K           relays of its own, each the home of some ranks (default 1)\n"
    "  --relay-map LIST     which: RELAY[*COUNT],... for all ranks in order, relays counted from "
    "0\n"
    "                       (default: ranks in turn)\n"
    "  --collectives sites|flat\n"
    "                       with several relays: collectives cross between sites, which are "
    "relays\n"
    "                       with their ranks, as few times as they can, or as MPICH's own do\n"
    "                       (default sites)\n"
    "  --engine NAME, --threads N, --receivers N, --loggers N, --senders N,\n"
    "  --rings on|off, --memory-max BYTES, --log-memory BYTES, --log-dir DIR,\n"
    "  --log-disk BYTES, --log-safety memory|file\n"
    "                       of the own relay; see causeway relay --help\n"
    "  --spin TIME          how long ranks and relay spin before they sleep (default: chosen)\n"
    "drills:\n"
    "  --fault WHAT         a drill, may be given again: kill:RANK[,RANK...]@TIME,\n"
    "                       stop:RANK[,RANK...]@TIME, kill:RANK[,RANK...]@event:N,\n"
    "                       kill:random@TIME (about every TIME); to break connections instead:\n"
    "                       cut:RANK[,RANK...]@TIME, cut:relays@TIME, cut:dispatcher@TIME;\n"
    "                       kill:relay@TIME, kill:relayN@TIME for the own relay's process\n"
    "  --fault-seed N       chooses the random ones\n"
    "\n"
    "Exit code: that of the first rank that failed, 128 + signal, or MPI_Abort's; 0 when all ended "
    "well.\n";

enum {
    OPT_RANKS = 256, /* getopt returns characters too */
    OPT_WDIR,
    OPT_ENV,
    OPT_GENV,
    OPT_X,
    OPT_RELAY,
    OPT_RELAYS,
    OPT_RELAY_MAP,
    OPT_COLLECTIVES,
    OPT_KEY_FILE,
    OPT_OUTPUT_DIR,
    OPT_TAG,
    OPT_TIMEOUT,
    OPT_KILL_AFTER,
    OPT_SPIN,
    OPT_STATS,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_NO_LOG,
    OPT_TRUST_FILES,
    OPT_LOG_LOST,
    OPT_CHECK_CONTENTS,
    OPT_CONTENTS_DIFFER,
    OPT_MAX_RESTARTS,
    OPT_SLOTS,
    OPT_ALIVE_PERIOD,
    OPT_ALIVE_TIMEOUT,
    OPT_RESUME_TIMEOUT,
    OPT_FAULT,
    OPT_FAULT_SEED,
    OPT_EVENTS,
    OPT_NO_CKPT,
    OPT_CKPT_EVERY,
    OPT_MTBF,
    OPT_CKPT_DIR,
    OPT_CKPT_MAX,
    OPT_CKPT_SERVER,
    OPT_CKPT_KEY_FILE,
    OPT_JOB_DIR,
    OPT_RESUME,
    OPT_GRID,
    OPT_HERE,
    OPT_RESTART_AT,
    OPT_RELAY_SETTING,                           /* + enum relay_option */
    OPT_HOST = OPT_RELAY_SETTING + RELAY_OPTIONS /* + enum host_option */
};

static const struct option own_options[] = {
    {"n", required_argument, NULL, OPT_RANKS},
    {"np", required_argument, NULL, OPT_RANKS},
    {"wdir", required_argument, NULL, OPT_WDIR},
    {"env", required_argument, NULL, OPT_ENV},
    {"genv", required_argument, NULL, OPT_GENV},
    {"x", required_argument, NULL, OPT_X},
    {"relay", required_argument, NULL, OPT_RELAY},
    {"relays", required_argument, NULL, OPT_RELAYS},
    {"relay-map", required_argument, NULL, OPT_RELAY_MAP},
    {"collectives", required_argument, NULL, OPT_COLLECTIVES},
    {"key-file", required_argument, NULL, OPT_KEY_FILE},
    {"output-dir", required_argument, NULL, OPT_OUTPUT_DIR},
    {"tag-output", no_argument, NULL, OPT_TAG},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"kill-after", required_argument, NULL, OPT_KILL_AFTER},
    {"spin", required_argument, NULL, OPT_SPIN},
    {"stats", no_argument, NULL, OPT_STATS},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"help", no_argument, NULL, OPT_HELP},
    {"no-log", no_argument, NULL, OPT_NO_LOG},
    {"trust-files", no_argument, NULL, OPT_TRUST_FILES},
    {"log-lost", required_argument, NULL, OPT_LOG_LOST},
    {"check-contents", required_argument, NULL, OPT_CHECK_CONTENTS},
    {"contents-differ", required_argument, NULL, OPT_CONTENTS_DIFFER},
    {"max-restarts", required_argument, NULL, OPT_MAX_RESTARTS},
    {"slots", required_argument, NULL, OPT_SLOTS},
    {"alive-period", required_argument, NULL, OPT_ALIVE_PERIOD},
    {"alive-timeout", required_argument, NULL, OPT_ALIVE_TIMEOUT},
    {"resume-timeout", required_argument, NULL, OPT_RESUME_TIMEOUT},
    {"fault", required_argument, NULL, OPT_FAULT},
    {"fault-seed", required_argument, NULL, OPT_FAULT_SEED},
    {"events", required_argument, NULL, OPT_EVENTS},
    {"no-ckpt", no_argument, NULL, OPT_NO_CKPT},
    {"ckpt-every", required_argument, NULL, OPT_CKPT_EVERY},
    {"mtbf", required_argument, NULL, OPT_MTBF},
    {"ckpt-dir", required_argument, NULL, OPT_CKPT_DIR},
    {"ckpt-max", required_argument, NULL, OPT_CKPT_MAX},
    {"ckpt-server", required_argument, NULL, OPT_CKPT_SERVER},
    {"ckpt-key-file", required_argument, NULL, OPT_CKPT_KEY_FILE},
    {"job-dir", required_argument, NULL, OPT_JOB_DIR},
    {"resume", required_argument, NULL, OPT_RESUME},
    {"f", required_argument, NULL, OPT_GRID},
    {"here", required_argument, NULL, OPT_HERE},
    {"restart-at", required_argument, NULL, OPT_RESTART_AT},
};
#define OWN_OPTIONS (sizeof(own_options) / sizeof(*own_options))

static int add_env(const char **env, uint32_t *count, const char *what, const char *text,
                   struct cw_err *err)
{
    if (text[0] == '=' || !strchr(text, '='))
        return cw_err_set(err, CW_EINVAL, "%s '%s': expected NAME=VALUE", what, text);
    if (*count == OPTIONS_ENV_MAX)
        return cw_err_set(err, CW_EINVAL, "%s '%s': more than %d settings", what, text,
                          OPTIONS_ENV_MAX);
    env[(*count)++] = text;
    return CW_OK;
}

/* -x NAME exports what is set here, which every rank inherits anyway; it must be set. */
static int take_export(struct run_options *o, const char *text, struct cw_err *err)
{
    if (strchr(text, '='))
        return add_env(o->env, &o->env_count, "-x", text, err);
    if (!getenv(text))
        return cw_err_set(err, CW_EINVAL, "-x %s: not set in this environment", text);
    return CW_OK;
}

static int take_ranks(struct run_segment *segment, const char *text, struct cw_err *err)
{
    uint64_t ranks;

    if (cw_parse_number("-n", text, 1, CW_RANKS_MAX, &ranks, err) < 0)
        return err->code;
    segment->ranks = (uint32_t)ranks;
    return CW_OK;
}

static int take_count(uint32_t *count, const char *what, const char *text, uint64_t min,
                      struct cw_err *err)
{
    uint64_t value;

    if (cw_parse_number(what, text, min, UINT32_MAX, &value, err) < 0)
        return err->code;
    *count = (uint32_t)value;
    return CW_OK;
}

static int take_resume_timeout(struct run_options *o, const char *value, struct cw_err *err)
{
    uint64_t ns;

    if (cw_parse_duration("--resume-timeout", value, &ns, err) < 0)
        return err->code;
    if (ns > CW_RESUME_MAX_MS * 1000000ull)
        return cw_err_set(err, CW_EINVAL, "--resume-timeout '%s': at most %us", value,
                          CW_RESUME_MAX_MS / 1000);
    o->resume_ms = (uint32_t)((ns + 999999) / 1000000);
    return CW_OK;
}

static int take_collectives(struct run_options *o, const char *value, struct cw_err *err)
{
    o->flat_collectives = strcmp(value, "flat") == 0;
    if (o->flat_collectives || strcmp(value, "sites") == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--collectives %s: expected sites or flat", value);
}

static int take_log_lost(struct run_options *o, const char *value, struct cw_err *err)
{
    o->log_lost_ends = strcmp(value, "end") == 0;
    if (o->log_lost_ends || strcmp(value, "go-on") == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--log-lost %s: expected go-on or end", value);
}

static int take_check_contents(struct run_options *o, const char *value, struct cw_err *err)
{
    if (strcmp(value, "some") == 0)
        o->contents = 0;
    else if (strcmp(value, "all") == 0)
        o->contents = CW_SETUP_CONTENTS_ALL;
    else if (strcmp(value, "none") == 0)
        o->contents = CW_SETUP_CONTENTS_NONE;
    else
        return cw_err_set(err, CW_EINVAL, "--check-contents %s: expected some, all or none", value);
    return CW_OK;
}

static int take_contents_differ(struct run_options *o, const char *value, struct cw_err *err)
{
    o->contents_end = strcmp(value, "end") == 0;
    if (o->contents_end || strcmp(value, "go-on") == 0)
        return CW_OK;
    return cw_err_set(err, CW_EINVAL, "--contents-differ %s: expected go-on or end", value);
}

static int take_image_server(struct run_options *o, const char *value, struct cw_err *err)
{
    if (o->image_server_count == CKPT_SERVERS_MAX)
        return cw_err_set(err, CW_EINVAL, "--ckpt-server %s: a job has at most %d of them", value,
                          CKPT_SERVERS_MAX);
    o->image_servers[o->image_server_count++] = value;
    return CW_OK;
}

static int take_image_option(struct run_options *o, int opt, const char *value, struct cw_err *err)
{
    switch (opt) {
    case OPT_NO_CKPT:
        o->no_images = true;
        break;
    case OPT_CKPT_EVERY:
        return cw_parse_duration("--ckpt-every", value, &o->image_every_ns, err);
    case OPT_MTBF:
        return cw_parse_duration("--mtbf", value, &o->image_mtbf_ns, err);
    case OPT_CKPT_DIR:
        o->image_dir = value;
        break;
    case OPT_CKPT_MAX:
        return cw_parse_bytes("--ckpt-max", value, &o->image_bytes_max, err);
    case OPT_CKPT_SERVER:
        return take_image_server(o, value, err);
    case OPT_CKPT_KEY_FILE:
        o->image_key_file = value;
        break;
    case OPT_JOB_DIR:
        o->job_dir = value;
        break;
    case OPT_RESUME:
        return cw_err_set(err, CW_EINVAL,
                          "--resume %s: it comes first, and the job has its options and programs "
                          "already: causeway run --resume DIR [--timeout TIME] [--stats] "
                          "[--verbose]",
                          value);
    }
    return CW_OK;
}

/* What has to do with crashes. */
static int take_recovery_option(struct run_options *o, int opt, const char *value,
                                struct cw_err *err)
{
    uint64_t number;

    switch (opt) {
    case OPT_NO_LOG:
        o->no_log = true;
        break;
    case OPT_TRUST_FILES:
        o->trust_files = true;
        break;
    case OPT_LOG_LOST:
        return take_log_lost(o, value, err);
    case OPT_CHECK_CONTENTS:
        return take_check_contents(o, value, err);
    case OPT_CONTENTS_DIFFER:
        return take_contents_differ(o, value, err);
    case OPT_MAX_RESTARTS:
        return take_count(&o->max_restarts, "--max-restarts", value, 0, err);
    case OPT_SLOTS:
        return take_count(&o->slots, "--slots", value, 1, err);
    case OPT_ALIVE_PERIOD:
        return cw_parse_duration("--alive-period", value, &o->alive_period_ns, err);
    case OPT_ALIVE_TIMEOUT:
        return cw_parse_duration("--alive-timeout", value, &o->alive_timeout_ns, err);
    case OPT_RESUME_TIMEOUT:
        return take_resume_timeout(o, value, err);
    case OPT_FAULT:
        return fault_plan_add(&o->faults, value, err);
    case OPT_FAULT_SEED:
        if (cw_parse_number("--fault-seed", value, 0, UINT64_MAX, &number, err) < 0)
            return err->code;
        fault_plan_seed(&o->faults, number);
        break;
    default:
        return take_image_option(o, opt, value, err);
    }
    return CW_OK;
}

static int take_relays(struct run_options *o, int opt, const char *value, struct cw_err *err)
{
    uint64_t number;

    if (opt == OPT_RELAY_MAP) {
        o->relay_map = value;
    } else if (opt == OPT_RELAYS) {
        if (cw_parse_number("--relays", value, 1, CW_RELAYS_MAX, &number, err) < 0)
            return err->code;
        o->relays = (uint32_t)number;
    } else if (o->relay_count == CW_RELAYS_MAX) {
        return cw_err_set(err, CW_EINVAL, "--relay %s: a job has at most %u relays", value,
                          CW_RELAYS_MAX);
    } else {
        o->relay_addresses[o->relay_count++] = value;
    }
    return CW_OK;
}

/* Looked at here, so that the command line is wrong and not the relay; it gets the text. */
static int take_relay_option(struct run_options *o, enum relay_option option, const char *value,
                             struct cw_err *err)
{
    o->relay_options[option] = value;
    return relay_settings_take(&o->relay_settings, option, value, err);
}

static int take_option(struct run_options *o, struct run_segment *segment, int opt,
                       const char *value, struct cw_err *err)
{
    if (opt >= OPT_HOST)
        return host_options_take(&o->hosts, opt - OPT_HOST, value, err);
    if (opt >= OPT_RELAY_SETTING)
        return take_relay_option(o, opt - OPT_RELAY_SETTING, value, err);
    switch (opt) {
    case OPT_RANKS:
        return take_ranks(segment, value, err);
    case OPT_WDIR:
        segment->wdir = value;
        break;
    case OPT_ENV:
        return add_env(segment->env, &segment->env_count, "--env", value, err);
    case OPT_GENV:
        return add_env(o->env, &o->env_count, "--genv", value, err);
    case OPT_X:
        return take_export(o, value, err);
    case OPT_RELAY:
    case OPT_RELAYS:
    case OPT_RELAY_MAP:
        return take_relays(o, opt, value, err);
    case OPT_COLLECTIVES:
        return take_collectives(o, value, err);
    case OPT_KEY_FILE:
        o->key_file = value;
        break;
    case OPT_OUTPUT_DIR:
        o->output_dir = value;
        break;
    case OPT_TAG:
        o->tag_output = true;
        break;
    case OPT_TIMEOUT:
        return cw_parse_duration("--timeout", value, &o->timeout_ns, err);
    case OPT_KILL_AFTER:
        return cw_parse_duration("--kill-after", value, &o->kill_after_ns, err);
    case OPT_SPIN:
        return cw_parse_duration("--spin", value, &o->spin_ns, err);
    case OPT_STATS:
        o->stats = true;
        break;
    case OPT_VERBOSE:
        o->verbose = true;
        break;
    case OPT_HELP:
        o->help = true;
        break;
    case OPT_EVENTS:
        o->events = value;
        break;
    case OPT_GRID:
        o->grid_file = value;
        break;
    case OPT_HERE:
        o->here = value;
        break;
    case OPT_RESTART_AT:
        return grid_options_take_restart_at(o, value, err);
    default:
        return take_recovery_option(o, opt, value, err);
    }
    return CW_OK;
}

static int parse_segment(struct run_options *o, int argc, char **argv, struct cw_err *err)
{
    struct run_segment *segment = &o->segments[o->segment_count];
    struct option options[OWN_OPTIONS + HOST_OPTIONS + RELAY_OPTIONS + 1];
    int opt;

    err->code = CW_OK;
    if (o->segment_count == OPTIONS_SEGMENTS_MAX)
        return cw_err_set(err, CW_EINVAL, "more than %d programs", OPTIONS_SEGMENTS_MAX);
    *segment = (struct run_segment){.ranks = 1};
    segment->env = calloc(OPTIONS_ENV_MAX, sizeof(*segment->env));
    if (!segment->env)
        return cw_err_set(err, CW_ENOMEM, "no memory for the options");
    o->segment_count++;
    memcpy(options, own_options, sizeof(own_options));
    host_options_list(options + OWN_OPTIONS, OPT_HOST);
    relay_option_list(options + OWN_OPTIONS + HOST_OPTIONS, OPT_RELAY_SETTING);
    optind = 0;
    opterr = 0;
    while ((opt = getopt_long_only(argc, argv, "+:", options, NULL)) != -1)
        if (opt == '?' || opt == ':')
            return cw_parse_option_error(opt, argv, "causeway run", err);
        else if (take_option(o, segment, opt, optarg, err) < 0)
            return err->code;
    if (o->help)
        return CW_OK;
    if (optind == argc)
        return cw_err_set(err, CW_EINVAL, "no program to run; see causeway run --help");
    segment->argv = argv + optind;
    o->ranks += segment->ranks;
    if (o->ranks > CW_RANKS_MAX)
        return cw_err_set(err, CW_EINVAL, "%u ranks: a job has at most %u", o->ranks, CW_RANKS_MAX);
    return CW_OK;
}

/* What does not go together with a job that is to be gone on with. */
static const char *against_job_dir(const struct run_options *o)
{
    if (o->no_log)
        return "--no-log";
    if (o->relay_count)
        return "--relay";
    if (o->relays > 1)
        return "--relays";
    if (o->image_server_count)
        return "--ckpt-server";
    if (o->image_dir)
        return "--ckpt-dir";
    if (o->relay_settings.log_dir)
        return "--log-dir";
    if (o->relay_options[RELAY_OPTION_LOG_SAFETY] &&
        o->relay_settings.log_safety == RELAY_LOG_IN_MEMORY)
        return "--log-safety memory";
    if (o->relay_settings.log_disk_given && o->relay_settings.log_disk == 0)
        return "--log-disk 0";
    return o->resume_ms ? NULL : "--resume-timeout 0";
}

static int check_job_dir(struct run_options *o, struct cw_err *err)
{
    const char *against = against_job_dir(o);

    if (against)
        return cw_err_set(
            err, CW_EINVAL,
            "--job-dir %s: relay and checkpoint server are the job's own; not with %s", o->job_dir,
            against);
    if (o->relay_settings.log_safety != RELAY_LOG_IN_FILE) { /* sync, or nothing was said */
        o->relay_settings.log_safety = RELAY_LOG_SYNCED;
        o->relay_options[RELAY_OPTION_LOG_SAFETY] = "sync";
    }
    return fault_plan_check(&o->faults, o->ranks, o->relays, err);
}

static int check_recovery(struct run_options *o, struct cw_err *err)
{
    if (o->alive_period_ns < OPTIONS_ALIVE_MIN_NS)
        return cw_err_set(err, CW_EINVAL, "--alive-period: at least %llums",
                          OPTIONS_ALIVE_MIN_NS / 1000000);
    if (o->alive_timeout_ns <= o->alive_period_ns)
        return cw_err_set(err, CW_EINVAL,
                          "--alive-timeout (%gs) must be more than --alive-period (%gs)",
                          (double)o->alive_timeout_ns / 1e9, (double)o->alive_period_ns / 1e9);
    if (o->slots && o->slots < o->ranks)
        return cw_err_set(err, CW_EINVAL, "--slots %u: fewer than the %u ranks", o->slots,
                          o->ranks);
    for (int i = RELAY_OPTION_LOG_MEMORY; i <= RELAY_OPTION_LOG_SAFETY; i++)
        if (o->no_log && o->relay_options[i])
            return cw_err_set(err, CW_EINVAL, "--%s is for the log, which --no-log turns off",
                              relay_option_names[i]);
    if (o->job_dir)
        return check_job_dir(o, err);
    if (o->relay_settings.log_safety == RELAY_LOG_SYNCED)
        return cw_err_set(err, CW_EINVAL,
                          "--log-safety sync needs --job-dir DIR here: see --resume");
    if (o->relay_settings.log_safety == RELAY_LOG_IN_FILE && o->resume_ms == 0)
        return cw_err_set(err, CW_EINVAL,
                          "--log-safety file: a relay that is started again finds its connections "
                          "broken, and --resume-timeout 0 gives them up at once");
    return fault_plan_check(&o->faults, o->ranks,
                            o->relay_count || o->grid ? 0
                            : o->relays               ? o->relays
                                                      : CW_RELAYS_MAX,
                            err);
}

/* Unless the user has said so: a rank that is out of reach is replaced after the same time, whether
 * its process is silent or its connection broke. */
static void choose_resume_timeout(struct run_options *o)
{
    uint64_t ms = o->alive_timeout_ns / 1000000;

    if (o->resume_ms == UINT32_MAX)
        o->resume_ms = ms < CW_RESUME_MAX_MS ? (uint32_t)ms : CW_RESUME_MAX_MS;
}

/* An option of images that says nothing without them is a mistake. */
static const char *image_option_of(const struct run_options *o)
{
    if (o->image_every_ns)
        return "--ckpt-every";
    if (o->image_mtbf_ns)
        return "--mtbf";
    if (o->image_dir)
        return "--ckpt-dir";
    if (o->image_bytes_max)
        return "--ckpt-max";
    if (o->hosts.ckptsrv)
        return "--ckptsrv";
    return o->image_server_count ? "--ckpt-server" : NULL;
}

static int check_images(struct run_options *o, struct cw_err *err)
{
    const char *given = image_option_of(o);
    const char *off = o->no_images ? "--no-ckpt" : "--no-log";

    if (given && (o->no_log || o->no_images))
        return cw_err_set(err, CW_EINVAL, "%s is for images, which %s turns off", given, off);
    if (o->image_every_ns && o->image_every_ns < CKPT_EVERY_MIN_NS)
        return cw_err_set(err, CW_EINVAL, "--ckpt-every: at least %llums",
                          CKPT_EVERY_MIN_NS / 1000000);
    if (o->image_server_count && (o->image_dir || o->image_bytes_max || o->hosts.ckptsrv))
        return cw_err_set(err, CW_EINVAL,
                          "%s is for the job's own checkpoint server, not with --ckpt-server",
                          o->hosts.ckptsrv ? "--ckptsrv"
                          : o->image_dir   ? "--ckpt-dir"
                                           : "--ckpt-max");
    if (!o->image_server_count && o->image_key_file)
        return cw_err_set(err, CW_EINVAL,
                          "--ckpt-key-file is for --ckpt-server ADDRESS, which is missing");
    o->no_images |= o->no_log;
    return CW_OK;
}

/* Whether there is a relay on each host with ranks. */
static bool relays_are_at_hosts(const struct run_options *o)
{
    return o->hosts.list.count && !o->relay_count && o->hosts.relay_at == RELAY_AT_HOST;
}

static int choose_relays(struct run_options *o, struct cw_err *err)
{
    uint8_t homes[CW_RANKS_MAX];

    if (o->grid || relays_are_at_hosts(o))
        return CW_OK;
    if (!o->relays)
        o->relays = o->relay_count ? o->relay_count : 1;
    return o->relay_map ? homes_fill(homes, o->ranks, o->relays, o->relay_map, err) : CW_OK;
}

static int check_relay(struct run_options *o, struct cw_err *err)
{
    for (int i = 0; i < RELAY_OPTIONS; i++)
        if ((o->relay_count || o->grid) && o->relay_options[i])
            return cw_err_set(err, CW_EINVAL, "--%s is for the job's own relay, not with --relay",
                              relay_option_names[i]);
    if (!o->relay_count && o->key_file)
        return cw_err_set(err, CW_EINVAL, "--key-file is for --relay ADDRESS, which is missing");
    if (o->relay_count && o->relays && o->relays != o->relay_count)
        return cw_err_set(err, CW_EINVAL, "--relays %u, but --relay is given %u times", o->relays,
                          o->relay_count);
    return choose_relays(o, err);
}

/* Each rank can reach them from whichever host it is on. */
static int check_relays_of_hosts(struct run_options *o, struct cw_err *err)
{
    bool at_host = o->hosts.relay_at == RELAY_AT_HOST;

    if (o->relay_count && o->hosts.given >> HOST_OPTION_RELAY_AT & 1)
        return cw_err_set(err, CW_EINVAL,
                          "--relay-at is for the job's own relays, not with --relay");
    for (uint32_t i = 0; i < o->relay_count; i++)
        if (strncmp(o->relay_addresses[i], "unix:", 5) == 0)
            return cw_err_set(err, CW_EINVAL,
                              "--relay %s: other hosts cannot reach it; give tcp:HOST:PORT",
                              o->relay_addresses[i]);
    if (!o->relay_count && at_host && (o->relays || o->relay_map))
        return cw_err_set(err, CW_EINVAL,
                          "%s: there is a relay on each host, for its ranks; not without "
                          "--relay-at cluster",
                          o->relays ? "--relays" : "--relay-map");
    return CW_OK;
}

static char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

/* A job that is kept runs on this machine alone, in an allocation too. */
static int check_hosts(struct run_options *o, struct cw_err *err)
{
    const char *against = o->job_dir ? "--job-dir" : o->slots ? "--slots" : NULL;

    if (o->grid_file && grid_options_take(o, err) < 0)
        return err->code;
    if (host_options_complete(&o->hosts, o->ranks, o->job_dir ? no_variable : getenv, err) < 0)
        return err->code;
    if (o->grid)
        return o->slots
                   ? cw_err_set(err, CW_EINVAL, "--slots: not with -f: see `slots` of its hosts")
                   : CW_OK;
    if (o->here || o->restart_at_any_site)
        return cw_err_set(err, CW_EINVAL, "%s is for a grid: give -f FILE",
                          o->here ? "--here" : "--restart-at");
    if (o->hosts.list.count == 0)
        return CW_OK;
    if (against)
        return cw_err_set(err, CW_EINVAL, "%s: not for a job on several hosts%s", against,
                          o->hosts.of_slurm
                              ? " (those of Slurm's allocation; --host localhost:N: this one alone)"
                              : "");
    return check_relays_of_hosts(o, err);
}

/* A host that is cut off for a moment is only waited for: its ranks must not count as silent. */
static int choose_alive_timeout(struct run_options *o, struct cw_err *err)
{
    uint64_t host_ns = o->hosts.list.count ? o->hosts.timeout_ns : 0;

    if (o->alive_timeout_ns == UINT64_MAX)
        o->alive_timeout_ns =
            2 * host_ns > OPTIONS_ALIVE_TIMEOUT_NS ? 2 * host_ns : OPTIONS_ALIVE_TIMEOUT_NS;
    if (o->alive_timeout_ns <= host_ns)
        return cw_err_set(err, CW_EINVAL,
                          "--alive-timeout (%gs) must be more than --host-timeout (%gs)",
                          (double)o->alive_timeout_ns / 1e9, (double)host_ns / 1e9);
    return CW_OK;
}

/* What is known once all options are. */
static int complete(struct run_options *o, struct cw_err *err)
{
    if (check_hosts(o, err) < 0 || choose_alive_timeout(o, err) < 0)
        return err->code;
    choose_resume_timeout(o);
    if (check_relay(o, err) < 0 || check_images(o, err) < 0)
        return err->code;
    return check_recovery(o, err);
}

int run_options_parse(struct run_options *o, int argc, char **argv, struct cw_err *err)
{
    int start = 0; /* getopt skips what stands before the options: "run", or the NULL for ':' */

    *o = (struct run_options){.spin_ns = UINT64_MAX,
                              .max_restarts = JOB_RESTARTS_MAX,
                              .alive_period_ns = OPTIONS_ALIVE_PERIOD_NS,
                              .alive_timeout_ns = UINT64_MAX,
                              .kill_after_ns = OPTIONS_KILL_AFTER_NS,
                              .resume_ms = UINT32_MAX};
    relay_settings_init(&o->relay_settings);
    fault_plan_init(&o->faults);
    host_options_init(&o->hosts);
    o->given = calloc((size_t)argc + 1, sizeof(*o->given));
    if (!o->given)
        return cw_err_set(err, CW_ENOMEM, "no memory for the options");
    for (o->given_count = 0; o->given_count < argc; o->given_count++)
        o->given[o->given_count] = argv[o->given_count];
    for (int i = 1; i <= argc; i++) {
        if (i < argc && strcmp(argv[i], ":") != 0)
            continue;
        if (i < argc)
            argv[i] = NULL;
        if (parse_segment(o, i - start, argv + start, err) < 0)
            return err->code;
        start = i;
    }
    return o->help ? CW_OK : complete(o, err);
}

void run_options_free(struct run_options *o)
{
    for (uint32_t i = 0; i < o->segment_count; i++)
        free(o->segments[i].env);
    host_options_free(&o->hosts);
    if (o->grid)
        grid_job_free(o->grid);
    free(o->grid);
    free(o->given);
}
