#include "dispatcher/status/status_table.h"
#include "dispatcher/status/table.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static void cell_pid(const json_t *row, char *to)
{
    if (table_number(row, "pid") == 0)
        strcpy(to, "-");
    else
        snprintf(to, TABLE_CELL_MAX, "%llu", table_number(row, "pid"));
}

static void cell_state(const json_t *row, char *to)
{
    const char *state = table_text(row, "state");

    if (strcmp(state, "replaying") == 0)
        snprintf(to, TABLE_CELL_MAX, "%s %llu of %llu", state, table_number(row, "replayed"),
                 table_number(row, "to_replay"));
    else
        snprintf(to, TABLE_CELL_MAX, "%s", state);
}

static void cell_log(const json_t *row, char *to)
{
    if (json_is_number(json_object_get(row, "unprotected_s")))
        strcpy(to, "lost");
    else
        table_bytes(table_number(row, "log_bytes"), to, TABLE_CELL_MAX);
}

static void cell_image(const json_t *row, char *to)
{
    const json_t *image = json_object_get(row, "image");

    if (!json_is_object(image))
        strcpy(to, "-");
    else
        snprintf(to, TABLE_CELL_MAX, "%llu, %.0f s ago", table_number(image, "number"),
                 json_number_value(json_object_get(image, "age_s")));
}

/* "node2", "node2, node3" */
static void cell_backups(const json_t *row, char *to)
{
    const json_t *backups = json_object_get(row, "backups");
    size_t used = 0;

    strcpy(to, json_array_size(backups) ? "" : "-");
    for (size_t i = 0; i < json_array_size(backups) && used < TABLE_CELL_MAX; i++)
        used += (size_t)snprintf(to + used, TABLE_CELL_MAX - used, "%s%s", i ? ", " : "",
                                 json_string_value(json_array_get(backups, i)) ?: "");
}

static void cell_copy(const json_t *row, char *to)
{
    const json_t *since = json_object_get(row, "uncovered_s");

    if (json_is_number(since))
        snprintf(to, TABLE_CELL_MAX, "%.20s, for %.0f s", table_text(row, "state"),
                 json_number_value(since));
    else
        snprintf(to, TABLE_CELL_MAX, "%.60s", table_text(row, "state"));
}

static void cell_job(const json_t *row, char *to)
{
    snprintf(to, TABLE_CELL_MAX, "%.8s", table_text(row, "job"));
}

static void cell_ranks(const json_t *row, char *to)
{
    snprintf(to, TABLE_CELL_MAX, "%zu", json_array_size(json_object_get(row, "ranks")));
}

static void cell_started(const json_t *row, char *to)
{
    snprintf(to, TABLE_CELL_MAX, "%.19sZ", table_text(row, "started"));
}

static const struct table_column rank_columns[] = {
    {"RANK", true, .number = "rank"},         {"HOST", false, .text = "host"},
    {"PID", true, .cell = cell_pid},          {"INCARNATION", true, .number = "incarnation"},
    {"STATE", false, .cell = cell_state},     {"EVENTS", true, .number = "events"},
    {"LOG", true, .cell = cell_log},          {"IMAGE", true, .cell = cell_image},
    {"RESTARTS", true, .number = "restarts"},
};

static const struct table_column copies_columns[] = {
    {"RELAY", true, .number = "relay"},
    {"HOST", false, .text = "host"},
    {"BACKUPS", false, .cell = cell_backups},
    {"LOG", false, .cell = cell_copy},
};

static const struct table_column job_columns[] = {
    {"JOB", false, .cell = cell_job},      {"PID", true, .cell = cell_pid},
    {"RANKS", true, .cell = cell_ranks},   {"STARTED", false, .cell = cell_started},
    {"COMMAND", false, .text = "command"},
};

/* "4 ranks: 3 live, 1 replaying" */
static void put_summary(FILE *to, const json_t *ranks)
{
    static const char *const states[] = {"live", "starting", "replaying", "down", "hung", "ended"};
    size_t count = json_array_size(ranks);
    const char *before = ": ";

    fprintf(to, "%zu rank%s", count, count == 1 ? "" : "s");
    for (size_t s = 0; s < LENGTH(states); s++) {
        size_t of_state = 0;

        for (size_t i = 0; i < count; i++)
            of_state += strcmp(table_text(json_array_get(ranks, i), "state"), states[s]) == 0;
        if (!of_state)
            continue;
        fprintf(to, "%s%zu %s", before, of_state, states[s]);
        before = ", ";
    }
    fputc('\n', to);
}

void status_table_job(FILE *to, const json_t *document)
{
    const json_t *ranks = json_object_get(document, "ranks");
    const json_t *copies = json_object_get(document, "copies");

    fputs("job ", to);
    table_put_text(to, table_text(document, "job"));
    fprintf(to, ", causeway run with pid %llu, since ", table_number(document, "pid"));
    table_put_text(to, table_text(document, "started"));
    fputs("\ncommand: ", to);
    table_put_text(to, table_text(document, "command"));
    fputs("\nrelay: ", to);
    table_put_text(to, table_text(document, "relay"));
    fputc('\n', to);
    put_summary(to, ranks);
    table_put(to, rank_columns, LENGTH(rank_columns), ranks);
    if (json_array_size(copies) > 0)
        table_put(to, copies_columns, LENGTH(copies_columns), copies);
}

void status_table_jobs(FILE *to, const json_t *documents)
{
    table_put(to, job_columns, LENGTH(job_columns), documents);
}
