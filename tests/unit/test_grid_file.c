/* Grid files: dispatcher/hosts/grid_file.h. */
#include "dispatcher/hosts/grid_file.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SUITE("grid files");

#define HOME "/home/alice"
#define HEAD "name = \"g\";\nsites = (\n" /* two lines */
#define SITE(name, more)                                                                           \
    "{ name = \"" name "\"; hosts = ( { name = \"" name "1\"; } ); relay = { host = \"" name       \
    "1\"; port = 7000; }; " more " }"
#define GATE(name) "gateway = \"" name "-gate\";"
#define PUBLISHED(at, port) "published = { at = \"" at "\"; port = " port "; };"

static struct grid grid;
static struct cw_err err;

static void is_good(const char *text)
{
    err = (struct cw_err){0};
    CU_ASSERT_EQUAL(grid_file_parse(&grid, "g.conf", text, HOME, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
}

/* The whole text of the error. */
static void is_bad(const char *text, const char *expected)
{
    CU_ASSERT_EQUAL(grid_file_parse(&grid, "g.conf", text, HOME, &err), CW_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.text, expected);
    if (strcmp(err.text, expected) != 0)
        printf("# expected: %s\n#      got: %s\n", expected, err.text);
    CU_ASSERT_PTR_NULL(grid.site);
}

static const char whole[] =
    "name = \"demo\";\n"
    "sites = (\n"
    "  { name = \"paris\";\n"
    "    user = \"alice\";\n"
    "    key = \"~/.ssh/id_grid\";\n"
    "    gateway = \"gate.paris.example:2222\";\n"
    "    hosts = ( { name = \"p1\"; slots = 8; },\n"
    "              { name = \"p2\"; slots = 0; } );\n"
    "    relay = { host = \"p1\"; port = 7000; };\n"
    "    ckptsrv = { host = \"P2\"; port = 7100; dir = \"/scratch/images\"; options = \"--max "
    "1G\"; };\n"
    "    causeway = \"/opt/causeway/bin/causeway\";\n"
    "    reaches = [ \"lyon\" ];\n"
    "  },\n"
    "  { name = \"lyon\"; gateway = \"bob@gate.lyon.example\";\n"
    "    user = \"carol\";\n"
    "    hosts = ( { name = \"l1\"; } );\n"
    "    relay = { host = \"l1\"; port = 65503; };\n"
    "  },\n"
    "  { name = \"nice\"; // lets nothing in\n"
    "    published = { at = \"lyon\"; port = 22001; };\n"
    "    hosts = ( { name = \"n1\"; slots = 4; } ); relay = { host = \"n1\"; port = 1; };\n"
    "  }\n"
    ");\n"
    "reaches = ( \"paris\" );\n"
    "connections = 2;\n";

TEST(a_whole_grid)
{
    const struct grid_site *paris, *lyon, *nice;

    is_good(whole);
    CU_ASSERT_EQUAL_FATAL(grid.sites, 3);
    paris = &grid.site[0];
    lyon = &grid.site[1];
    nice = &grid.site[2];
    CU_ASSERT_STRING_EQUAL(grid.name, "demo");
    CU_ASSERT_STRING_EQUAL(paris->name, "paris");
    CU_ASSERT_EQUAL(paris->line, 3);
    CU_ASSERT_STRING_EQUAL(paris->key, HOME "/.ssh/id_grid");
    CU_ASSERT_STRING_EQUAL(paris->gateway.host, "gate.paris.example");
    CU_ASSERT_STRING_EQUAL(paris->gateway.user, "alice");
    CU_ASSERT_EQUAL(paris->gateway.port, 2222);
    CU_ASSERT_EQUAL(paris->published_at, GRID_OUTSIDE);
    CU_ASSERT_EQUAL_FATAL(paris->hosts, 2);
    CU_ASSERT_EQUAL(paris->host[0].slots, 8);
    CU_ASSERT_EQUAL(paris->host[1].slots, 0);
    CU_ASSERT_EQUAL(paris->host[1].line, 8);
    CU_ASSERT_EQUAL(paris->ckptsrv.host, 1);
    CU_ASSERT_EQUAL(paris->ckptsrv.port, 7100);
    CU_ASSERT_STRING_EQUAL(paris->ckptsrv.dir, "/scratch/images");
    CU_ASSERT_STRING_EQUAL(paris->ckptsrv.options, "--max 1G");
    CU_ASSERT_STRING_EQUAL(paris->relay.options, "");
    CU_ASSERT_STRING_EQUAL(paris->causeway, "/opt/causeway/bin/causeway");
    CU_ASSERT_TRUE(!paris->reaches[0] && paris->reaches[1] && !paris->reaches[2]);
    CU_ASSERT_STRING_EQUAL(lyon->gateway.user, "bob");
    CU_ASSERT_STRING_EQUAL(lyon->user, "carol");
    CU_ASSERT_EQUAL(lyon->gateway.port, SSH_PORT);
    CU_ASSERT_EQUAL(lyon->host[0].slots, 1);
    CU_ASSERT_EQUAL(lyon->ckptsrv.host, HOSTS_NONE);
    CU_ASSERT_TRUE(lyon->reaches[0] && lyon->reaches[1] && !lyon->reaches[2]);
    CU_ASSERT_EQUAL(nice->published_at, 1);
    CU_ASSERT_EQUAL(nice->published_port, 22001);
    CU_ASSERT_TRUE(grid.reaches[0] && !grid.reaches[1] && !grid.reaches[2]);
    CU_ASSERT_EQUAL(grid.connections, 2);
    grid_free(&grid);
}

TEST(one_site)
{
    is_good(HEAD SITE("a", GATE("a")) ");");
    CU_ASSERT_EQUAL(grid.sites, 1);
    CU_ASSERT_TRUE(grid.reaches[0]);
    CU_ASSERT_EQUAL(grid.connections, 0);
    grid_free(&grid);
}

TEST(no_settings)
{
    is_bad("", "g.conf: 'name' is missing; expected a text in double quotes");
    is_bad("name = \"g\";", "g.conf: 'sites' is missing; expected a list of groups, ( { ... }, { "
                            "... } )");
    is_bad(HEAD SITE("a", GATE("a")) ");\nconnections = 17;",
           "g.conf, line 4: connections = 17: expected a whole number from 1 to 16");
    is_bad("name = \"g\"; sites = ();", "g.conf, line 1: sites: 0 sites; expected 1 to 16");
    is_bad(HEAD "{ gateway = \"g\"; } );",
           "g.conf, line 3: sites.1: 'name' is missing; expected a text in double quotes");
    is_bad(HEAD "{ name = \"a\";\n gateway = \"g\"; } );",
           "g.conf, line 3: sites.a: 'hosts' is missing; expected a list of groups, ( { ... }, { "
           "... } )");
    is_bad(HEAD "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"h\"; } ); } );",
           "g.conf, line 3: sites.a: 'relay' is missing; expected a group, { name = value; ... }");
    is_bad(HEAD "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"h\"; } );\n"
                "relay = { host = \"h\"; }; } );",
           "g.conf, line 4: sites.a.relay: 'port' is missing; expected a whole number");
    is_bad(HEAD SITE("a", "") ");", "g.conf, line 3: sites.a: 'gateway' is missing, or 'published' "
                                    "of a site that lets nothing in");
}

TEST(no_libconfig)
{
    is_bad("name = \"g\";\n\nsites = oops;",
           "g.conf, line 3: syntax error; expected settings as libconfig has them, like name = "
           "\"demo\";");
    is_bad("name = \"g\";\nname = \"h\";",
           "g.conf, line 2: duplicate setting name; expected settings as libconfig has them, like "
           "name = \"demo\";");
}

/* A file that is there. */
TEST(no_includes)
{
    char file[] = "/tmp/test_grid_file.XXXXXX", text[256];
    int fd = mkstemp(file);

    CU_ASSERT_FATAL(fd >= 0 && write(fd, whole, strlen(whole)) == (ssize_t)strlen(whole));
    snprintf(text, sizeof(text), "# all of it:\n \t@include \"%s\"\n", file);
    is_bad(text, "g.conf, line 2: @include: a grid file is one file; expected settings, like name "
                 "= \"demo\";");
    CU_ASSERT_EQUAL(grid_file_read(&grid, file, &err), CW_OK);
    grid_free(&grid);
    CU_ASSERT_EQUAL(ftruncate(fd, 1000), 0);
    CU_ASSERT_EQUAL(ftruncate(fd, 2000), 0);
    CU_ASSERT_EQUAL(grid_file_read(&grid, file, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has a zero byte at byte"));
    CU_ASSERT_EQUAL(ftruncate(fd, GRID_FILE_MAX + 1), 0);
    CU_ASSERT_EQUAL(grid_file_read(&grid, file, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "more than 1048576 bytes"));
    close(fd);
    unlink(file);
    CU_ASSERT_EQUAL(grid_file_read(&grid, file, &err), CW_ENOTFOUND);
}

TEST(unknown_settings)
{
    is_bad("name = \"g\";\nsits = ();", "g.conf, line 2: sits: there is no such setting; expected "
                                        "name, sites, reaches, connections");
    is_bad(HEAD SITE("a", GATE("a") "\nkeys = \"k\";") ");",
           "g.conf, line 4: sites.a.keys = \"k\": there is no such setting; expected name, user, "
           "key, gateway, published, hosts, relay, ckptsrv, causeway, reaches");
    is_bad(HEAD "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"h\"; slot = 2; } ); } );",
           "g.conf, line 3: sites.a.hosts.h.slot = 2: there is no such setting; expected name, "
           "slots");
}

TEST(other_types)
{
    is_bad("name = 7;", "g.conf, line 1: name = 7: expected a text in double quotes");
    is_bad("name = \"g\";\nsites = { };",
           "g.conf, line 2: sites: expected a list of groups, ( { ... }, { ... } )");
    is_bad("name = \"g\";\nsites = ( 1.5 );",
           "g.conf, line 2: sites: expected a list of groups, ( { ... }, { ... } )");
    is_bad(HEAD SITE("a", GATE("a") "reaches = \"b\";") ");",
           "g.conf, line 3: sites.a.reaches = \"b\": expected a list of names, [ \"a\", \"b\" ]");
    is_bad(HEAD "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"h\"; slots = true; } ); } "
                ");",
           "g.conf, line 3: sites.a.hosts.h.slots = true: expected a whole number");
}

TEST(bad_names)
{
    char text[512], longer[GRID_NAME_MAX + 2] = {0};

    is_bad("name = \"a b\";", "g.conf, line 1: name = \"a b\": expected letters, digits, '-' and "
                              "'_', no '-' first");
    is_bad("name = \"../x\";", "g.conf, line 1: name = \"../x\": expected letters, digits, '-' "
                               "and '_', no '-' first");
    memset(longer, 'x', GRID_NAME_MAX + 1);
    snprintf(text, sizeof(text), "name = \"%s\";", longer);
    is_bad(text, "g.conf, line 1: name = "
                 "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": expected a "
                 "text of 1 to 63 bytes");
    is_bad(HEAD "{ name = \"-a\"; } );",
           "g.conf, line 3: sites.-a.name = \"-a\": expected letters, "
           "digits, '-' and '_', no '-' first");
    is_bad(HEAD "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"u@h\"; } ); } );",
           "g.conf, line 3: sites.a.hosts.u@h.name = \"u@h\": expected a name, like node1; no user "
           "in it: that is the site's 'user'");
    is_bad(
        HEAD "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"gateway\"; } ); } );",
        "g.conf, line 3: sites.a.hosts.gateway.name = \"gateway\": so the gateway of the site is "
        "called; expected another");
    is_bad(HEAD SITE("a", "gateway = \"g:port\";") ");",
           "g.conf, line 3: sites.a.gateway = \"g:port\": expected [USER@]HOST[:PORT]");
    is_bad(HEAD SITE("a", GATE("a") "user = \"-l\";") ");",
           "g.conf, line 3: sites.a.user = \"-l\": expected a user's name: letters, digits, '.', "
           "'_', '-'");
    is_bad(HEAD SITE("a", GATE("a") "key = \"k\\\"\";") ");",
           "g.conf, line 3: sites.a.key = \"k\"\": expected a file's name without control "
           "characters and \"'\\%$");
    is_bad(HEAD SITE("a", GATE("a") "causeway = \"~/causeway\";") ");",
           "g.conf, line 3: sites.a.causeway = \"~/causeway\": expected a name that begins with "
           "'/'");
}

TEST(two_of_one_name)
{
    is_bad(HEAD SITE("a", GATE("a")) ",\n" SITE("A", GATE("b")) ");",
           "g.conf, line 4: sites.A.name = \"A\": that is also the site of line 3; expected "
           "another name");
    is_bad(HEAD "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"h\"; },\n"
                "{ name = \"H\"; } ); } );",
           "g.conf, line 4: sites.a.hosts.H.name = \"H\": that is also the host of line 3; "
           "expected another name");
}

#define HOSTED(slots, relay)                                                                       \
    HEAD "{ name = \"a\"; gateway = \"g\"; hosts = ( { name = \"h\"; slots = " slots               \
         "; } );\n" relay " } );"

TEST(bad_services)
{
    is_bad(HOSTED("4097", ""), "g.conf, line 3: sites.a.hosts.h.slots = 4097: expected a whole "
                               "number from 0 to 4096");
    is_bad(HOSTED("0", "relay = { host = \"h\"; port = 1; };"),
           "g.conf: no host has a slot for a rank: all 'slots' are 0; expected one host with slots "
           "= 1, or more");
    is_bad(HOSTED("1", "relay = { host = \"i\"; port = 1; };"),
           "g.conf, line 4: sites.a.relay.host = \"i\": site a has no such host; expected one of "
           "its 'hosts'");
    is_bad(HOSTED("1", "relay = { host = \"h\"; port = 0; };"),
           "g.conf, line 4: sites.a.relay.port = 0: expected a whole number from 1 to 65503");
    is_bad(HOSTED("1", "relay = { host = \"h\"; port = 65504; };"),
           "g.conf, line 4: sites.a.relay.port = 65504: expected a whole number from 1 to 65503");
    is_bad(HOSTED("1", "relay = { host = \"h\"; port = 1; };\n"
                       "ckptsrv = { host = \"h\"; port = 65536L; };"),
           "g.conf, line 5: sites.a.ckptsrv.port = 65536: expected a whole number from 1 to 65535");
    is_bad(HOSTED("1", "relay = { host = \"h\"; port = 7000; };\n"
                       "ckptsrv = { host = \"h\"; port = 7032; };"),
           "g.conf, line 5: sites.a.ckptsrv.port = 7032: the relay uses the ports 7000 to 7032 of "
           "this host; expected another");
}

TEST(bad_reaches)
{
    is_bad(
        HEAD SITE("a", GATE("a") "\nreaches = [ \"b\",\n\"c\" ];") ",\n" SITE("b", GATE("b")) ");",
        "g.conf, line 5: sites.a.reaches.2 = \"c\": there is no such site; expected the name "
        "of one");
    is_bad(HEAD SITE("a", GATE("a")) ",\n" SITE("b",
                                                PUBLISHED("a", "22001")) ");\nreaches = [ \"b\" ];",
           "g.conf, line 5: reaches.1 = \"b\": site b has no gateway that could be reached; "
           "expected sites with one");
}

TEST(bad_published)
{
    is_bad(HEAD SITE("a", GATE("a") "\n" PUBLISHED("a", "22001")) ");",
           "g.conf, line 4: sites.a.published: the site has a 'gateway', too; expected one of the "
           "two");
    is_bad(HEAD SITE("a", GATE("a")) ",\n" SITE("b", PUBLISHED("c", "22001")) ");",
           "g.conf, line 4: sites.b.published.at = \"c\": there is no such site; expected the name "
           "of one");
    is_bad(HEAD SITE("a", PUBLISHED("a", "1")) ");",
           "g.conf, line 3: sites.a.published.at = \"a\": a site cannot be published at itself: "
           "one of them needs a gateway");
    is_bad(HEAD SITE("a", PUBLISHED("b", "1")) ",\n" SITE("b", PUBLISHED("c", "1")) ",\n" SITE(
               "c", PUBLISHED("a", "1")) ");",
           "g.conf, line 3: sites.a.published.at = \"b\": these sites are published at each other "
           "in a circle: one of them needs a gateway");
    is_bad(HEAD SITE("a", PUBLISHED("b", "1")) ",\n" SITE("b", PUBLISHED("c", "1")) ",\n" SITE(
               "c", GATE("c")) ");",
           "g.conf, line 3: sites.a.published.at = \"b\": that site has no gateway, and is "
           "published itself at c; expected a site with a gateway");
    is_bad(HEAD SITE("a", GATE("a")) ",\n" SITE("b", PUBLISHED("a", "9")) ",\n" SITE(
               "c", PUBLISHED("a", "9")) ");",
           "g.conf, line 5: sites.c.published.port = 9: site b is published at this port of a; "
           "expected another");
    is_bad(HEAD SITE("a", GATE("a")) ",\n" SITE("b", PUBLISHED("a", "70000")) ");",
           "g.conf, line 4: sites.b.published.port = 70000: expected a whole number from 1 to "
           "65535");
}

/* A site to which nothing leads is no error where something leads from it. */
TEST(no_way)
{
    is_bad(
        HEAD SITE("a", GATE("a") "reaches = [];") ",\n" SITE("b", GATE("b") "reaches = [];") ");",
        "g.conf: the sites a (line 3) and b (line 4) cannot reach each other: no way over at "
        "most 4 gateways leads from one to the other, in either direction; let one of them "
        "reach a gateway that leads there ('reaches'), or publish one where the other can log "
        "in ('published')");
    is_good(HEAD SITE("a", GATE("a") "reaches = [];") ",\n" SITE("b", GATE("b")) ");");
    grid_free(&grid);
}

/* The beginning of a list of `count` elements. */
static char *many(const char *head, uint32_t count, const char *each, const char *tail)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    fputs(head, to);
    for (uint32_t i = 0; i < count; i++)
        fprintf(to, each, i ? "," : "", i);
    fputs(tail, to);
    fclose(to);
    return text;
}

TEST(too_many)
{
    char *sites = many(HEAD, GRID_SITES_MAX + 1, "%s { name = \"s%u\"; }", ");");
    char *hosts = many(HEAD "{ name = \"a\"; gateway = \"g\"; hosts = (", HOSTS_MAX + 1,
                       "%s { name = \"h%u\"; }", "); } );");
    char *all =
        many(HEAD "{ name = \"a\"; gateway = \"g\"; hosts = (", HOSTS_MAX, "%s { name = \"h%u\"; }",
             "); relay = { host = \"h0\"; port = 1; }; }," SITE("b", GATE("b")) ");");

    is_bad(sites, "g.conf, line 2: sites: 17 sites; expected 1 to 16");
    is_bad(hosts, "g.conf, line 3: sites.a.hosts: 1025 hosts; expected 1 to 1024");
    is_bad(all, "g.conf: 1025 hosts at all sites; expected at most 1024");
    free(sites);
    free(hosts);
    free(all);
}
