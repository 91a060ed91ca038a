/* Memory for keys: what others see of it. */
#include "common/secret.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 100

static uint8_t *secret;

static int set_up(void)
{
    secret = cw_secret_alloc(SIZE);
    return !secret;
}

static int tear_down(void)
{
    cw_secret_free(secret, SIZE);
    return 0;
}

SUITE("secret", set_up, tear_down);

TEST(begins_with_zeros)
{
    for (int i = 0; i < SIZE; i++)
        CU_ASSERT_EQUAL(secret[i], 0);
}

TEST(a_child_finds_zeros)
{
    int status = -1;
    pid_t pid;

    memset(secret, 0xaa, SIZE);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        int sum = 0;

        for (int i = 0; i < SIZE; i++)
            sum |= secret[i];
        _exit(sum != 0);
    }
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(secret[SIZE - 1], 0xaa);
}

/* proc(5): "dd" among the flags of a mapping is "do not include in core dump". */
TEST(it_is_not_dumped)
{
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[1024];
    bool inside = false;
    bool marked = false;
    void *from;
    void *to;

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%p-%p ", &from, &to) == 2)
            inside = (uint8_t *)from <= secret && secret < (uint8_t *)to;
        if (inside && strncmp(line, "VmFlags:", 8) == 0)
            marked = strstr(line, " dd") != NULL;
    }
    fclose(f);
    CU_ASSERT_TRUE(marked);
}

TEST(nothing_to_free)
{
    cw_secret_free(NULL, SIZE);
}
