/* The command line of `causeway run`: hosts, sites, and where ranks and relays are on them. */
#include "common/frame.h"
#include "dispatcher/hosts/grid_state.h"
#include "dispatcher/run/layout.h"
#include "tests/lib/scratch.h"
#include "tests/unit/options_site.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("options of hosts");

/* --- several machines --- */

static struct layout layout;
static bool limited; /* what ranks may map, on a host */

/* On hosts with so many cores, one digit for each. */
static int lay_out(const char *digits)
{
    uint32_t cores[32] = {0};

    CU_ASSERT_TRUE_FATAL(o.hosts.list.count <= 32);
    for (size_t i = 0; digits[i]; i++)
        cores[i] = (uint32_t)(digits[i] - '0');
    layout_free(&layout);
    return layout_make(&layout, &o, cores, limited, &err);
}

/* The hosts of the ranks, by their numbers. */
static void ranks_on_cores(const char *digits, const char *expected)
{
    const struct placement *p = &layout.placement;
    char hosts[64] = "";

    CU_ASSERT_EQUAL_FATAL(lay_out(digits), CW_OK);
    CU_ASSERT_TRUE_FATAL(o.ranks < sizeof(hosts) && p->ranks == o.ranks);
    for (uint32_t i = 0; i < o.ranks; i++)
        hosts[i] = (char)('0' + p->slot_host[p->rank_slot[i]]);
    CU_ASSERT_STRING_EQUAL(hosts, expected);
}

static void ranks_on(const char *expected)
{
    ranks_on_cores("1111", expected);
}

/* The options are good, and the hosts do not do. */
static void too_small(const char *line, const char *digits, const char *text)
{
    good(line);
    CU_ASSERT_EQUAL(lay_out(digits), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
    run_options_free(&o);
}

TEST(no_hosts)
{
    good("run -n 4 p");
    CU_ASSERT_EQUAL(o.hosts.list.count, 0);
    CU_ASSERT_EQUAL(lay_out(""), CW_OK);
    CU_ASSERT_EQUAL(layout.placement.slots, 0);
    CU_ASSERT_EQUAL(layout.relays, 1);
    CU_ASSERT_STRING_EQUAL(o.hosts.launcher, "ssh");
    CU_ASSERT_EQUAL(o.hosts.timeout_ns, 10000000000);
    CU_ASSERT_EQUAL(o.hosts.relay_at, RELAY_AT_HOST);
    CU_ASSERT_EQUAL(o.relays, 1);
    run_options_free(&o);
}

/* Whether its ranks have channel memory, once they have their places. */
static void has_channel(const char *line, bool expected)
{
    good(line);
    CU_ASSERT_EQUAL(lay_out("1111"), CW_OK);
    CU_ASSERT_EQUAL(layout.channel, expected);
    run_options_free(&o);
}

/* Where some are together, and none too many. */
TEST(channel_memory_on_hosts)
{
    has_channel("run -n 4 p", true);
    has_channel("run --host a:2,b:9 -n 2 p", true);
    has_channel("run --host a,b -n 2 p", false);
    has_channel("run --host a:128,b:128 -n 256 p", true);
    has_channel("run --host a:129,b:2 -n 131 p", false);
    has_channel("run --host a:129,b:2 --channel on -n 131 p", true); /* and an error */
    limited = true;
    has_channel("run --host a:2,b:2 -n 4 p", false);
    limited = false;
}

/* Spare hosts have relays for copies, and ranks may share slots. */
TEST(copies_on_hosts)
{
    good("run --host a:2,b:2,c:2 --spares 1 --log-copies 1 -n 4 p");
    ranks_on("0011");
    CU_ASSERT_EQUAL(layout.relays, 3);
    CU_ASSERT_EQUAL(layout.relay_host[2], 2);
    CU_ASSERT_EQUAL(memcmp(layout.homes, (uint8_t[]){0, 0, 1, 1}, 4), 0);
    CU_ASSERT_TRUE(layout.placement.slot_ranks_max[0] > 2);
    run_options_free(&o);
    good("run --host a:2,b:2,c:2 --spares 1 -n 4 p");
    ranks_on("0011");
    CU_ASSERT_EQUAL(layout.relays, 2);
    CU_ASSERT_EQUAL(layout.placement.slot_ranks_max[0], 1);
    run_options_free(&o);
}

TEST(hosts_and_their_ranks)
{
    good("run --host a:2,b -host c:2 -n 3 p : -n 2 q");
    CU_ASSERT_EQUAL(o.hosts.list.count, 3);
    ranks_on("00122");
    CU_ASSERT_EQUAL(layout.relays, 3); /* one on each */
    CU_ASSERT_EQUAL(memcmp(layout.homes, (uint8_t[]){0, 0, 1, 2, 2}, 5), 0);
    CU_ASSERT_TRUE(layout.at_hosts && !layout.running);
    CU_ASSERT_EQUAL(layout.relay_host[2], 2);
    CU_ASSERT_EQUAL(o.alive_timeout_ns, 20000000000);
    CU_ASSERT_EQUAL(o.resume_ms, 20000);
    run_options_free(&o);
    good("run --host-timeout 6s p"); /* of this machine's own node */
    CU_ASSERT_EQUAL(o.hosts.timeout_ns, 6000000000);
    CU_ASSERT_EQUAL(o.alive_timeout_ns, 12000000000);
    run_options_free(&o);
    good("run --host a:2,b:2,c:2 --ppn 1 --map-by node --spares 1 --launcher srun --launcher-args "
         "-v --agent /opt/causeway --host-timeout 1s --relay-at cluster --stage --oversubscribe -n "
         "5 "
         "p");
    ranks_on("01010");
    CU_ASSERT_TRUE(o.hosts.list.host[2].spare && !o.hosts.list.host[1].spare);
    CU_ASSERT_STRING_EQUAL(o.hosts.launcher, "srun");
    CU_ASSERT_STRING_EQUAL(o.hosts.launcher_args, "-v");
    CU_ASSERT_STRING_EQUAL(o.hosts.causeway, "/opt/causeway");
    CU_ASSERT_EQUAL(o.hosts.timeout_ns, 1000000000);
    CU_ASSERT_TRUE(o.hosts.placing.oversubscribe);
    CU_ASSERT_STRING_EQUAL(o.hosts.stage_dir, "/var/tmp");
    CU_ASSERT_EQUAL(o.hosts.relay_at, RELAY_AT_CLUSTER);
    CU_ASSERT_EQUAL(layout.relays, 1);
    CU_ASSERT_TRUE(!layout.at_hosts && !layout.homes);
    CU_ASSERT_EQUAL(o.alive_timeout_ns, 10000000000);
    run_options_free(&o);
    good("run --host a,b,c --spares 1 -n 2 p");
    ranks_on("01");
    CU_ASSERT_EQUAL(layout.relays, 2); /* none where no rank is */
    run_options_free(&o);
    good("run --host a,b --relay tcp:c:7000 --key-file k -n 2 p");
    CU_ASSERT_EQUAL(o.relays, 1);
    run_options_free(&o);
    good("run --host a,b --relay-at cluster --relays 2 -n 2 p");
    run_options_free(&o);
}

static char hosts_path[64];

/* `option` and a file of this text. Its name is hosts_path. */
static const char *with_file(const char *option, const char *text, const char *rest)
{
    static char line[256];
    int fd;

    strcpy(hosts_path, "/tmp/causeway-options-XXXXXX");
    fd = mkstemp(hosts_path);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    snprintf(line, sizeof(line), "run %s %s %s", option, hosts_path, rest);
    return line;
}

static void good_file(const char *option, const char *text, const char *rest, const char *hosts)
{
    good(with_file(option, text, rest));
    unlink(hosts_path);
    ranks_on(hosts);
    run_options_free(&o);
}

static void bad_file(const char *option, const char *text, const char *rest, const char *says)
{
    bad(with_file(option, text, rest), says);
    unlink(hosts_path);
}

TEST(files_of_hosts)
{
    good_file("--hostfile", "a:2\nb slots=2\n", "-n 3 p", "001");
    bad_file("--hostfile", "a:2\nb slots=many\n", "p", ", line 2: slots 'many'");
    bad_file("--hostfile", "# a\n", "p", "there is no host in it");
    good_file("--rankfile", "rank 1=a slot=0\nrank 0=b slot=1\n", "-n 2 p", "10");
    good_file("--host b:2,a --rankfile", "rank 1=a slot=0\nrank 0=b slot=1\n", "-n 2 p", "01");
    bad_file("--rankfile", "rank 0-1=a slot=0-1\n", "-n 3 p", ": no line for rank 2 of 3");
    bad_file("--rankfile", "rank 0=a slot=0\n", "--ppn 2 p",
             "--ppn: --rankfile says already which rank is where");
    CU_ASSERT_EQUAL(parse("run --hostfile /no/such/file p"), CW_ENOTFOUND);
    CU_ASSERT_STRING_EQUAL(err.text, "--hostfile: /no/such/file: No such file or directory");
    run_options_free(&o);
}

TEST(bad_hosts)
{
    bad("run --host a:0 p", "--host: slots of a '0': expected a whole number from 1 to 4096");
    bad("run --host= p", "--host: the value is empty");
    bad("run --host a --hostfile f p", "--host and --hostfile both say the hosts");
    bad("run --host a --spares 1 p", "--spares 1: the job has 1 hosts");
    bad("run --host a --ppn 0 p", "--ppn '0'");
    bad("run --host a --ppn 4097 p", "--ppn '4097'");
    bad("run --host a --map-by core p", "--map-by core: expected slot, node or site");
    bad("run --stage p", "--stage is for a job on several machines");
    bad("run --host a --stage-dir tmp p", "--stage-dir 'tmp': expected a path from / on");
    bad("run --ckptsrv b p", "--ckptsrv is for a job on several machines");
    bad("run --host a --ckptsrv -b p", "host '-b': expected a name");
    bad("run --host a --ckptsrv b,,c p", "--ckptsrv b,,c: host '': expected a name");
    bad("run --host a --ckptsrv 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17 p",
        "17: more than 16 hosts");
    bad("run --ckpt-copies 3 p", "--ckpt-copies '3'");
    bad("run --ckpt-copies 2 p", "--ckpt-copies 2, but there are checkpoint servers on 0 hosts");
    bad("run --host a --ckptsrv b,b --ckpt-copies 2 p", "checkpoint servers on 1 hosts");
    bad("run --host a --ckptsrv b --no-ckpt p",
        "--ckptsrv is for images, which --no-ckpt turns off");
    bad("run --host a --ckptsrv b --ckpt-server unix:s p",
        "--ckptsrv is for the job's own checkpoint server, not with --ckpt-server");
    bad("run --host a --relay-at home p", "--relay-at 'home': expected host or cluster, or a site");
    bad("run --host a --host-timeout 99ms p", "--host-timeout '99ms': expected 100ms to 1h");
    bad("run --host a --host-timeout 2h p", "--host-timeout '2h': expected 100ms to 1h");
    bad("run --host-timeout 1s --alive-timeout 1s p",
        "--alive-timeout (1s) must be more than --host-timeout (1s)");
    bad("run --host a --alive-timeout 10s p",
        "--alive-timeout (10s) must be more than --host-timeout (10s)");
    bad("run --host a --job-dir d p", "--job-dir: not for a job on several hosts");
    bad("run --host a --relay unix:x p", "--relay unix:x: other hosts cannot reach it");
    bad("run --host a --relay tcp:x:1 --key-file k --relay-at cluster p",
        "--relay-at is for the job's own relays");
    bad("run --host a --relays 2 p", "--relays: there is a relay on each host");
    bad("run --host a --relay-map 0 p", "--relay-map: there is a relay on each host");
    bad("run --ppn 2 -n 2 p", "--ppn is for a job on several machines: give --host or --hostfile");
    bad("run --launcher srun p", "--launcher is for a job on several machines");
}

/* Where the list has no number, a host has a slot, or as many as cores if these are too few. */
TEST(places_by_cores)
{
    good("run --host a,b,c -n 3 p");
    ranks_on_cores("888", "012");
    run_options_free(&o);
    good("run --host a,b,c -n 4 p");
    ranks_on_cores("288", "0011");
    run_options_free(&o);
    good("run --host a,b:1,c -n 7 p");
    ranks_on_cores("349", "0001222");
    run_options_free(&o);
    good("run --host a,b,a -n 4 p"); /* named twice: two */
    ranks_on_cores("92", "0011");
    run_options_free(&o);
    good("run --host a,b --ppn 1 -n 2 p");
    ranks_on_cores("88", "01");
    run_options_free(&o);
    too_small("run --host a,b:2 -n 6 p", "31", "6 ranks, but the hosts have room for 5");
    too_small("run --host a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q -n 17 p", "11111111111111111",
              "a job has at most 16 relays; give --relay-at cluster");
}

TEST(slurm)
{
    setenv("SLURM_JOB_NODELIST", "n[1-3]", 1);
    setenv("SLURM_TASKS_PER_NODE", "2(x2),1", 1);
    good("run -n 5 p");
    CU_ASSERT_TRUE(o.hosts.of_slurm);
    ranks_on("00112");
    run_options_free(&o);
    good("run --host a:2 -n 2 p");
    CU_ASSERT_FALSE(o.hosts.of_slurm);
    CU_ASSERT_EQUAL(o.hosts.list.count, 1);
    run_options_free(&o);
    good("run --job-dir d -n 2 p");
    CU_ASSERT_EQUAL(o.hosts.list.count, 0);
    run_options_free(&o);
    too_small("run -n 6 p", "", "6 ranks, but the hosts have room for 5");
    setenv("SLURM_TASKS_PER_NODE", "2(x2)", 1);
    bad("run p", "the hosts of Slurm's allocation, as there is no --host or --hostfile: "
                 "SLURM_TASKS_PER_NODE '2(x2)': 2 hosts, but SLURM_JOB_NODELIST has 3");
    setenv("SLURM_JOB_NODELIST", "n1", 1);
    setenv("SLURM_TASKS_PER_NODE", "8", 1);
    good("run --ppn 4 -n 9 p"); /* this machine */
    CU_ASSERT_EQUAL(o.hosts.list.count, 0);
    CU_ASSERT_FALSE(o.hosts.of_slurm);
    run_options_free(&o);
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_TASKS_PER_NODE");
}

/* --- a grid --- */

#define GRID_SITE(name, more)                                                                      \
    "{ name = \"" name "\"; gateway = \"g\"; hosts = ( { name = \"n\"; } ); "                      \
    "relay = { host = \"n\"; port = 7000; }; " more "}"
#define GRID "name = \"g\"; sites = ("
#define GRID_SERVER "ckptsrv = { host = \"n\"; port = 7100; }; "

static const char two_sites[] = GRID GRID_SITE("a", GRID_SERVER) ", " GRID_SITE("host", "") ");";

/* The one relay is of this site: its name is the user's, its address is that of the gateway. */
static void one_relay(const char *rest, bool has_images)
{
    good(with_file("-f", two_sites, rest));
    unlink(hosts_path);
    CU_ASSERT_EQUAL(lay_out(""), CW_OK);
    CU_ASSERT_TRUE(layout.running && !layout.at_hosts);
    CU_ASSERT_EQUAL(layout.relays, 1);
    CU_ASSERT_EQUAL(memcmp(layout.homes, (uint8_t[]){0, 0}, 2), 0);
    CU_ASSERT_EQUAL(layout.servers, has_images);
    CU_ASSERT_EQUAL(layout.images, has_images);
    run_options_free(&o);
}

/* What is lost with a host is where it may be only if no other one could take its ranks. */
static void channel_memory_on_a_grid(const char *rest, bool expected)
{
    static const char grid[] =
        GRID "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"n\"; "
             "slots = 2; }, { name = \"m\"; slots = 2; } ); "
             "relay = { host = \"n\"; port = 7000; }; }, " GRID_SITE("b", "") ");";

    good(with_file("-f", grid, rest));
    unlink(hosts_path);
    CU_ASSERT_EQUAL(lay_out(""), CW_OK);
    CU_ASSERT_EQUAL(layout.channel, expected);
    run_options_free(&o);
}

static void relays_of_a_grid(void)
{
    good(with_file("-f", two_sites, "-n 2 p"));
    unlink(hosts_path);
    CU_ASSERT_EQUAL(lay_out(""), CW_OK);
    CU_ASSERT_EQUAL(layout.relays, 2);
    CU_ASSERT_EQUAL(memcmp(layout.homes, (uint8_t[]){0, 1}, 2), 0);
    run_options_free(&o);
    channel_memory_on_a_grid("-n 4 p", true);
    channel_memory_on_a_grid("-n 2 p", false); /* those of either host go to the other one */
    channel_memory_on_a_grid("--channel on -n 2 p", true);
    one_relay("--relay-at a -n 2 p", true);
    one_relay("--relay-at host -n 2 p", false); /* a site's name */
    bad_file("--relay-at cluster -f", two_sites, "-n 2 p",
             "--relay-at cluster: expected a site of grid g: a, host");
    too_small(with_file("--relay-at host --ckpt-every 1s -f", two_sites, "-n 2 p"), "",
              "--ckpt-every is for images, which -f FILE, without a ckptsrv for them, turns off");
    unlink(hosts_path);
    bad("run --relay-at a -n 2 p", "--relay-at 'a': expected host or cluster, or a site");
}

/* What is kept of the grid is there, in a directory of its own. */
TEST(grids)
{
    const struct grid grid = {.name = "g"};
    uint8_t key[CW_KEY_SIZE];

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    setenv("XDG_STATE_HOME", scratch_dir, 1);
    CU_ASSERT_EQUAL(grid_state_key(&grid, key, &err), CW_OK);
    relays_of_a_grid();
    unsetenv("XDG_STATE_HOME");
    CU_ASSERT_EQUAL(remove(scratch_path("causeway/g/key")), 0);
    CU_ASSERT_EQUAL(remove(scratch_path("causeway/g/ssh_config")), 0);
    CU_ASSERT_EQUAL(remove(scratch_path("causeway/g")), 0);
    CU_ASSERT_EQUAL(remove(scratch_path("causeway")), 0);
    CU_ASSERT_EQUAL(scratch_end(), 0);
}
