/* The command that starts causeway on a host, by launcher. */
#include "dispatcher/remote/launch_command.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

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

static void words_of_a_shell_are_quoted(void)
{
    expect("/usr/bin/ssh", "node1",
           "[/usr/bin/ssh] " SSH_OPTIONS " [-F] [x] [--] [node1] "
           "[exec '/opt/c d/causeway' 'doctor' '--report' '/a b/it'\\''s']");
}

static void this_machine_needs_no_ssh(void)
{
    expect("ssh", "localhost", WORDS);
    expect("ssh", "own", WORDS);
}

static void other_launchers(void)
{
    expect("srun", "own",
           "[srun] [--nodelist=own] [--nodes=1] [--ntasks=1] [--overlap] [--unbuffered] [-F] "
           "[x] " WORDS);
    expect("/bin/there", "own", "[/bin/there] [-F] [x] [own] " WORDS);
}

static void bounds_of_a_command(void)
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

void add_launch_command_tests(void)
{
    CU_pSuite suite = CU_add_suite("launch command", NULL, NULL);

    CU_ADD_TEST(suite, words_of_a_shell_are_quoted);
    CU_ADD_TEST(suite, this_machine_needs_no_ssh);
    CU_ADD_TEST(suite, other_launchers);
    CU_ADD_TEST(suite, bounds_of_a_command);
}
