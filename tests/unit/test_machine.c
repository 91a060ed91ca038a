/* Which machine this is. */
#include "common/machine.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SUITE("machines");

static char own[CW_MACHINE_MAX];

/* In a process of its own: what it is told to leave, if it may. 0: the same, 1: another on this
 * kernel, 2: another, 3: it may not. */
static int in_namespaces(int flags)
{
    char there[CW_MACHINE_MAX];
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (unshare(flags) < 0 ||
            (flags & CLONE_NEWUTS && sethostname("elsewhere", strlen("elsewhere")) < 0))
            _exit(3);
        cw_machine_read(there);
        _exit(cw_machine_is_same(own, there) ? 0 : cw_machine_is_one_kernel(own, there) ? 1 : 2);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
}

TEST(this_machine)
{
    cw_machine_read(own);
    CU_ASSERT_TRUE(own[0] != '\0' && strlen(own) < CW_MACHINE_MAX - 1);
    CU_ASSERT_EQUAL(in_namespaces(0), 0);
}

/* A name says nothing; sockets are reached, or are not. */
TEST(namespaces)
{
    static const struct {
        int flags, expected;
    } of[] = {{CLONE_NEWUTS, 0}, {CLONE_NEWNET, 1}, {CLONE_NEWNS, 1}};

    cw_machine_read(own);
    for (int i = 0; i < 3; i++) {
        int saw = in_namespaces(of[i].flags);

        CU_ASSERT_TRUE(saw == of[i].expected || saw == 3);
    }
}

TEST(other_machines)
{
    CU_ASSERT_FALSE(cw_machine_is_same("", ""));
    CU_ASSERT_FALSE(cw_machine_is_one_kernel("", " x"));
    CU_ASSERT_FALSE(cw_machine_is_same("a m n", "b m n"));
    CU_ASSERT_FALSE(cw_machine_is_one_kernel("a m n", "ab m n"));
    CU_ASSERT_TRUE(cw_machine_is_one_kernel("a m n", "a m o"));
}
