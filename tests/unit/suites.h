/* Tests say where they stand that they are there, by SUITE once in a file and TEST for each; main.c
 * finds them in a section of the program. Those of engines, which are there once for each engine,
 * are registered with CUnit by a function. */
#ifndef UNIT_SUITES_H
#define UNIT_SUITES_H

#include <stddef.h>

struct unit_suite {
    const char *name;
    int (*set_up)(void); /* or NULL; both return 0 */
    int (*tear_down)(void);
    void (*after)(void); /* each of its tests, or NULL */
};

struct unit_test {
    const struct unit_suite *suite;
    const char *name;
    void (*run)(void);
    int line;
};

/* SUITE("name") or SUITE("name", set_up, tear_down) */
#define SUITE(...) UNIT_SUITE_OF(__VA_ARGS__, NULL, NULL, )
#define UNIT_SUITE_OF(name, set_up, tear_down, ...)                                                \
    static const struct unit_suite this_suite = {name, set_up, tear_down, NULL}
#define SUITE_AFTER_EACH(name, after)                                                              \
    static const struct unit_suite this_suite = {name, NULL, NULL, after}

/* TEST(name) { ... } */
#define TEST(test)                                                                                 \
    static void test(void);                                                                        \
    static const struct unit_test *test##_here __attribute__((section("unit_tests"), used)) =      \
        &(const struct unit_test){&this_suite, #test, test, __LINE__};                             \
    static void test(void)

void add_engine_tests(void);

#endif
