#include "dispatcher/run/sharing.h"

#include <stdio.h>

struct context {
    struct sharing *sharing;
    const struct cw_report *report;
    uint32_t rank; /* whose report it is */
};

static void describe(const struct files_unsafe *unsafe, const char *path, char *why, size_t size)
{
    if (unsafe->other == FILES_NO_RANK)
        snprintf(why, size, "it writes to '%.*s', and more files are open than are known",
                 (int)CW_PATH_TOLD, path);
    else if (unsafe->writes)
        snprintf(why, size, "it writes to '%.*s', which rank %u has opened as well",
                 (int)CW_PATH_TOLD, path, unsafe->other);
    else
        snprintf(why, size, "it has opened '%.*s', to which rank %u writes", (int)CW_PATH_TOLD,
                 path, unsafe->other);
}

static void on_unsafe(void *ctx, const struct files_unsafe *unsafe)
{
    const struct context *c = ctx;
    char why[SHARING_TEXT_MAX];

    c->sharing->shares[unsafe->rank] = true;
    if (unsafe->other != FILES_NO_RANK)
        c->sharing->shares[unsafe->other] = true;
    if (c->sharing->trusted)
        return;
    describe(unsafe, c->report->text, why, sizeof(why));
    c->sharing->unsafe(c->sharing->ctx, unsafe->rank, unsafe->rank == c->rank, why);
}

void sharing_take(struct sharing *sharing, uint32_t rank, const struct cw_report *report)
{
    struct context context = {sharing, report, rank};

    if (sharing->files)
        files_open(sharing->files, rank, &report->opening, on_unsafe, &context);
}
