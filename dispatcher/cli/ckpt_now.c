#include "dispatcher/cli/ckpt_now.h"
#include "dispatcher/status/status_client.h"
#include "dispatcher/status/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int ckpt_now(const char *job, struct cw_err *err)
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
