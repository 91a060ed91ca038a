#include "dispatcher/cli/ckpt_now.h"
#include "common/parse.h"
#include "dispatcher/status/status_client.h"
#include "dispatcher/status/table.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: causeway ckpt now [JOB]\n"
    "\n"
    "Takes an image of each rank of a running job, and waits until it is stored, or failed. Prints "
    "a\n"
    "line for each rank. JOB is the pid of its causeway run, or the beginning of its identifier.\n"
    "Without it: the job that runs.\n"
    "\n"
    "  --help               this text\n"
    "\n"
    "Exit code: 0 when all are stored; 1 when one is not, or there is no such job; 2 bad usage.\n";

static int parse(int argc, char **argv, bool *help, const char **job, struct cw_err *err)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    int opt;

    optind = 0;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (opt == '?' || opt == ':')
            return cw_parse_option_error(opt, argv, "causeway ckpt now", err);
        *help = true;
    }
    if (argc - optind > 1)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see causeway ckpt now --help",
                          argv[optind + 1]);
    *job = argv[optind];
    return CW_OK;
}

/* Returns whether the image is stored. */
static bool print_rank(const json_t *rank)
{
    const char *state = table_text(rank, "state");
    bool stored = strcmp(state, "stored") == 0;
    char bytes[TABLE_CELL_MAX];

    printf("rank %llu: ", (unsigned long long)table_number(rank, "rank"));
    if (stored) {
        table_bytes(table_number(rank, "bytes"), bytes, sizeof(bytes));
        printf("image %llu is stored (%s)\n", (unsigned long long)table_number(rank, "image"),
               bytes);
    } else if (strcmp(state, "failed") == 0) {
        fputs("no image: ", stdout);
        table_put_text(stdout, table_text(rank, "cause"));
        putchar('\n');
    } else {
        puts("no image came in time");
    }
    return stored;
}

static int print_all(const json_t *document)
{
    const json_t *rank;
    int code = 0;
    size_t i;

    json_array_foreach(json_object_get(document, "ranks"), i, rank)
    {
        if (!print_rank(rank))
            code = 1;
    }
    if (fflush(stdout) == 0)
        return code;
    perror("causeway ckpt: standard output");
    return 1;
}

static int take(const char *job, struct cw_err *err)
{
    struct status_found *found = calloc(STATUS_JOBS_MAX, sizeof(*found));
    json_t *document = NULL;
    int count, chosen, code = 1;

    if (!found)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    count = status_find(found);
    chosen = status_choose(found, count, job, err);
    if (chosen >= 0) {
        document = status_ask_images(found[chosen].dir, err);
        if (!document && err->code == CW_ENOTFOUND)
            cw_err_set(err, CW_ENOTFOUND,
                       "that job takes no images: it was started with --no-ckpt or --no-log");
    }
    if (document)
        code = print_all(document);
    json_decref(document);
    status_forget(found, count);
    free(found);
    return document ? code : err->code;
}

int ckpt_now(int argc, char **argv)
{
    struct cw_err err = {0};
    const char *job = NULL;
    bool help = false;
    int code;

    if (parse(argc, argv, &help, &job, &err) < 0) {
        fprintf(stderr, "causeway ckpt: %s\n", err.text);
        return 2;
    }
    if (help) {
        fputs(usage, stdout);
        return 0;
    }
    code = take(job, &err);
    if (code < 0)
        fprintf(stderr, "causeway ckpt: %s\n", err.text);
    return code < 0 ? 1 : code;
}
