/* The command line of `causeway run`. */
#include "common/frame.h"
#include "dispatcher/run/layout.h"
#include "tests/unit/options_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

SUITE("options");

static const char *given(const char *name)
{
    return o.values[cw_option_number(&run_option_list, name)];
}

/* Segment `i` runs this program with one argument (NULL: none). */
static void runs(uint32_t i, uint32_t ranks, const char *program, const char *argument)
{
    const struct run_segment *s = &o.segments[i];

    CU_ASSERT_TRUE_FATAL(i < o.segment_count);
    CU_ASSERT_EQUAL(s->ranks, ranks);
    CU_ASSERT_STRING_EQUAL(s->argv[0], program);
    if (!argument) {
        CU_ASSERT_PTR_NULL(s->argv[1]);
        return;
    }
    CU_ASSERT_STRING_EQUAL(s->argv[1], argument);
    CU_ASSERT_PTR_NULL(s->argv[2]);
}

TEST(defaults)
{
    good("run ./a.out");
    CU_ASSERT_EQUAL(o.segment_count, 1);
    runs(0, 1, "./a.out", NULL);
    CU_ASSERT_EQUAL(o.ranks, 1);
    CU_ASSERT_EQUAL(o.relay_count, 0);
    CU_ASSERT_EQUAL(o.relays, 1);
    CU_ASSERT_PTR_NULL(o.segments[0].wdir);
    CU_ASSERT_EQUAL(o.timeout_ns, 0);
    CU_ASSERT_EQUAL(o.spin_ns, UINT64_MAX);
    CU_ASSERT_FALSE(o.tag_output || o.stats || o.verbose || o.help || o.no_log || o.trust_files);
    CU_ASSERT_EQUAL(o.max_restarts, 100);
    CU_ASSERT_EQUAL(o.alive_period_ns, 500000000);
    CU_ASSERT_EQUAL(o.alive_timeout_ns, 10000000000);
    CU_ASSERT_EQUAL(o.faults.count, 0);
    CU_ASSERT_PTR_NULL(o.events);
    CU_ASSERT_PTR_NULL(given("log-memory"));
    run_options_free(&o);
}

TEST(ranks_in_every_spelling)
{
    static const char *const lines[] = {"run -n 4 p",   "run -np 4 p", "run --n 4 p",
                                        "run --np 4 p", "run -n=4 p",  "run --np=4 p"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        good(lines[i]);
        runs(0, 4, "p", NULL);
        run_options_free(&o);
    }
}

/* What follows the program is its own, whatever it looks like. */
TEST(arguments_of_the_program)
{
    good("run -n 2 p --help");
    runs(0, 2, "p", "--help");
    CU_ASSERT_FALSE(o.help);
    run_options_free(&o);
    good("run -n 2 -- -p -n");
    runs(0, 2, "-p", "-n");
    run_options_free(&o);
}

TEST(every_option)
{
    setenv("CAUSEWAY_TEST_OPTION", "set", 1);
    good("run --relay tcp:h:1 --key-file k --output-dir d "
         "--tag-output --timeout 5m --spin 0.05ms --stats --verbose --genv A=1 -x B=2 "
         "-x CAUSEWAY_TEST_OPTION --env C=3 --env D= --wdir w p");
    unsetenv("CAUSEWAY_TEST_OPTION");
    CU_ASSERT_EQUAL(o.relay_count, 1);
    CU_ASSERT_STRING_EQUAL(o.relay_addresses[0], "tcp:h:1");
    CU_ASSERT_STRING_EQUAL(o.key_file, "k");
    CU_ASSERT_STRING_EQUAL(o.output_dir, "d");
    CU_ASSERT_STRING_EQUAL(o.segments[0].wdir, "w");
    CU_ASSERT_EQUAL(o.timeout_ns, 300000000000);
    CU_ASSERT_EQUAL(o.spin_ns, 50000);
    CU_ASSERT_TRUE(o.tag_output && o.stats && o.verbose && !o.help);
    CU_ASSERT_EQUAL_FATAL(o.env_count, 2);
    CU_ASSERT_STRING_EQUAL(o.env[0], "A=1");
    CU_ASSERT_STRING_EQUAL(o.env[1], "B=2");
    CU_ASSERT_EQUAL_FATAL(o.segments[0].env_count, 2);
    CU_ASSERT_STRING_EQUAL(o.segments[0].env[0], "C=3");
    CU_ASSERT_STRING_EQUAL(o.segments[0].env[1], "D=");
    run_options_free(&o);
}

TEST(options_of_the_own_relay)
{
    good("run --engine poll --memory-max 2G p");
    CU_ASSERT_STRING_EQUAL(given("engine"), "poll");
    CU_ASSERT_STRING_EQUAL(given("memory-max"), "2G");
    CU_ASSERT_EQUAL(o.relay_settings.memory_max, 2ull << 30);
    CU_ASSERT_EQUAL(o.relay_settings.log_safety, RELAY_LOG_IN_MEMORY);
    run_options_free(&o);
    good("run --log-safety file --relays 3 --fault kill:relay2@1s p");
    CU_ASSERT_EQUAL(o.relay_settings.log_safety, RELAY_LOG_IN_FILE);
    CU_ASSERT_STRING_EQUAL(given("log-safety"), "file");
    CU_ASSERT_EQUAL(o.faults.relays, 3);
    run_options_free(&o);
    good("run --log-safety memory --resume-timeout 0 p");
    run_options_free(&o);
    bad("run --relay unix:x --engine poll p", "not with --relay");
    bad("run --relay unix:x p : --memory-max 2G q", "not with --relay");
    bad("run --key-file k p", "--key-file is for --relay");
}

TEST(recovery)
{
    good("run --max-restarts 0 --alive-timeout 1s --fault "
         "kill:2@300ms "
         "--fault stop:1@1s --fault-seed 7 --events e.json --log-memory 1G -n 3 p");
    CU_ASSERT_EQUAL(o.max_restarts, 0);
    CU_ASSERT_EQUAL(o.alive_period_ns, 125000000);
    CU_ASSERT_EQUAL(o.alive_timeout_ns, 1000000000);
    CU_ASSERT_EQUAL_FATAL(o.faults.count, 2);
    CU_ASSERT_EQUAL(o.faults.faults[0].kind, FAULT_KILL);
    CU_ASSERT_EQUAL(o.faults.faults[0].rank, 2);
    CU_ASSERT_EQUAL(o.faults.faults[1].kind, FAULT_STOP);
    CU_ASSERT_EQUAL(o.faults.seed, 7);
    CU_ASSERT_STRING_EQUAL(o.events, "e.json");
    CU_ASSERT_STRING_EQUAL(given("log-memory"), "1G");
    run_options_free(&o);
    good("run --no-log --fault kill:0@1s p");
    CU_ASSERT_TRUE(o.no_log);
    run_options_free(&o);
    good("run --check-contents all --contents-differ end p");
    CU_ASSERT_EQUAL(o.contents, CONTENTS_ALL);
    CU_ASSERT_TRUE(o.contents_end);
    run_options_free(&o);
    good("run --check-contents none --contents-differ go-on p");
    CU_ASSERT_EQUAL(o.contents, CONTENTS_NONE);
    CU_ASSERT_FALSE(o.contents_end);
    run_options_free(&o);
    good("run --log-lost end p");
    CU_ASSERT_TRUE(o.log_lost_ends);
    run_options_free(&o);
    good("run --log-lost go-on p");
    CU_ASSERT_FALSE(o.log_lost_ends);
    run_options_free(&o);
    good("run --trust-files p");
    CU_ASSERT_TRUE(o.trust_files);
    run_options_free(&o);
}

static void channel(const char *options, enum channel_use use)
{
    char line[128];

    snprintf(line, sizeof(line), "run %s a", options);
    good(line);
    CU_ASSERT_EQUAL(o.channel, use);
    run_options_free(&o);
}

TEST(channel_memory)
{
    static const char *const without[] = {"--engine poll",
                                          "--rings off",
                                          "--relay unix:/r",
                                          "--relays 2",
                                          "--relays 2 --relay-map 0",
                                          "--host a,b --spares 1",
                                          "--host a,b --relay-at cluster",
                                          "--log-dir /tmp",
                                          "--job-dir /tmp/no",
                                          "-n 129",
                                          NULL};

    channel("", CHANNEL_ON);
    channel("-n 128 --log-memory 1G --log-disk 1G --no-ckpt", CHANNEL_ON);
    channel("--no-log", CHANNEL_ON);
    channel("--channel off", CHANNEL_OFF);
    channel("--channel on --engine poll --no-ckpt", CHANNEL_ON);
    for (int i = 0; without[i]; i++)
        channel(without[i], CHANNEL_OFF);
    channel("--log-safety file", CHANNEL_ON);
    channel("--host a,b -n 200", CHANNEL_AUTO);
    bad("run --channel on --log-dir /tmp a", "--channel on");
    bad("run --channel maybe a", "--channel");
}

/* The memory is mapped whole. */
TEST(channel_memory_under_limits)
{
    static const int limits[] = {RLIMIT_AS, RLIMIT_FSIZE};
    struct rlimit before;

    for (int i = 0; i < 2; i++) {
        getrlimit(limits[i], &before);
        setrlimit(limits[i], &(struct rlimit){1ull << 40, before.rlim_max});
        channel("", CHANNEL_OFF);
        channel("--channel on", CHANNEL_ON);
        setrlimit(limits[i], &before);
    }
}

TEST(resume_timeout)
{
    good("run p");
    CU_ASSERT_EQUAL(o.resume_ms, 10000);
    run_options_free(&o);
    good("run --alive-timeout 3s p");
    CU_ASSERT_EQUAL(o.resume_ms, 3000);
    run_options_free(&o);
    good("run --alive-timeout 5h p");
    CU_ASSERT_EQUAL(o.resume_ms, CW_RESUME_MAX_MS);
    run_options_free(&o);
    good("run --resume-timeout 0.5 --alive-timeout 3s p");
    CU_ASSERT_EQUAL(o.resume_ms, 500);
    run_options_free(&o);
    good("run --resume-timeout 0 p");
    CU_ASSERT_EQUAL(o.resume_ms, 0);
    run_options_free(&o);
    good("run --resume-timeout 0.1ms p");
    CU_ASSERT_EQUAL(o.resume_ms, 1);
    run_options_free(&o);
    good("run --resume-timeout 1h p");
    CU_ASSERT_EQUAL(o.resume_ms, 3600000);
    run_options_free(&o);
    bad("run --resume-timeout soon p", "--resume-timeout 'soon'");
    bad("run --resume-timeout 61m p", "--resume-timeout '61m': expected at most 1h");
}

TEST(images)
{
    good("run p");
    CU_ASSERT_FALSE(o.images.none);
    CU_ASSERT_EQUAL(o.images.every_ns, 0);
    CU_ASSERT_EQUAL(o.images.server_count, 0);
    run_options_free(&o);
    good("run --ckpt-every 200ms --mtbf 2h --ckpt-dir d --ckpt-max 3G p");
    CU_ASSERT_EQUAL(o.images.every_ns, 200000000);
    CU_ASSERT_EQUAL(o.images.mtbf_ns, 7200000000000ull);
    CU_ASSERT_STRING_EQUAL(o.images.dir, "d");
    CU_ASSERT_EQUAL(o.images.bytes_max, 3ull << 30);
    run_options_free(&o);
    good("run --ckpt-server unix:a --ckpt-server tcp:b:1 --ckpt-key-file k p");
    CU_ASSERT_EQUAL_FATAL(o.images.server_count, 2);
    CU_ASSERT_STRING_EQUAL(o.images.servers[1], "tcp:b:1");
    CU_ASSERT_STRING_EQUAL(o.images.key_file, "k");
    run_options_free(&o);
    good("run --no-ckpt p");
    CU_ASSERT_TRUE(o.images.none);
    run_options_free(&o);
    good("run --no-log p");
    CU_ASSERT_TRUE(o.images.none);
    run_options_free(&o);
    bad("run --ckpt-every soon p", "--ckpt-every 'soon'");
    bad("run --ckpt-every 0.1ms p", "--ckpt-every '0.1ms': expected at least 1ms");
    bad("run --ckpt-max x p", "--ckpt-max 'x'");
    bad("run --no-ckpt --mtbf 3h p", "--mtbf is for images, which --no-ckpt turns off");
    bad("run --no-log --ckpt-dir d p", "--ckpt-dir is for images, which --no-log turns off");
    bad("run --ckpt-server unix:a --ckpt-max 1G p", "--ckpt-max is for the job's own checkpoint");
    bad("run --ckpt-key-file k p", "--ckpt-key-file is for --ckpt-server ADDRESS");
}

TEST(collectives)
{
    good("run --relays 2 p");
    CU_ASSERT_FALSE(o.flat_collectives);
    run_options_free(&o);
    good("run --relays 2 --collectives flat p");
    CU_ASSERT_TRUE(o.flat_collectives);
    run_options_free(&o);
    good("run --collectives flat --collectives sites p");
    CU_ASSERT_FALSE(o.flat_collectives);
    run_options_free(&o);
    bad("run --collectives both p", "--collectives both: expected sites or flat");
}

TEST(bad_recovery)
{
    bad("run --max-restarts -1 p", "--max-restarts '-1'");
    bad("run --max-restarts 5000000000 p", "--max-restarts '5000000000'");
    bad("run --alive-timeout 9ms p", "--alive-timeout '9ms': expected at least 10ms");
    bad("run --alive-timeout 1x p", "--alive-timeout '1x'");
    bad("run --fault burn:1@2s p", "burn:1@2s");
    bad("run --fault kill:2@2s -n 2 p", "kill:2@2s");
    bad("run --fault-seed x p", "--fault-seed 'x'");
    bad("run --log-memory x p", "--log-memory 'x'");
    bad("run --log-memory 1G --no-log p", "--log-memory is for the log");
    bad("run --log-dir /tmp --no-log p", "--log-dir is for the log");
    bad("run --log-safety never p", "--log-safety never: expected memory, file, sync or copy");
    bad("run --log-safety copy p", "--log-safety copy comes with --log-copies");
    bad("run --log-safety sync p", "--log-safety sync needs --job-dir DIR here");
    bad("run --log-safety file --no-log p", "--log-safety is for the log");
    bad("run --log-safety file --resume-timeout 0 p", "--resume-timeout 0 gives them up at once");
    bad("run --relay unix:x --log-safety file p", "--log-safety is for the job's own relay");
    bad("run --relay unix:x --fault kill:relay@1s p", "not with --relay");
    bad("run --relays 2 --fault kill:relay2@1s p", "no relay 2, the last is 1");
    bad("run --check-contents most p", "--check-contents most: expected some, all or none");
    bad("run --contents-differ perhaps p", "--contents-differ perhaps: expected go-on or end");
    bad("run --log-lost perhaps p", "--log-lost perhaps: expected go-on or end");
    bad("run --rings maybe p", "--rings maybe: expected on or off");
    bad("run --relay unix:x --log-memory 1G p", "not with --relay");
}

/* Of relays' logs, on other hosts. */
TEST(log_copies)
{
    good("run --host a,b p");
    CU_ASSERT_EQUAL(o.log_copies, 0);
    run_options_free(&o);
    good("run --host a,b --log-copies 2 --host-timeout 3s p");
    CU_ASSERT_EQUAL(o.log_copies, 2);
    CU_ASSERT_EQUAL(o.relay_settings.log_safety, RELAY_LOG_COPIED);
    CU_ASSERT_STRING_EQUAL(given("log-safety"), "copy");
    CU_ASSERT_EQUAL(o.channel, CHANNEL_OFF);
    CU_ASSERT_TRUE(o.resume_ms > 3000);
    run_options_free(&o);
    good("run --host a,b --log-copies 1 --log-safety copy --spares 1 p");
    run_options_free(&o);
    good("run --log-copies 0 p");
    run_options_free(&o);
    bad("run --host a,b --log-copies 3 p", "--log-copies");
    bad("run --log-copies 1 p", "--log-copies is for a job on several machines");
    bad("run --host a,b --log-copies 1 --no-log p", "not with --no-log");
    bad("run --host a,b --log-copies 1 --relay tcp:h:1 --key-file f p", "not with --relay");
    bad("run --host a,b --log-copies 1 --relay-at cluster p", "not with --relay-at cluster");
    bad("run --host a,b --log-copies 1 --log-safety file p", "not with --log-safety");
    bad("run --host a,b --log-copies 1 --channel on p", "not with --log-copies and images");
    good("run --host a,b --log-copies 1 --channel on --no-ckpt p");
    CU_ASSERT_EQUAL(o.channel, CHANNEL_ON);
    run_options_free(&o);
    bad("run --host a,b --log-copies 1 --engine thread p", "not with --engine, which is poll then");
    bad("run --job-dir d --log-copies 1 p", "not with --job-dir");
    bad("run --host a,b --log-copies 1 --host-timeout 5s --resume-timeout 5s p",
        "--resume-timeout (5s) must be more than --host-timeout (5s)");
}

/* Jobs that are kept, to be gone on with. */
TEST(job_dir)
{
    good("run --job-dir d p");
    CU_ASSERT_STRING_EQUAL(o.job_dir, "d");
    CU_ASSERT_EQUAL(o.relay_settings.log_safety, RELAY_LOG_SYNCED);
    CU_ASSERT_STRING_EQUAL(given("log-safety"), "sync");
    run_options_free(&o);
    good("run --job-dir d --log-safety sync --no-ckpt p");
    run_options_free(&o);
    bad("run --job-dir d --relays 2 p", "not with --relays");
    bad("run --job-dir d --relay unix:x p", "not with --relay");
    bad("run --job-dir d --no-log p", "not with --no-log");
    good("run --job-dir d --log-safety file p");
    CU_ASSERT_EQUAL(o.relay_settings.log_safety, RELAY_LOG_IN_FILE);
    run_options_free(&o);
    bad("run --job-dir d --log-safety memory p", "not with --log-safety memory");
    bad("run --resume d p", "--resume d: it comes first");
}

TEST(segments)
{
    good("run --stats -n 1 --env A=1 master x : -n 3 --wdir w slave : last y");
    CU_ASSERT_EQUAL(o.segment_count, 3);
    CU_ASSERT_EQUAL(o.ranks, 5);
    runs(0, 1, "master", "x");
    runs(1, 3, "slave", NULL);
    runs(2, 1, "last", "y");
    CU_ASSERT_EQUAL(o.segments[0].env_count, 1);
    CU_ASSERT_EQUAL(o.segments[1].env_count, 0);
    CU_ASSERT_STRING_EQUAL(o.segments[1].wdir, "w");
    CU_ASSERT_PTR_NULL(o.segments[2].wdir);
    CU_ASSERT_TRUE(o.stats);
    run_options_free(&o);
    /* options of the whole job may stand after a ':' too */
    good("run a : --verbose b");
    CU_ASSERT_TRUE(o.verbose);
    runs(1, 1, "b", NULL);
    run_options_free(&o);
}

TEST(help)
{
    good("run --help");
    CU_ASSERT_TRUE(o.help);
    run_options_free(&o);
    good("run -n 2 --help");
    CU_ASSERT_TRUE(o.help);
    run_options_free(&o);
}

TEST(no_program)
{
    bad("run", "no program to run");
    bad("run -n 2", "no program to run");
    bad("run -n 2 p :", "no program to run");
    bad("run : p", "no program to run");
    bad("run a : : b", "no program to run");
}

TEST(bad_values)
{
    bad("run -n 0 p", "-n '0': expected a whole number from 1 to 65536");
    bad("run -n x p", "-n 'x'");
    bad("run -n 65537 p", "-n '65537'");
    bad("run -n 65536 p : p", "65537 ranks: a job has at most 65536");
    bad("run --env A p", "--env 'A': expected NAME=VALUE");
    bad("run --env =1 p", "--env '=1': expected NAME=VALUE");
    bad("run --genv A p", "--genv 'A'");
    bad("run -x =1 p", "-x '=1'");
    bad("run -x CAUSEWAY_TEST_NOT_SET p", "-x CAUSEWAY_TEST_NOT_SET: not set");
    bad("run --timeout 5x p", "--timeout '5x'");
    bad("run --spin never p", "--spin 'never'");
}

TEST(unknown_options)
{
    bad("run --frob p", "unknown option '--frob'; see causeway run --help");
    bad("run -q p", "unknown option '-q'");
    bad("run -n 2 p : --frob q", "unknown option '--frob'");
    bad("run -n", "a value is missing after '-n'");
    bad("run --relay", "a value is missing after '--relay'");
    bad("run p : --wdir", "a value is missing after '--wdir'");
}

static void repeat(char *line, const char *what, int times, const char *end)
{
    strcpy(line, "run");
    while (times-- > 0)
        strcat(line, what);
    strcat(line, end);
}

TEST(bounds)
{
    static char line[16384];

    repeat(line, " --env A=1", OPTIONS_ENV_MAX, " p");
    good(line);
    CU_ASSERT_EQUAL(o.segments[0].env_count, OPTIONS_ENV_MAX);
    run_options_free(&o);
    repeat(line, " --env A=1", OPTIONS_ENV_MAX + 1, " p");
    bad(line, "--env 'A=1': more than 256 settings");
    repeat(line, " --genv A=1", OPTIONS_ENV_MAX + 1, " p");
    bad(line, "--genv 'A=1': more than 256 settings");
    repeat(line, " p :", OPTIONS_SEGMENTS_MAX - 1, " p");
    good(line);
    CU_ASSERT_EQUAL(o.ranks, OPTIONS_SEGMENTS_MAX);
    run_options_free(&o);
    repeat(line, " p :", OPTIONS_SEGMENTS_MAX, " p");
    bad(line, "more than 64 programs");
}
