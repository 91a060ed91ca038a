/* Hosts of a job: lists of them, hostfiles, rankfiles, Slurm's variables; which rank is where. */
#include "dispatcher/hosts/host_files.h"
#include "dispatcher/hosts/placement.h"
#include "dispatcher/hosts/slurm.h"
#include "tests/lib/codec.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct host_list list;
static struct rankfile rankfile;
static struct placement placement;
static struct cw_err err;

static void begin(void)
{
    host_list_free(&list);
    rankfile_free(&rankfile);
    placement_free(&placement);
    err = (struct cw_err){0};
}

static int end(void)
{
    begin();
    return 0;
}

SUITE("hosts", NULL, end);

/* The list reads "NAME:SLOTS[/SLOTS_MAX] ...". */
static void is(const char *text)
{
    char all[8192] = "";
    size_t used = 0;

    CU_ASSERT_STRING_EQUAL(err.text, "");
    for (uint32_t i = 0; i < list.count && used < sizeof(all) - 300; i++) {
        const struct host *h = &list.host[i];

        used += (size_t)sprintf(all + used, "%s%s:%u", i ? " " : "", h->name, h->slots);
        if (h->slots_max)
            used += (size_t)sprintf(all + used, "/%u", h->slots_max);
    }
    CU_ASSERT_STRING_EQUAL(all, text);
}

static void refused(int code, const char *says)
{
    CU_ASSERT_EQUAL(code, CW_EINVAL);
    CU_ASSERT_EQUAL(err.code, CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
    if (!strstr(err.text, says))
        printf("# '%s' does not say '%s'\n", err.text, says);
}

/* --- --host --- */

static void option(const char *text, const char *expected)
{
    begin();
    CU_ASSERT_EQUAL(host_list_add_option(&list, text, &err), CW_OK);
    is(expected);
}

static void bad_option(const char *text, const char *says)
{
    begin();
    refused(host_list_add_option(&list, text, &err), says);
    CU_ASSERT_PTR_EQUAL(strstr(err.text, "--host"), err.text);
}

TEST(hosts_of_the_option)
{
    option("a", "a:0");
    option("a:4,b:4", "a:4 b:4");
    option("node-1.site:2,alice@10.0.0.1:3,[fe80::1]:5,[::1]",
           "node-1.site:2 alice@10.0.0.1:3 fe80::1:5 ::1:0");
    option("b:4096", "b:4096");
    CU_ASSERT_EQUAL(host_list_add_option(&list, "c:1", &err), CW_OK);
    is("b:4096 c:1");
    CU_ASSERT_EQUAL(host_list_find(&list, "C"), 1);
    CU_ASSERT_EQUAL(host_list_find(&list, "d"), HOSTS_NONE);
}

TEST(repeated_hosts_add_up)
{
    option("a:2,b,a:3", "a:5 b:0");
    option("a,a", "a:2");
    option("a,a,A", "a:3");
    option("a:2,a", "a:3");
    bad_option("a:4000,a:97", "host a: more than 4096 slots");
}

TEST(bad_options)
{
    bad_option("", "host ''");
    bad_option("a,", "host ''");
    bad_option(",a", "host ''");
    bad_option("a:0", "slots of a '0': expected a whole number from 1 to 4096");
    bad_option("a:-1", "slots of a '-1'");
    bad_option("a:", "slots of a ''");
    bad_option("a:4x", "slots of a '4x'");
    bad_option("a:4097", "slots of a '4097'");
    bad_option("a:99999999999999999999", "slots of a");
    bad_option("a:4:5", "slots of a '4:5'");
    bad_option("fe80::1", "slots of fe80 ':1'");
    bad_option("[fe80::1", "expected a ']'");
    bad_option("[fe80::1]4", "expected ':' and a number after ']'");
    bad_option("-oProxyCommand=x", "host '-oProxyCommand=x': expected a name");
    bad_option("alice@-x", "host 'alice@-x'");
    bad_option("@a", "host '@a'");
    bad_option("alice@", "host 'alice@'");
    bad_option("a b", "host 'a b'");
    bad_option("a;b", "host 'a;b'");
    bad_option("a@b@c", "host 'a@b@c'");
}

TEST(bounds_of_hosts)
{
    char text[2048];
    char name[32];

    memset(text, 'a', sizeof(text));
    text[255] = '\0';
    begin();
    CU_ASSERT_EQUAL(host_list_add_option(&list, text, &err), CW_OK);
    text[255] = 'a';
    text[256] = '\0';
    bad_option(text, "of at most 255 bytes");
    text[256] = 'a';
    text[2000] = '\0';
    bad_option(text, "is too long");
    begin();
    for (int i = 0; i < HOSTS_MAX; i++) {
        sprintf(name, "n%d", i);
        CU_ASSERT_EQUAL(host_list_add_option(&list, name, &err), CW_OK);
    }
    CU_ASSERT_EQUAL(host_list_add_option(&list, "n7:2", &err), CW_OK);
    refused(host_list_add_option(&list, "more", &err), "host more: a job has at most 1024 hosts");
}

/* --- hostfiles --- */

static void hostfile(const char *text, const char *expected)
{
    begin();
    CU_ASSERT_EQUAL(host_list_parse(&list, "hosts", text, strlen(text), &err), CW_OK);
    is(expected);
}

static void bad_hostfile(const char *text, const char *says)
{
    begin();
    refused(host_list_parse(&list, "hosts", text, strlen(text), &err), says);
}

TEST(both_forms)
{
    hostfile("a:4\nb:2\n", "a:4 b:2");
    hostfile("a slots=4 max_slots=8\nb slots=2 max-slots=2\n", "a:4/8 b:2/2");
    hostfile("  a \t slots = 4   max_slots= 8 # the first\r\n\n# none\n\t\nb", "a:4/8 b:0");
    hostfile("a max_slots=3", "a:0/3");
    hostfile("a slots=2\nb\na slots=3\nb", "a:5 b:2");
    hostfile("a slots=2 max_slots=4\na slots=2 max_slots=4", "a:4/8");
    hostfile("# nothing\n", "");
    hostfile("", "");
}

TEST(bad_hostfiles)
{
    bad_hostfile("a:4\nb slots=x\n",
                 "hosts, line 2: slots 'x': expected a whole number from 1 to 4096");
    bad_hostfile("a slots=0", "hosts, line 1: slots '0'");
    bad_hostfile("a slots=", "slots ''");
    bad_hostfile("a slots", "'slots': expected slots=N or max_slots=N");
    bad_hostfile("\n\na binding=user:0", "hosts, line 3: 'binding=user:0': expected slots=N");
    bad_hostfile("a:4 slots=4", "slots '4': said twice");
    bad_hostfile("a slots=4 slots=4", "slots '4': said twice");
    bad_hostfile("a slots=4 max_slots=3", "max_slots=3 is less than its 4 slots");
    bad_hostfile("a slots=2 max_slots=3\na slots=2",
                 "line 2: host a: max_slots=3 is less than its 4");
    bad_hostfile("=4", "host '=4'");
    bad_hostfile("^a", "host '^a'");
    bad_hostfile("a\x01", "expected a name");
}

TEST(lines_are_bounded)
{
    char text[3000];

    memset(text, ' ', sizeof(text));
    memcpy(text, "a:4", 3);
    text[1023] = '\n';
    begin();
    CU_ASSERT_EQUAL(host_list_parse(&list, "hosts", text, 1024, &err), CW_OK);
    is("a:4");
    begin();
    text[1023] = ' ';
    refused(host_list_parse(&list, "hosts", text, 1025, &err),
            "hosts, line 1: expected a line of text");
    begin();
    refused(host_list_parse(&list, "hosts", "a\nb\0c\n", 6, &err),
            "hosts, line 2: expected a line of text");
}

TEST(files_are_read)
{
    char path[] = "/tmp/causeway-hosts-XXXXXX";
    int fd = mkstemp(path);

    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, "a:2\nb:x\n", 8), 8);
    begin();
    refused(host_list_read(&list, path, &err), ", line 2: slots of b 'x'");
    CU_ASSERT_EQUAL(ftruncate(fd, 4), 0);
    begin();
    CU_ASSERT_EQUAL(host_list_read(&list, path, &err), CW_OK);
    is("a:2");
    refused(rankfile_read(&rankfile, path, 1, &list, &err),
            ", line 1: expected rank R=HOST slot=S");
    CU_ASSERT_EQUAL(ftruncate(fd, HOST_FILE_BYTES_MAX + 1), 0);
    begin();
    refused(host_list_read(&list, path, &err), "more than 4194304 bytes");
    close(fd);
    unlink(path);
    begin();
    CU_ASSERT_EQUAL(host_list_read(&list, path, &err), CW_ENOTFOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "No such file"));
    CU_ASSERT_EQUAL(host_list_read(&list, "/", &err), CW_ESYS);
}

/* --- Slurm --- */

static const char *nodes;
static const char *tasks;
static const char *number;

static char *variable(const char *name)
{
    if (strcmp(name, "SLURM_JOB_NODELIST") == 0)
        return (char *)nodes;
    if (strcmp(name, "SLURM_TASKS_PER_NODE") == 0)
        return (char *)tasks;
    return strcmp(name, "SLURM_NNODES") == 0 ? (char *)number : NULL;
}

static int slurm(const char *said_nodes, const char *said_tasks, const char *said_number)
{
    begin();
    nodes = said_nodes;
    tasks = said_tasks;
    number = said_number;
    return host_list_slurm(&list, variable, &err);
}

TEST(allocations)
{
    CU_ASSERT_EQUAL(slurm("node[01-03,07],x", "2(x3),1,4", "5"), CW_OK);
    is("node01:2 node02:2 node03:2 node07:1 x:4");
    CU_ASSERT_EQUAL(slurm("a", NULL, NULL), CW_OK);
    is("a:0");
    CU_ASSERT_EQUAL(slurm("a,b-[8-11].site", "16(x5)", NULL), CW_OK);
    is("a:16 b-8.site:16 b-9.site:16 b-10.site:16 b-11.site:16");
    CU_ASSERT_EQUAL(slurm("r[1-2]n[08-09,1]", NULL, "6"), CW_OK);
    is("r1n08:0 r1n09:0 r1n1:0 r2n08:0 r2n09:0 r2n1:0");
    CU_ASSERT_EQUAL(slurm("n[098-101]", NULL, NULL), CW_OK);
    is("n098:0 n099:0 n100:0 n101:0");
    CU_ASSERT_EQUAL(slurm(NULL, "nonsense", "nonsense"), CW_OK);
    is("");
}

static void bad_nodes(const char *text, const char *says)
{
    refused(slurm(text, NULL, NULL), says);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "SLURM_JOB_NODELIST"));
}

static void bad_tasks(const char *text, const char *says)
{
    refused(slurm("a,b,c", text, "3"), says);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "SLURM_TASKS_PER_NODE"));
}

TEST(bad_allocations)
{
    bad_nodes("", "host ''");
    bad_nodes("a,", "host ''");
    bad_nodes("a[1", "'[1': expected a ']'");
    bad_nodes("a]", "host 'a]'");
    bad_nodes("a[]", "']': expected a number");
    bad_nodes("a[1,]", "expected a number");
    bad_nodes("a[x]", "'x]': expected a number");
    bad_nodes("a[1-]", "expected a number");
    bad_nodes("a[3-1]", "'3-1': expected LOW-HIGH");
    bad_nodes("a[0-1024]", "'0-1024': expected LOW-HIGH");
    bad_nodes("a[0-999999999]", "expected LOW-HIGH");
    bad_nodes("a[1234567890]", "expected a number of 1 to 9 digits");
    bad_nodes("a[1;2]", "';2]': expected ',' or ']'");
    bad_nodes("a[1[2]", "expected ',' or ']'");
    bad_nodes("a[1]b[2]c[3]d[4]e[5]", "more than 4 brackets");
    bad_nodes("a[0-1023],b", "at most 1024 hosts");
    bad_nodes("a[0-99]b[0-99]c[0-99]d[0-99]", "at most 1024 hosts");
    bad_nodes("a[1-2],a2", "host a2 is there twice");
    bad_nodes("-x[1-2]", "host '-x1'");
    refused(slurm("a,b", NULL, "3"), "SLURM_NNODES is 3, but SLURM_JOB_NODELIST 'a,b' has 2 hosts");
    refused(slurm("a,b", NULL, "x"), "SLURM_NNODES 'x'");
    bad_tasks("", "expected a number");
    bad_tasks("2", "1 hosts, but SLURM_JOB_NODELIST has 3");
    bad_tasks("2(x4)", "more than the 3 hosts");
    bad_tasks("2(x3),1", "more than the 3 hosts");
    bad_tasks("2(x2", "expected N or N(xCOUNT)");
    bad_tasks("2(3)", "expected N or N(xCOUNT)");
    bad_tasks("2(x)", "expected a number");
    bad_tasks("0(x3)", "expected 1 to 4096 tasks");
    bad_tasks("4097(x3)", "expected 1 to 4096 tasks");
    bad_tasks("2;1", "expected N or N(xCOUNT)");
}

TEST(names_of_slurm_are_bounded)
{
    char text[400];

    memset(text, 'n', 252);
    strcpy(text + 252, "[100-101]");
    CU_ASSERT_EQUAL(slurm(text, NULL, "2"), CW_OK);
    memset(text, 'n', 253);
    strcpy(text + 253, "[100-101]");
    bad_nodes(text, "a name of more than 255 bytes");
}

/* --- placement --- */

/* The hosts of the ranks, as one letter each. */
static void hosts_of_ranks(const char *expected)
{
    char letters[64] = "";

    CU_ASSERT_STRING_EQUAL(err.text, "");
    CU_ASSERT_TRUE_FATAL(placement.ranks < sizeof(letters));
    for (uint32_t i = 0; i < placement.ranks; i++)
        letters[i] = list.host[placement.slot_host[placement.rank_slot[i]]].name[0];
    CU_ASSERT_STRING_EQUAL(letters, expected);
}

static int place(const char *hosts, uint32_t ranks, uint32_t spares,
                 const struct placement_options *options)
{
    begin();
    CU_ASSERT_EQUAL(host_list_parse(&list, "hosts", hosts, strlen(hosts), &err), CW_OK);
    CU_ASSERT_EQUAL(host_list_set_spares(&list, spares, &err), CW_OK);
    return placement_make(&placement, &list, ranks, options, &err);
}

static const struct placement_options by_slot = {0};
static const struct placement_options by_node = {.map = PLACEMENT_BY_NODE};

TEST(by_slots_and_nodes)
{
    CU_ASSERT_EQUAL(place("a:2\nb:3\nc:1", 5, 0, &by_slot), CW_OK);
    hosts_of_ranks("aabbb");
    CU_ASSERT_EQUAL(placement.slots, 6);
    CU_ASSERT_EQUAL(place("a:2\nb:3\nc:1", 6, 0, &by_node), CW_OK);
    hosts_of_ranks("abcabb");
    CU_ASSERT_EQUAL(placement.rank_slot[5], 4);
    for (uint32_t i = 0; i < placement.slots; i++)
        CU_ASSERT_EQUAL(placement.slot_ranks_max[i], 1);
    CU_ASSERT_EQUAL(place("a\nb\nc", 3, 0, &by_slot), CW_OK);
    hosts_of_ranks("abc");
    refused(place("a:2\nb:3", 6, 0, &by_slot),
            "6 ranks, but the hosts have room for 5: give more hosts or slots, as in --host "
            "a:4,b:4, or --oversubscribe");
}

/* By which programs choose a GPU. */
TEST(local_ranks)
{
    static const uint32_t expected[][2] = {{0, 2}, {0, 3}, {0, 1}, {1, 2}, {1, 3}, {2, 3}};
    static const struct placement none = {0};
    uint32_t rank, ranks;

    CU_ASSERT_EQUAL(place("a:2\nb:3\nc:1", 6, 0, &by_node), CW_OK);
    for (uint32_t i = 0; i < 6; i++) {
        placement_local(&placement, i, 6, &rank, &ranks);
        CU_ASSERT_TRUE(rank == expected[i][0] && ranks == expected[i][1]);
    }
    placement_local(&none, 3, 5, &rank, &ranks);
    CU_ASSERT_TRUE(rank == 3 && ranks == 5);
}

/* Who share channel memory. */
TEST(ranks_together)
{
    static const struct placement none = {0};
    uint16_t ranks[4] = {0};

    CU_ASSERT_EQUAL(place("a:2\nb:3\nc:1", 6, 0, &by_node), CW_OK);
    CU_ASSERT_EQUAL(placement_together(&placement, 4, 6, ranks, 4), 3);
    CU_ASSERT_TRUE(ranks[0] == 1 && ranks[1] == 4 && ranks[2] == 5);
    CU_ASSERT_EQUAL(placement_together(&placement, 5, 6, ranks, 1), 3);
    CU_ASSERT_EQUAL(placement_host(&placement, 2), 2);
    CU_ASSERT_EQUAL(placement_together(&none, 3, 4, ranks, 4), 4);
    CU_ASSERT_TRUE(ranks[0] == 0 && ranks[3] == 3);
}

/* Two sites: a and b, and c and d. */
static int place_by_site(const char *hosts, uint32_t ranks, struct placement_options options)
{
    options.map = PLACEMENT_BY_SITE;
    begin();
    CU_ASSERT_EQUAL(host_list_parse(&list, "hosts", hosts, strlen(hosts), &err), CW_OK);
    list.host[2].site = list.host[3].site = 1;
    return placement_make(&placement, &list, ranks, &options, &err);
}

TEST(by_site)
{
    struct placement_options plain = {0}, shared = {.oversubscribe = true};

    CU_ASSERT_EQUAL(place_by_site("a:2\nb:3\nc:1\nd:4", 8, plain), CW_OK);
    hosts_of_ranks("aabbcddd");
    CU_ASSERT_EQUAL(place_by_site("a:2\nb:3\nc:1\nd:1", 7, plain), CW_OK);
    hosts_of_ranks("aabbbcd");
    CU_ASSERT_EQUAL(place_by_site("a:2\nb:3\nc:1\nd:4", 3, plain), CW_OK);
    hosts_of_ranks("aac");
    CU_ASSERT_EQUAL(place_by_site("a\nb\nc\nd", 6, shared), CW_OK);
    hosts_of_ranks("abcdab");
    refused(place_by_site("a\nb\nc\nd", 5, plain), "5 ranks, but the hosts have room for 4");
}

TEST(by_ppn)
{
    struct placement_options options = {.ppn = 2};

    CU_ASSERT_EQUAL(place("a\nb:4\nc", 5, 0, &options), CW_OK);
    hosts_of_ranks("aabbc");
    CU_ASSERT_EQUAL(placement.slots, 8);
    refused(place("a\nb:4\nc", 7, 0, &options), "room for 6 with --ppn");
    refused(place("a:1\nb:4", 3, 0, &options),
            "--ppn 2: host a has 1 slots, and may have 1 ranks; --oversubscribe");
    CU_ASSERT_EQUAL(place("b:4\na:1", 2, 1, &options), CW_OK);
    options.oversubscribe = true;
    CU_ASSERT_EQUAL(place("a:1\nb:4", 5, 0, &options), CW_OK);
    hosts_of_ranks("aabba");
    refused(place("a slots=1 max_slots=1\nb:4", 3, 0, &options), "may have 1 ranks (max_slots)");
}

TEST(spares_get_no_ranks)
{
    CU_ASSERT_EQUAL(place("a:2\nb:2\nc:2", 4, 1, &by_node), CW_OK);
    hosts_of_ranks("abab");
    CU_ASSERT_EQUAL(placement.slots, 6);
    CU_ASSERT_EQUAL(placement.slot_host[5], 2);
    refused(place("a:2\nb:2\nc:2", 5, 1, &by_slot), "room for 4 (and 2 on spare hosts)");
    refused(host_list_set_spares(&list, 3, &err), "--spares 3: the job has 3 hosts");
}

/* A host that serves the job has no slots, unless it has ranks anyway. */
TEST(host_without_ranks)
{
    struct placement_options options = {.oversubscribe = true, .ppn = 2};
    uint32_t at;

    begin();
    CU_ASSERT_EQUAL(host_list_parse(&list, "hosts", "a:2\nb:2", 7, &err), CW_OK);
    CU_ASSERT_EQUAL(host_list_add_service(&list, "B", &at, &err), CW_OK);
    CU_ASSERT_EQUAL(at, 1);
    CU_ASSERT_EQUAL(host_list_add_service(&list, "c", &at, &err), CW_OK);
    CU_ASSERT_EQUAL(at, 2);
    CU_ASSERT_EQUAL(placement_make(&placement, &list, 9, &options, &err), CW_OK);
    hosts_of_ranks("aabbaabba");
    CU_ASSERT_EQUAL(placement.slots, 4);
    placement_free(&placement);
    options.oversubscribe = false;
    refused(placement_make(&placement, &list, 5, &options, &err), "room for 4");
    refused(host_list_add_service(&list, "-x", &at, &err), "host '-x': expected a name");
}

TEST(oversubscribed)
{
    struct placement_options options = {.oversubscribe = true};

    CU_ASSERT_EQUAL(place("a:2\nb", 7, 0, &options), CW_OK);
    hosts_of_ranks("aabaaba");
    CU_ASSERT_EQUAL(placement.rank_slot[4], 1);
    CU_ASSERT_TRUE(placement.slot_ranks_max[0] > 1000000);
    CU_ASSERT_EQUAL(place("a slots=2 max_slots=3\nb max_slots=1", 4, 0, &options), CW_OK);
    hosts_of_ranks("aaba");
    CU_ASSERT_EQUAL(placement.slot_ranks_max[0], 2);
    CU_ASSERT_EQUAL(placement.slot_ranks_max[1], 1);
    CU_ASSERT_EQUAL(placement.slot_ranks_max[2], 1);
    refused(place("a slots=2 max_slots=3\nb max_slots=1", 5, 0, &options),
            "5 ranks, but by max_slots there is room for 4: give more hosts");
    options.map = PLACEMENT_BY_NODE;
    CU_ASSERT_EQUAL(place("a:2\nb", 7, 0, &options), CW_OK);
    hosts_of_ranks("abaabaa");
}

/* No slot gets more than it may have, and each rank has one. */
/* Placed on slots of their own, ranks may share these when they are started again. */
TEST(shared_later)
{
    static struct host hosts[3] = {{.name = "a", .slots = 2, .slots_max = 5},
                                   {.name = "b", .slots = 1},
                                   {.name = "c", .slots = 2, .slots_max = 2}};
    static const struct host_list list = {hosts, 3};
    static const struct placement_options options = {.map = PLACEMENT_BY_SLOT};
    static const uint32_t most[5] = {3, 2, UINT32_MAX, 1, 1};

    CU_ASSERT_EQUAL_FATAL(placement_make(&placement, &list, 5, &options, &err), CW_OK);
    for (uint32_t i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(placement.slot_ranks_max[i], 1);
    placement_let_share(&placement, &list);
    for (uint32_t i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(placement.slot_ranks_max[i], most[i]);
    CU_ASSERT_EQUAL(placement_room(&hosts[0]), 5);
    placement_free(&placement);
}

TEST(placements_keep_the_bounds)
{
    uint64_t seed = 18;

    for (int round = 0; round < 500; round++) {
        struct placement_options options = {.map = (enum placement_map)codec_random_below(&seed, 2),
                                            .ppn = (uint32_t)codec_random_below(&seed, 4),
                                            .oversubscribe = codec_random_below(&seed, 2)};
        uint32_t count[1024] = {0};
        bool holds = true;

        begin();
        for (char name[2] = "a"; *name <= (char)('a' + round % 7); name[0]++) {
            struct host host = {.slots = (uint32_t)codec_random_below(&seed, 5)};

            memcpy(host.name, name, 2);
            if (codec_random_below(&seed, 3) == 0)
                host.slots_max = host.slots + (uint32_t)codec_random_below(&seed, 4);
            host_list_add(&list, &host, &err);
        }
        if (placement_make(&placement, &list, 1 + (uint32_t)codec_random_below(&seed, 40), &options,
                           &err) < 0)
            continue;
        for (uint32_t i = 0; i < placement.ranks && holds; i++)
            holds =
                placement.rank_slot[i] < placement.slots &&
                ++count[placement.rank_slot[i]] <= placement.slot_ranks_max[placement.rank_slot[i]];
        CU_ASSERT_TRUE(holds);
    }
}

/* --- rankfiles --- */

static int by_rankfile(const char *hosts, const char *text, uint32_t ranks, bool oversubscribe)
{
    struct placement_options options = {.oversubscribe = oversubscribe, .rankfile = &rankfile};
    int result;

    begin();
    CU_ASSERT_EQUAL(host_list_parse(&list, "hosts", hosts, strlen(hosts), &err), CW_OK);
    result = rankfile_parse(&rankfile, "places", text, strlen(text), ranks, &list, &err);
    return result < 0 ? result : placement_make(&placement, &list, ranks, &options, &err);
}

TEST(rankfiles)
{
    CU_ASSERT_EQUAL(
        by_rankfile("a:2\nb:2", "rank 0=b slot=1\nrank 2=a slot=0\nrank 1=B slot=0\n", 3, false),
        CW_OK);
    hosts_of_ranks("bba");
    CU_ASSERT_EQUAL(placement.rank_slot[0], 3);
    CU_ASSERT_EQUAL(placement.rank_slot[1], 2);
    CU_ASSERT_EQUAL(by_rankfile("", "rank 0-2 = c slot = 1-3 # some\nrank 3=d slot=0", 4, false),
                    CW_OK);
    hosts_of_ranks("cccd");
    is("c:4 d:1");
    CU_ASSERT_EQUAL(by_rankfile("a", "rank 0=a slot=0\nrank 1=a slot=0", 2, true), CW_OK);
    hosts_of_ranks("aa");
}

static void bad_rankfile(const char *text, const char *says)
{
    refused(by_rankfile("a:2\nb max_slots=1", text, 2, false), says);
    CU_ASSERT_PTR_EQUAL(strstr(err.text, "places"), err.text);
}

TEST(bad_rankfiles)
{
    bad_rankfile("", "places: no line for rank 0 of 2");
    bad_rankfile("rank 0=a slot=0", "places: no line for rank 1 of 2");
    bad_rankfile("rank 0=a slot=0\nrank 0=a slot=1", "line 2: rank 0 is in line 1 already");
    bad_rankfile("rank 0=a slot=0\nrank 2=a slot=1",
                 "line 2: rank '2': expected a whole number from 0 to 1");
    bad_rankfile("rank x=a slot=0", "rank 'x'");
    bad_rankfile("rank =a slot=0", "expected rank R=HOST slot=S");
    bad_rankfile("rank 0 slot=0", "expected rank R=HOST slot=S");
    bad_rankfile("rank 0=a", "expected rank R=HOST slot=S");
    bad_rankfile("rank", "expected rank R=HOST slot=S");
    bad_rankfile("0=a slot=0", "expected rank R=HOST slot=S");
    bad_rankfile("rank 0=a slot=0 more", "expected rank R=HOST slot=S");
    bad_rankfile("rank 0=a slots=0", "expected rank R=HOST slot=S");
    bad_rankfile("rank 0=a slot=1:0", "slot '1:0': expected S or S-S, as ranks are not bound");
    bad_rankfile("rank 0=a slot=0,1", "slot '0,1': expected S or S-S");
    bad_rankfile("rank 0=a slot=-1", "slot ''");
    bad_rankfile("rank 0=a slot=4096", "slot '4096'");
    bad_rankfile("rank 0-1=a slot=0-2", "as many slots as ranks");
    bad_rankfile("rank 1-0=a slot=0-1", "rank '0'");
    bad_rankfile("rank 0=c slot=0", "host c is none of the job's hosts");
    bad_rankfile("rank 0=-x slot=0", "host '-x'");
    bad_rankfile("rank 0=a slot=0\nrank 1=a slot=2",
                 "places, line 2: slot 2: host a has 2, counted from 0");
    bad_rankfile("rank 0=a slot=0\nrank 1=a slot=0",
                 "line 2: slot 0 of host a is full; --oversubscribe");
    refused(by_rankfile("a\nb max_slots=1", "rank 0-1=b slot=0-1", 2, true), "host b has 1");
    refused(by_rankfile("b max_slots=1", "rank 0=b slot=0\nrank 1=b slot=0", 2, true),
            "slot 0 of host b is full (max_slots)");
}

TEST(rankfile_on_a_spare_host)
{
    struct placement_options options = {.rankfile = &rankfile};
    const char *text = "rank 0=b slot=0";

    begin();
    host_list_add_option(&list, "a,b", &err);
    host_list_set_spares(&list, 1, &err);
    CU_ASSERT_EQUAL(rankfile_parse(&rankfile, "places", text, strlen(text), 1, &list, &err), CW_OK);
    refused(placement_make(&placement, &list, 1, &options, &err),
            "places, line 1: host b is spare (--spares)");
}
