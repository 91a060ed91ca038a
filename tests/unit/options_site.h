/* A command line of `causeway run`, parsed: for tests of its options. */
#ifndef UNIT_OPTIONS_SITE_H
#define UNIT_OPTIONS_SITE_H

#include "dispatcher/run/layout.h"

#include <CUnit/CUnit.h>
#include <string.h>

#define WORDS_MAX 600

static struct run_options o;
static struct cw_err err;
static char line_copy[16384];
static char *argv[WORDS_MAX + 1];

/* Splits "run ..." at its spaces. Owned by run_options until run_options_free. */
static int parse(const char *line)
{
    int argc = 0;

    CU_ASSERT_TRUE_FATAL(strlen(line) < sizeof(line_copy));
    strcpy(line_copy, line);
    for (char *word = strtok(line_copy, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    memset(&err, 0, sizeof(err));
    return run_options_parse(&o, argc, argv, &err);
}

static void good(const char *line)
{
    CU_ASSERT_EQUAL(parse(line), CW_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
}

static void bad(const char *line, const char *text)
{
    CU_ASSERT_EQUAL(parse(line), CW_EINVAL);
    CU_ASSERT_EQUAL(err.code, CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
    run_options_free(&o);
}

#endif
