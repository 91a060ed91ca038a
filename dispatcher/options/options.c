#include "dispatcher/options/options.h"
#include "common/channel.h"
#include "common/frame.h"
#include "common/machine.h"
#include "common/parse.h"
#include "dispatcher/job/homes.h"
#include "dispatcher/job/job.h"
#include "dispatcher/wire/stage_program.h"
#include "tunnels/tunnel.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* --- what takes a value apart --- */

static int take_ranks(void *to, const char *text, struct cw_err *err)
{
    struct run_options *o = to;
    uint64_t ranks;

    if (cw_parse_number("-n", text, 1, CW_RANKS_MAX, &ranks, err) < 0)
        return err->code;
    o->segments[o->segment_count - 1].ranks = (uint32_t)ranks;
    return CW_OK;
}

static int take_wdir(void *to, const char *dir, struct cw_err *err)
{
    struct run_options *o = to;

    (void)err;
    o->segments[o->segment_count - 1].wdir = dir;
    return CW_OK;
}

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

static int take_env(void *to, const char *text, struct cw_err *err)
{
    struct run_options *o = to;
    struct run_segment *segment = &o->segments[o->segment_count - 1];

    return add_env(segment->env, &segment->env_count, "--env", text, err);
}

static int take_genv(void *to, const char *text, struct cw_err *err)
{
    struct run_options *o = to;

    return add_env(o->env, &o->env_count, "--genv", text, err);
}

/* -x NAME exports what is set here, which every rank inherits anyway; it must be set. */
static int take_export(void *to, const char *text, struct cw_err *err)
{
    struct run_options *o = to;

    if (strchr(text, '='))
        return add_env(o->env, &o->env_count, "-x", text, err);
    if (!getenv(text))
        return cw_err_set(err, CW_EINVAL, "-x %s: not set in this environment", text);
    return CW_OK;
}

static int add_address(const char **addresses, uint32_t *count, uint32_t max, const char *option,
                       const char *value, struct cw_err *err)
{
    if (*count == max)
        return cw_err_set(err, CW_EINVAL, "%s %s: a job has at most %u of them", option, value,
                          max);
    addresses[(*count)++] = value;
    return CW_OK;
}

static int take_relay(void *to, const char *value, struct cw_err *err)
{
    struct run_options *o = to;

    return add_address(o->relay_addresses, &o->relay_count, CW_RELAYS_MAX, "--relay", value, err);
}

static int take_server(void *to, const char *value, struct cw_err *err)
{
    struct image_options *o = to;

    return add_address(o->servers, &o->server_count, CKPT_SERVERS_MAX, "--ckpt-server", value, err);
}

static int take_resume(void *to, const char *dir, struct cw_err *err)
{
    (void)to;
    return cw_err_set(err, CW_EINVAL,
                      "--resume %s: it comes first, and the job has its options and programs "
                      "already: causeway run --resume DIR [--timeout TIME] [--stats] [--verbose]",
                      dir);
}

static int take_fault(void *plan, const char *text, struct cw_err *err)
{
    return fault_plan_add(plan, text, err);
}

static int take_fault_seed(void *plan, const char *text, struct cw_err *err)
{
    uint64_t seed;

    if (cw_parse_number("--fault-seed", text, 0, UINT64_MAX, &seed, err) == CW_OK)
        fault_plan_seed(plan, seed);
    return err->code;
}

/* --- the options --- */

#define AT(field) offsetof(struct run_options, field)

static const struct cw_option first_options[] = {
    {"np", "n", "RANKS", CW_OPTION_CALL, .take = take_ranks, .help = "how many ranks (default 1)"},
    {"wdir", .argument = "DIR", CW_OPTION_CALL, .take = take_wdir, .help = "working directory"},
    {"env", .argument = "NAME=VALUE", CW_OPTION_CALL, .take = take_env,
     .help = "set in its environment"},
    {0}};

static const struct cw_option further_options[] = {
    {"output-dir", .argument = "DIR", CW_OPTION_TEXT, AT(output_dir),
     .help = "write what the ranks print to DIR/rank.R.out and DIR/rank.R.err"},
    {"timeout", .argument = "TIME", CW_OPTION_TIME, AT(timeout_ns),
     .help = "end the job after this time (seconds, or like 5m); exit code 124"},
    {"verbose", .at = AT(verbose), .help = "say what happens"},
    {"job-dir", .argument = "DIR", CW_OPTION_TEXT, AT(job_dir),
     .help = "keep in DIR, a new directory on a disk, all that is needed to go on after a crash of "
             "causeway run, or of the machine; it is removed when the job ends well"},
    {"resume", .argument = "DIR|JOB", CW_OPTION_CALL, .take = take_resume,
     .help = "(alone, or with --timeout, --stats, --verbose) go on with that job; JOB, of "
             "--orphan-timeout: the beginning of its identifier, or - for the only one"},
    {"no-log", .at = AT(no_log), .help = "no recovery: keep no log; a crash ends the job"},
    {"channel", .argument = "auto|off|on", CW_OPTION_WORD, AT(channel),
     .help = "ranks of one host exchange messages through memory, without the relay between; "
             "the log is there, too, within --log-memory and --log-disk (default auto: where that "
             "can be)"},
    {0}};

static const struct cw_option env_options[] = {
    {"genv", .argument = "NAME=VALUE", CW_OPTION_CALL, .take = take_genv,
     .help = "set in every environment"},
    {"x", .argument = "NAME[=VALUE]", CW_OPTION_CALL, .take = take_export,
     .help = "the same; without a value: the one that it has here"},
    {0}};

static const struct cw_option output_options[] = {
    {"tag-output", .at = AT(tag_output),
     .help = "begin every line that is printed with its rank: [R]"},
    {"events", .argument = "FILE", CW_OPTION_TEXT, AT(events),
     .help = "write what happens to the ranks, a line of JSON for each event"},
    {"stats", .at = AT(stats),
     .help = "count messages, bytes, polls and sleeps, and print them at the end"},
    {"help", .at = AT(help), .help = "this text"},
    {"kill-after", .argument = "TIME", CW_OPTION_TIME, AT(kill_after_ns),
     .help = "after a signal or --timeout, kill ranks that have not ended (default 30s)"},
    {0}};

static const struct cw_option grid_option_list[] = {
    {"f", .argument = "FILE", CW_OPTION_TEXT, AT(grid_file),
     .help = "run on this grid, with the relays and checkpoint servers of its sites; --relay-at "
             "SITE: the relay of that site keeps the logs of all ranks, also of those that run "
             "elsewhere (default: each site those of its ranks)"},
    {"here", .argument = "SITE", CW_OPTION_TEXT, AT(here),
     .help = "this machine is at that site; -: at none (default: by its name)"},
    {"restart-at", .argument = "site|grid", CW_OPTION_WORD, AT(restart_at_any_site),
     .help = "where ranks of lost hosts are started again (default site)"},
    {0}};

static const struct cw_option recovery_options[] = {
    {"trust-files", .at = AT(trust_files),
     .help = "also restart ranks that write to files which other ranks open: the program gives the "
             "same result when it writes to them again"},
    {"log-lost", .argument = "go-on|end", CW_OPTION_WORD, AT(log_lost_ends),
     .help = "what to do when a rank can no longer be restarted, for instance because its log has "
             "no room any more (default go-on)"},
    {"check-contents", .argument = "some|all|none", CW_OPTION_WORD, AT(contents),
     .help = "how much of each message a restarted rank has to send again as before: all bytes, or "
             "1 KiB of what is larger (default some)"},
    {"contents-differ", .argument = "go-on|end", CW_OPTION_WORD, AT(contents_end),
     .help = "what to do when a rank repeats a message with other contents (default go-on, with a "
             "warning)"},
    {"log-copies", .argument = "K", CW_OPTION_NUMBER, AT(log_copies), 0, CW_COPIES_MAX,
     .help = "of the log of each host's relay, at the relays of other hosts: so many hosts may be "
             "lost at once, and their ranks go on elsewhere (default 0)"},
    {"max-restarts", .argument = "N", CW_OPTION_NUMBER, AT(max_restarts), 0, UINT32_MAX,
     .help = "of each rank (default 100)"},
    {"alive-timeout", .argument = "TIME", CW_OPTION_TIME, AT(alive_timeout_ns),
     OPTIONS_ALIVE_MIN_NS, UINT64_MAX, "at least 10ms",
     .help = "a rank that is silent for this time is replaced (default 10s; with hosts at least "
             "twice the host-timeout)"},
    {"resume-timeout", .argument = "TIME", CW_OPTION_TIME, AT(resume_ns), 0,
     CW_RESUME_MAX_MS * 1000000ull, "at most 1h",
     .help = "a broken connection is opened again within this time, and nothing is lost; after it, "
             "the process counts as crashed (default: the alive-timeout)"},
    {"orphan-timeout", .argument = "TIME", CW_OPTION_TIME, AT(orphan_ns), 0, OPTIONS_ORPHAN_NS_MAX,
     "at most 1h",
     .help = "of a job on hosts: these go on with it for this time when causeway run, or its "
             "machine, is lost, and causeway run --resume JOB takes it over on one of them "
             "(default 0: they end within the host-timeout)"},
    {0}};

#define IN(field) offsetof(struct image_options, field)

static const struct cw_option image_options[] = {
    {"no-ckpt", .at = IN(none), .help = "take none; also without a log (--no-log)"},
    {"ckpt-every", .argument = "TIME", CW_OPTION_TIME, IN(every_ns), CKPT_EVERY_MIN_NS, UINT64_MAX,
     "at least 1ms", .help = "of each rank one in this time (default: by what they cost and gain)"},
    {"ckpt-copies", .argument = "N", CW_OPTION_NUMBER, IN(copies), 1, CW_IMAGE_COPIES_MAX,
     .help = "each image is kept by so many of the checkpoint servers of --ckptsrv (default 1)"},
    {"mtbf", .argument = "TIME", CW_OPTION_TIME, IN(mtbf_ns),
     .help = "mean time between crashes of one rank, not of the job (default: as observed)"},
    {"ckpt-dir", .argument = "DIR", CW_OPTION_TEXT, IN(dir),
     .help =
         "where the own checkpoint server keeps them (default: a new directory under $TMPDIR or "
         "/var/tmp, which is removed at the end)"},
    {"ckpt-max", .argument = "BYTES", CW_OPTION_BYTES, IN(bytes_max), .min = 1,
     .help = "what they may take there (default: half of what is free)"},
    {"ckpt-server", .argument = "ADDRESS", CW_OPTION_CALL, .take = take_server,
     .help = "use this checkpoint server (unix:PATH or tcp:HOST:PORT) instead of one of its own "
             "(given again: several servers)"},
    {"ckpt-key-file", .argument = "FILE", CW_OPTION_TEXT, IN(key_file),
     .help = "the key of that server (default for unix:PATH: PATH.key)"},
    {0}};

static const struct cw_option relay_options[] = {
    {"relay", .argument = "ADDRESS", CW_OPTION_CALL, .take = take_relay,
     .help = "use this relay (unix:PATH or tcp:HOST:PORT) instead of one of its own (given again: "
             "several relays)"},
    {"key-file", .argument = "FILE", CW_OPTION_TEXT, AT(key_file),
     .help = "the key of that relay (default for unix:PATH: PATH.key)"},
    {"relays", .argument = "K", CW_OPTION_NUMBER, AT(relays), 1, CW_RELAYS_MAX,
     .help = "relays of its own, each the home of some ranks (default 1)"},
    {"relay-map", .argument = "LIST", CW_OPTION_TEXT, AT(relay_map),
     .help = "which: RELAY[*COUNT],... for all ranks in order, relays counted from 0 (default: "
             "ranks in turn)"},
    {"collectives", .argument = "sites|flat", CW_OPTION_WORD, AT(flat_collectives),
     .help = "with several relays: collectives cross between sites, which are relays with their "
             "ranks, as few times as they can, or as MPICH's own do (default sites)"},
    {"spin", .argument = "TIME", CW_OPTION_TIME, AT(spin_ns),
     .help = "how long ranks and relay spin before they sleep (default: chosen)"},
    {0}};

static const struct cw_option fault_options[] = {
    {"fault", .argument = "WHAT", CW_OPTION_CALL, .take = take_fault,
     .help = "a drill, may be given again: kill:RANK[,RANK...]@TIME, stop:RANK[,RANK...]@TIME, "
             "kill:RANK[,RANK...]@event:N, kill:random@TIME (about every TIME); to break "
             "connections instead: cut:RANK[,RANK...]@TIME, cut:relays@TIME, cut:dispatcher@TIME; "
             "kill:relay@TIME, kill:relayN@TIME for the own relay's process"},
    {"fault-seed", .argument = "N", CW_OPTION_CALL, .take = take_fault_seed,
     .help = "chooses the random ones"},
    {0}};

static const char usage[] =
    "usage: causeway run [options] -n RANKS PROGRAM [ARGUMENTS] [: [options] -n RANKS PROGRAM "
    "...]\n"
    "\n"
    "Runs an MPI program (Debian's MPICH, unmodified) with every message carried by a relay.\n"
    "\n";

const struct cw_options run_option_list = {
    "causeway run", usage,
    (const struct cw_option_group[]){
        {"what most jobs need (-n, --wdir and --env are of one program, and may stand after a ':' "
         "again)",
         first_options, 0},
        {NULL, host_list_options, AT(hosts)},
        {NULL, further_options, 0},
        {"the environment of all programs", env_options, 0},
        {"what is printed, and its end", output_options, 0},
        {"several machines (a node is started on each, and the ranks by it)", host_options,
         AT(hosts)},
        {NULL, host_launch_options, AT(hosts)},
        {"a grid (sites that see each other through SSH alone; see causeway up)", grid_option_list,
         0},
        {"recovery (a crashed rank is restarted alone, and repeats what it did before)",
         recovery_options, 0},
        {"images (of the processes of ranks, so that less is to be repeated and logs stay short)",
         image_options, AT(images)},
        {"relays that run already, or several", relay_options, 0},
        {"the job's own relay, and the logs in it", relay_setting_options, AT(relay_settings)},
        {"drills", fault_options, AT(faults)},
        {0}},
    "\n"
    "Exit code: that of the first rank that failed, 128 + signal, or MPI_Abort's; 0 when all ended "
    "well.\n",
    true};

static const char *given(const struct run_options *o, const char *name)
{
    return o->values[cw_option_number(&run_option_list, name)];
}

/* The first of these options that was given; NULL: none was. */
static const char *first_of(const struct run_options *o, const char *const *names)
{
    return cw_option_first(&run_option_list, o->values, names);
}

static int parse_segment(struct run_options *o, int argc, char **argv, struct cw_err *err)
{
    struct run_segment *segment = &o->segments[o->segment_count];

    if (o->segment_count == OPTIONS_SEGMENTS_MAX)
        return cw_err_set(err, CW_EINVAL, "more than %d programs", OPTIONS_SEGMENTS_MAX);
    *segment = (struct run_segment){.ranks = 1};
    segment->env = calloc(OPTIONS_ENV_MAX, sizeof(*segment->env));
    if (!segment->env)
        return cw_err_set(err, CW_ENOMEM, "no memory for the options");
    o->segment_count++;
    if (cw_options_parse(&run_option_list, argc, argv, o, o->values, err) < 0 || o->help)
        return err->code;
    if (optind == argc)
        return cw_err_set(err, CW_EINVAL, "no program to run; see causeway run --help");
    segment->argv = argv + optind;
    o->ranks += segment->ranks;
    if (o->ranks > CW_RANKS_MAX)
        return cw_err_set(err, CW_EINVAL, "%u ranks: a job has at most %u", o->ranks, CW_RANKS_MAX);
    return CW_OK;
}

/* --- what goes together --- */

/* What does not go together with a job that is to be gone on with. */
static const char *against_job_dir(const struct run_options *o)
{
    static const char *const names[] = {"no-log",   "relay",   "ckpt-server",
                                        "ckpt-dir", "log-dir", NULL};
    const char *name = first_of(o, names);

    if (name)
        return name;
    if (o->relays > 1)
        return "relays";
    if (given(o, "log-safety") && o->relay_settings.log_safety == RELAY_LOG_IN_MEMORY)
        return "log-safety memory";
    if (o->relay_settings.log_disk == 0)
        return "log-disk 0";
    return o->resume_ms ? NULL : "resume-timeout 0";
}

static int check_job_dir(struct run_options *o, struct cw_err *err)
{
    const char *against = against_job_dir(o);

    if (against)
        return cw_err_set(
            err, CW_EINVAL,
            "--job-dir %s: relay and checkpoint server are the job's own; not with --%s",
            o->job_dir, against);
    if (o->relay_settings.log_safety != RELAY_LOG_IN_FILE) { /* sync, or nothing was said */
        o->relay_settings.log_safety = RELAY_LOG_SYNCED;
        o->values[cw_option_number(&run_option_list, "log-safety")] = "sync";
    }
    return CW_OK;
}

/* Which option has no meaning with copies of logs; NULL: none. */
static const char *against_copies(const struct run_options *o)
{
    static const char *const names[] = {"no-log", "relay", "job-dir", "f", NULL};

    if (first_of(o, names))
        return first_of(o, names);
    if (o->hosts.relay_at == RELAY_AT_CLUSTER)
        return "relay-at cluster";
    if (given(o, "log-safety") && o->relay_settings.log_safety != RELAY_LOG_COPIED)
        return "log-safety, which is copy then";
    if (o->relay_settings.engine && given(o, "engine") && strcmp(given(o, "engine"), "poll") != 0)
        return "engine, which is poll then";
    return NULL;
}

static int check_copies(struct run_options *o, struct cw_err *err)
{
    const char *name = o->log_copies ? against_copies(o) : NULL;

    if (name)
        return cw_err_set(err, CW_EINVAL,
                          "--log-copies %u: relays on the hosts of the job keep copies of each "
                          "other's logs; not with --%s",
                          o->log_copies, name);
    if (!o->log_copies && o->relay_settings.log_safety == RELAY_LOG_COPIED)
        return cw_err_set(err, CW_EINVAL, "--log-safety copy comes with --log-copies K");
    if (!o->log_copies)
        return CW_OK;
    if (o->hosts.list.count == 0)
        return cw_err_set(
            err, CW_EINVAL,
            "--log-copies is for a job on several machines: give --host or --hostfile");
    if (o->resume_ms <= o->hosts.timeout_ns / 1000000)
        return cw_err_set(err, CW_EINVAL,
                          "--resume-timeout (%gs) must be more than --host-timeout (%gs): with "
                          "--log-copies connections wait for a relay of a lost host",
                          o->resume_ms / 1e3, (double)o->hosts.timeout_ns / 1e9);
    o->relay_settings.log_safety = RELAY_LOG_COPIED;
    o->values[cw_option_number(&run_option_list, "log-safety")] = "copy";
    return CW_OK;
}

/* What hosts cannot go on with alone. */
static const char *against_orphans(const struct run_options *o)
{
    static const char *const names[] = {"job-dir", "no-log",    "relay", "f",
                                        "stage",   "stage-dir", NULL};

    if (first_of(o, names))
        return first_of(o, names);
    if (o->hosts.relay_at == RELAY_AT_CLUSTER)
        return "relay-at cluster";
    if (o->log_copies)
        return "log-copies";
    return o->resume_ms ? NULL : "resume-timeout 0";
}

static int check_orphans(const struct run_options *o, struct cw_err *err)
{
    const char *against = against_orphans(o);

    if (!o->orphan_ns)
        return CW_OK;
    if (against)
        return cw_err_set(err, CW_EINVAL, "--orphan-timeout: not with --%s", against);
    if (o->hosts.list.count == 0)
        return cw_err_set(err, CW_EINVAL,
                          "--orphan-timeout is for a job on several machines: give --host or "
                          "--hostfile");
    if (!o->images.none && !o->images.server_count && o->hosts.ckptsrv_hosts == 0)
        return cw_err_set(err, CW_EINVAL,
                          "--orphan-timeout: images of ranks are not to be lost with this machine: "
                          "give --ckptsrv HOST, or --no-ckpt");
    return CW_OK;
}

static int check_recovery(struct run_options *o, struct cw_err *err)
{
    static const char *const of_log[] = {"log-memory", "log-disk", "log-dir", "log-safety", NULL};
    const char *name = first_of(o, of_log);
    bool running = o->relay_count || o->grid;

    if (o->no_log && name)
        return cw_err_set(err, CW_EINVAL, "--%s is for the log, which --no-log turns off", name);
    if ((o->job_dir && check_job_dir(o, err) < 0) || check_orphans(o, err) < 0)
        return err->code;
    if (!o->job_dir && o->relay_settings.log_safety == RELAY_LOG_SYNCED)
        return cw_err_set(err, CW_EINVAL,
                          "--log-safety sync needs --job-dir DIR here: see --resume");
    if (o->relay_settings.log_safety == RELAY_LOG_IN_FILE && o->resume_ms == 0)
        return cw_err_set(err, CW_EINVAL,
                          "--log-safety file: a relay that is started again finds its connections "
                          "broken, and --resume-timeout 0 gives them up at once");
    return fault_plan_check(&o->faults, o->ranks,
                            running     ? 0
                            : o->relays ? o->relays
                                        : CW_RELAYS_MAX,
                            err);
}

/* Unless the user has said so: a rank that is out of reach is replaced after the same time, whether
 * its process is silent or its connection broke. */
static void choose_resume_timeout(struct run_options *o)
{
    uint64_t ns = o->resume_ns < UINT64_MAX ? o->resume_ns : o->alive_timeout_ns;
    uint64_t ms = ns / 1000000 + (ns % 1000000 > 0);

    o->resume_ms = ms < CW_RESUME_MAX_MS ? (uint32_t)ms : CW_RESUME_MAX_MS;
}

/* Which option has no meaning with channel memory; NULL: none. */
static const char *against_channel(const struct run_options *o)
{
    static const char *const against[] = {"job-dir", "log-dir", "spares", NULL};
    static const char *const on_grid[] = {"relay-at", "restart-at", NULL};

    if (o->hosts.relay_at == RELAY_AT_CLUSTER)
        return "relay-at cluster";
    if (o->log_copies && !o->images.none) /* in which is not what ranks say across their lines */
        return "log-copies and images (--no-ckpt takes none)";
    if (o->grid && first_of(o, on_grid))
        return first_of(o, on_grid);
    return first_of(o, against);
}

/* Its ranks get their places later. */
static bool on_hosts(const struct run_options *o)
{
    return o->hosts.list.count || o->grid;
}

/* Who chooses relays, or how ranks reach them, wants to see them at work. The memory is mapped
 * whole, however little of it is used: where that is limited, the relay does with less. */
static bool channel_suits(const struct run_options *o)
{
    static const char *const chosen[] = {"engine", "rings", "relay", "relays", "relay-map", NULL};

    return !against_channel(o) && !first_of(o, chosen) && !o->log_copies &&
           (on_hosts(o) || (o->ranks <= CW_CHANNEL_RANKS_MAX && !cw_machine_limits_memory()));
}

static int check_channel(struct run_options *o, struct cw_err *err)
{
    const char *name = against_channel(o);

    if (o->channel == CHANNEL_AUTO && !channel_suits(o))
        o->channel = CHANNEL_OFF;
    if (o->channel == CHANNEL_AUTO && !on_hosts(o))
        o->channel = CHANNEL_ON;
    if (o->channel != CHANNEL_ON)
        return CW_OK;
    if (name)
        return cw_err_set(
            err, CW_EINVAL,
            "--channel on: for ranks whose log is in the memory of their host, and lost with it; "
            "not with --%s",
            name);
    if (o->ranks > CW_CHANNEL_RANKS_MAX && !on_hosts(o))
        return cw_err_set(err, CW_EINVAL, "--channel on: for at most %u ranks of a host",
                          CW_CHANNEL_RANKS_MAX);
    /* what is left to the relay is little, and costs nothing in a file */
    if (!given(o, "log-safety") && !o->no_log && o->resume_ms && !on_hosts(o))
        o->relay_settings.log_safety = RELAY_LOG_IN_FILE;
    return CW_OK;
}

static int check_images(struct run_options *o, struct cw_err *err)
{
    static const char *const all[] = {"ckpt-every", "mtbf",        "ckpt-dir",    "ckpt-max",
                                      "ckptsrv",    "ckpt-server", "ckpt-copies", NULL};
    static const char *const of_own[] = {"ckptsrv", "ckpt-dir", "ckpt-max", "ckpt-copies", NULL};
    const char *name = first_of(o, all), *own = first_of(o, of_own);

    if (name && (o->no_log || o->images.none))
        return cw_err_set(err, CW_EINVAL, "--%s is for images, which %s turns off", name,
                          o->images.none ? "--no-ckpt" : "--no-log");
    if (o->images.server_count && own)
        return cw_err_set(err, CW_EINVAL,
                          "--%s is for the job's own checkpoint server, not with --ckpt-server",
                          own);
    if (!o->images.server_count && o->images.key_file)
        return cw_err_set(err, CW_EINVAL,
                          "--ckpt-key-file is for --ckpt-server ADDRESS, which is missing");
    o->images.none |= o->no_log;
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
    for (const struct cw_option *own = relay_setting_options; own->name; own++)
        if ((o->relay_count || o->grid) && given(o, own->name))
            return cw_err_set(err, CW_EINVAL, "--%s is for the job's own relay, not with --relay",
                              own->name);
    if (!o->relay_count && o->key_file)
        return cw_err_set(err, CW_EINVAL, "--key-file is for --relay ADDRESS, which is missing");
    if (o->relay_count && o->relays && o->relays != o->relay_count)
        return cw_err_set(err, CW_EINVAL, "--relays %u, but --relay is given %u times", o->relays,
                          o->relay_count);
    return choose_relays(o, err);
}

/* --- hosts and grids --- */

/* What the grid file says, or what a grid cannot have. */
static const char *const of_grid[] = {"host",      "hostfile",      "launcher",    "launcher-args",
                                      "agent",     "ckptsrv",       "relay",       "relays",
                                      "relay-map", "key-file",      "ckpt-server", "ckpt-dir",
                                      "ckpt-max",  "ckpt-key-file", "job-dir",     NULL};

/* For our tunnels: what the user has said in the environment comes before. */
static void set_up_tunnels(const struct grid *grid)
{
    char keys[GRID_KEYS_BYTES], connections[16];

    grid_keys(grid, keys);
    if (keys[0])
        setenv(SSH_KEYS_VARIABLE, keys, 0);
    snprintf(connections, sizeof(connections), "%u", grid->connections);
    if (grid->connections)
        setenv(TUNNEL_CONNECTIONS_VARIABLE, connections, 0);
}

/* As --host and --launcher-args would say it: the hosts, and how they are reached. */
static int take_grid(struct run_options *o, struct cw_err *err)
{
    const char *given = first_of(o, of_grid);

    if (given)
        return cw_err_set(err, CW_EINVAL, "--%s: not with -f %s, which says where all is", given,
                          o->grid_file);
    o->grid = calloc(1, sizeof(*o->grid));
    if (!o->grid)
        return cw_err_set(err, CW_ENOMEM, "no memory for the grid");
    if (grid_job_open(o->grid, o->grid_file, o->here, err) < 0 ||
        grid_job_add_hosts(o->grid, &o->hosts.list, err) < 0)
        return err->code;
    if (o->hosts.relay_where && grid_job_keep_logs_at(o->grid, o->hosts.relay_where, err) < 0)
        return err->code;
    o->hosts.relay_where = NULL; /* no more to be taken for a word of host_options.h */
    set_up_tunnels(&o->grid->grid);
    o->hosts.launcher_args = o->grid->ssh_args;
    if (!o->hosts.timeout_ns)
        o->hosts.timeout_ns = HOST_TIMEOUT_GRID_NS;
    if (!o->hosts.stage_dir)
        o->hosts.stage_dir = STAGE_DIR;
    return CW_OK;
}

/* Each rank can reach them from whichever host it is on. */
static int check_relays_of_hosts(struct run_options *o, struct cw_err *err)
{
    bool at_host = o->hosts.relay_at == RELAY_AT_HOST;

    if (o->relay_count && o->hosts.relay_where)
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
    static const char *const of_hosts[] = {"ppn",      "map-by",        "oversubscribe", "spares",
                                           "launcher", "launcher-args", "agent",         "relay-at",
                                           "stage",    "stage-dir",     "ckptsrv",       NULL};
    const char *name = first_of(o, of_hosts);

    if (o->grid_file && take_grid(o, err) < 0)
        return err->code;
    if (host_options_complete(&o->hosts, o->ranks, o->job_dir ? no_variable : getenv, err) < 0)
        return err->code;
    if (o->images.copies > 1 && o->hosts.ckptsrv_hosts < o->images.copies)
        return cw_err_set(err, CW_EINVAL,
                          "--ckpt-copies %u, but there are checkpoint servers on %u hosts: give "
                          "--ckptsrv HOST,HOST or --ckptsrv all",
                          o->images.copies, o->hosts.ckptsrv_hosts);
    if (o->grid)
        return CW_OK;
    if (o->here || o->restart_at_any_site)
        return cw_err_set(err, CW_EINVAL, "%s is for a grid: give -f FILE",
                          o->here ? "--here" : "--restart-at");
    if (o->hosts.list.count == 0)
        return !name || (!o->job_dir && getenv("SLURM_JOB_NODELIST"))
                   ? CW_OK
                   : cw_err_set(err, CW_EINVAL,
                                "--%s is for a job on several machines: give --host or --hostfile",
                                name);
    return o->job_dir ? cw_err_set(err, CW_EINVAL, "--job-dir: not for a job on several hosts")
                      : check_relays_of_hosts(o, err);
}

/* A host that is cut off for a moment is only waited for: its ranks must not count as silent. So it
 * is with this machine's own node, where that time is said. */
static int choose_alive_timeout(struct run_options *o, struct cw_err *err)
{
    uint64_t host_ns = o->hosts.list.count || given(o, "host-timeout") ? o->hosts.timeout_ns : 0;

    if (o->alive_timeout_ns == UINT64_MAX)
        o->alive_timeout_ns =
            2 * host_ns > OPTIONS_ALIVE_TIMEOUT_NS ? 2 * host_ns : OPTIONS_ALIVE_TIMEOUT_NS;
    if (o->alive_timeout_ns <= host_ns)
        return cw_err_set(err, CW_EINVAL,
                          "--alive-timeout (%gs) must be more than --host-timeout (%gs)",
                          (double)o->alive_timeout_ns / 1e9, (double)host_ns / 1e9);
    o->alive_period_ns = o->alive_timeout_ns / OPTIONS_ALIVE_PERIODS;
    if (o->alive_period_ns > OPTIONS_ALIVE_PERIOD_NS)
        o->alive_period_ns = OPTIONS_ALIVE_PERIOD_NS;
    return CW_OK;
}

/* What is known once all options are. */
static int complete(struct run_options *o, struct cw_err *err)
{
    if (check_hosts(o, err) < 0 || choose_alive_timeout(o, err) < 0)
        return err->code;
    choose_resume_timeout(o);
    if (check_relay(o, err) < 0 || check_channel(o, err) < 0 || check_images(o, err) < 0 ||
        check_recovery(o, err) < 0)
        return err->code;
    return check_copies(o, err);
}

int run_options_parse(struct run_options *o, int argc, char **argv, struct cw_err *err)
{
    int start = 0; /* getopt skips what stands before the options: "run", or the NULL for ':' */

    *o = (struct run_options){.spin_ns = UINT64_MAX,
                              .max_restarts = JOB_RESTARTS_MAX,
                              .alive_timeout_ns = UINT64_MAX,
                              .kill_after_ns = OPTIONS_KILL_AFTER_NS,
                              .resume_ns = UINT64_MAX};
    relay_settings_init(&o->relay_settings);
    fault_plan_init(&o->faults);
    host_options_init(&o->hosts);
    o->words = calloc((size_t)argc + 1, sizeof(*o->words));
    if (!o->words)
        return cw_err_set(err, CW_ENOMEM, "no memory for the options");
    for (o->word_count = 0; o->word_count < argc; o->word_count++)
        o->words[o->word_count] = argv[o->word_count];
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
    free(o->words);
}
