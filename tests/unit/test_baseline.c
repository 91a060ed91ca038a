/* Ranks that need no more of the processor than each x86-64 has: what libc is told, and what an
 * image says. */
#include "dispatcher/program/tunables.h"
#include "rdevice/image/baseline.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <asm/sigcontext.h>
#include <stdlib.h>
#include <string.h>

static const char *after(const char *user)
{
    static char text[4096];
    char *setting = tunables_baseline(user);

    CU_ASSERT_PTR_NOT_NULL_FATAL(setting);
    strcpy(text, setting);
    free(setting);
    return text;
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

static void tunables_of_the_user_stay(void)
{
    const char *text = after(NULL);

    CU_ASSERT_TRUE(begins_with(text, "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,"));
    CU_ASSERT_TRUE(ends_with(text, ",-XSAVEC"));
    CU_ASSERT_TRUE(begins_with(after(""), "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,"));
    CU_ASSERT_TRUE(begins_with(after("glibc.malloc.check=1"),
                               "GLIBC_TUNABLES=glibc.malloc.check=1:glibc.cpu.hwcaps=-AVX,"));
    text = after("a=1:glibc.cpu.hwcaps=-ERMS:b=2");
    CU_ASSERT_TRUE(begins_with(text, "GLIBC_TUNABLES=a=1:glibc.cpu.hwcaps=-ERMS,-AVX,"));
    CU_ASSERT_TRUE(ends_with(text, ",-XSAVEC:b=2"));
    /* the last one counts */
    text = after("glibc.cpu.hwcaps=x:glibc.cpu.hwcaps=y");
    CU_ASSERT_TRUE(begins_with(text, "GLIBC_TUNABLES=glibc.cpu.hwcaps=x:glibc.cpu.hwcaps=y,-AVX,"));
    /* a name that only ends alike */
    CU_ASSERT_PTR_NOT_NULL(strstr(after("my.glibc.cpu.hwcaps=x"), "hwcaps=x:glibc.cpu.hwcaps=-"));
}

static void baseline_needs_nothing_else(void)
{
    uint32_t words[8];
    uint64_t xcr0 = ~0ull;

    memset(words, 0xff, sizeof(words));
    baseline_reduce(words, &xcr0);
    CU_ASSERT_EQUAL(xcr0, 3);
    for (int i = 0; i < 8; i++)
        CU_ASSERT_EQUAL(words[i] == 0, i != 1 && i != 7);
    CU_ASSERT_EQUAL(words[1], 0x07808111);
    /* what is not there is not said to be */
    memset(words, 0, sizeof(words));
    baseline_reduce(words, &xcr0);
    CU_ASSERT_EQUAL(words[1], 0);
}

static void wide_registers_are_seen(void)
{
    static struct _xstate saved;
    ucontext_t frame = {.uc_mcontext.fpregs = NULL};

    CU_ASSERT_TRUE(baseline_is_frames(&frame));
    frame.uc_mcontext.fpregs = (fpregset_t)(void *)&saved;
    saved.xstate_hdr.xfeatures = 7; /* not there without the magic number */
    CU_ASSERT_TRUE(baseline_is_frames(&frame));
    saved.fpstate.sw_reserved.magic1 = FP_XSTATE_MAGIC1;
    CU_ASSERT_FALSE(baseline_is_frames(&frame));
    saved.xstate_hdr.xfeatures = 3 | 1u << 9;
    CU_ASSERT_TRUE(baseline_is_frames(&frame));
    saved.xstate_hdr.xfeatures = 3 | 1u << 5;
    CU_ASSERT_FALSE(baseline_is_frames(&frame));
}

void add_baseline_tests(void)
{
    CU_pSuite s = CU_add_suite("baseline", NULL, NULL);

    CU_ADD_TEST(s, tunables_of_the_user_stay);
    CU_ADD_TEST(s, baseline_needs_nothing_else);
    CU_ADD_TEST(s, wide_registers_are_seen);
}
