/* The command that starts causeway on a host, by launcher. */
#include "dispatcher/wire/launch_command.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

SUITE("launch command");

static struct launch_command command;
static struct cw_err err;
static const char *const words[] = {"doctor", "--report", "/a b/it's", NULL};

static void expect(const char *launcher, const char *host, const char *expected)
{
    struct launch_command_config config = {.launcher = launcher,
                                           .args = " -F  x ",
                                           .host = host,
                                           .own_host = "own",
                                           .causeway = "/opt/c d/causeway",
                                           .words = words,
                                           .connect_s = 20};
    char line[1024] = "";
    size_t used = 0;

    CU_ASSERT_EQUAL_FATAL(launch_command_make(&command, &config, &err), CW_OK);
    for (int i = 0; i < command.argc; i++)
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s[%s]", i ? " " : "",
                                 command.argv[i]);
    CU_ASSERT_STRING_EQUAL(line, expected);
    CU_ASSERT_PTR_NULL(command.argv[command.argc]);
}

#define SSH_OPTIONS                                                                                \
    "[-T] [-oBatchMode=yes] [-oConnectTimeout=20] [-oClearAllForwardings=yes] "                    \
    "[-oRemoteCommand=none] [-oStdinNull=no] [-oForkAfterAuthentication=no]"
#define WORDS "[/opt/c d/causeway] [doctor] [--report] [/a b/it's]"

TEST(words_of_a_shell_are_quoted)
{
    expect("/usr/bin/ssh", "node1",
           "[/usr/bin/ssh] " SSH_OPTIONS " [-F] [x] [--] [node1] "
           "[exec '/opt/c d/causeway' 'doctor' '--report' '/a b/it'\\''s']");
}

TEST(this_machine_needs_no_ssh)
{
    expect("ssh", "localhost", WORDS);
    expect("ssh", "own", WORDS);
}

TEST(other_launchers)
{
    expect("srun", "own",
           "[srun] [--nodelist=own] [--nodes=1] [--ntasks=1] [--overlap] [--unbuffered] [-F] "
           "[x] " WORDS);
    expect("/bin/there", "own", "[/bin/there] [-F] [x] [own] " WORDS);
}

TEST(bounds_of_a_command)
{
    static char much[LAUNCH_COMMAND_TEXT_MAX + 1];
    const char *const one[] = {much, NULL};
    struct launch_command_config config = {
        .launcher = "ssh", .host = "node1", .causeway = "causeway", .words = one};

    memset(much, '\'', sizeof(much) - 1);
    CU_ASSERT_EQUAL(launch_command_make(&command, &config, &err), CW_EINVAL);
    much[LAUNCH_COMMAND_TEXT_MAX / 5] = '\0';
    CU_ASSERT_EQUAL(launch_command_make(&command, &config, &err), CW_OK);
    much[LAUNCH_COMMAND_TEXT_MAX / 5] = '\'';
    config.launcher = "other";
    CU_ASSERT_EQUAL(launch_command_make(&command, &config, &err), CW_EINVAL);
    for (int i = 0; i <= LAUNCH_COMMAND_ARGS_MAX; i++)
        memcpy(much + 2 * i, "a ", 2);
    much[2 * LAUNCH_COMMAND_ARGS_MAX] = '\0';
    config.words = words;
    config.args = much;
    CU_ASSERT_EQUAL(launch_command_make(&command, &config, &err), CW_EINVAL);
    config.launcher = "ssh";
    CU_ASSERT_EQUAL(launch_command_make(&command, &config, &err), CW_EINVAL);
}
