#include "dispatcher/status/status_table.h"

#include <stdbool.h>
#include <string.h>

#define CELL_MAX 64
#define COLUMNS_MAX 16
#define GAP 2 /* spaces between columns */
#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

struct column {
    const char *title;
    bool right;
    void (*cell)(const json_t *row, char *to); /* CELL_MAX bytes */
};

static uint64_t number(const json_t *row, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(row, key));

    return value < 0 ? 0 : (uint64_t)value;
}

static const char *text(const json_t *row, const char *key)
{
    const char *value = json_string_value(json_object_get(row, key));

    return value ? value : "";
}

/* A terminal must not take anything in a text for a command: neither the control characters nor
 * U+0080 to U+009F, which are such too. */
static void put_text(FILE *to, const char *from)
{
    for (; *from; from++) {
        unsigned char c = (unsigned char)*from;

        if (c == 0xc2 && (unsigned char)from[1] >= 0x80 && (unsigned char)from[1] < 0xa0) {
            fputc('?', to);
            from++;
        } else {
            fputc(c < ' ' || c == 0x7f ? '?' : c, to);
        }
    }
}

void status_table_bytes(uint64_t bytes, char *to, size_t size)
{
    static const char units[] = " KMGTPE";
    double value = (double)bytes;
    int unit = 0;

    for (; value >= 1024 && units[unit + 1]; unit++)
        value /= 1024;
    if (unit)
        snprintf(to, size, "%.1f%c", value, units[unit]);
    else
        snprintf(to, size, "%d", (int)bytes);
}

static void put_number(const json_t *row, const char *key, char *to)
{
    snprintf(to, CELL_MAX, "%llu", (unsigned long long)number(row, key));
}

static void cell_rank(const json_t *row, char *to)
{
    put_number(row, "rank", to);
}

static void cell_host(const json_t *row, char *to)
{
    snprintf(to, CELL_MAX, "%s", text(row, "host"));
}

static void cell_pid(const json_t *row, char *to)
{
    put_number(row, "pid", to);
    if (strcmp(to, "0") == 0)
        strcpy(to, "-");
}

static void cell_incarnation(const json_t *row, char *to)
{
    put_number(row, "incarnation", to);
}

static void cell_state(const json_t *row, char *to)
{
    const char *state = text(row, "state");

    if (strcmp(state, "replaying") == 0)
        snprintf(to, CELL_MAX, "%s %llu of %llu", state,
                 (unsigned long long)number(row, "replayed"),
                 (unsigned long long)number(row, "to_replay"));
    else
        snprintf(to, CELL_MAX, "%s", state);
}

static void cell_events(const json_t *row, char *to)
{
    put_number(row, "events", to);
}

static void cell_log(const json_t *row, char *to)
{
    if (json_is_number(json_object_get(row, "unprotected_s")))
        strcpy(to, "lost");
    else
        status_table_bytes(number(row, "log_bytes"), to, CELL_MAX);
}

static void cell_restarts(const json_t *row, char *to)
{
    put_number(row, "restarts", to);
}

static void cell_job(const json_t *row, char *to)
{
    snprintf(to, CELL_MAX, "%.8s", text(row, "job"));
}

static void cell_ranks(const json_t *row, char *to)
{
    snprintf(to, CELL_MAX, "%zu", json_array_size(json_object_get(row, "ranks")));
}

static void cell_started(const json_t *row, char *to)
{
    snprintf(to, CELL_MAX, "%.19sZ", text(row, "started"));
}

static void cell_command(const json_t *row, char *to)
{
    snprintf(to, CELL_MAX, "%s", text(row, "command"));
}

static const struct column rank_columns[] = {
    {"RANK", true, cell_rank},    {"HOST", false, cell_host},
    {"PID", true, cell_pid},      {"INCARNATION", true, cell_incarnation},
    {"STATE", false, cell_state}, {"EVENTS", true, cell_events},
    {"LOG", true, cell_log},      {"RESTARTS", true, cell_restarts},
};

static const struct column job_columns[] = {
    {"JOB", false, cell_job},         {"PID", true, cell_pid},          {"RANKS", true, cell_ranks},
    {"STARTED", false, cell_started}, {"COMMAND", false, cell_command},
};

static void put_cell(FILE *to, const struct column *column, const char *cell, int width, bool last)
{
    int padding = width - (int)strlen(cell);

    fprintf(to, "%*s", column->right ? padding : 0, "");
    put_text(to, cell);
    if (!last)
        fprintf(to, "%*s", GAP + (column->right ? 0 : padding), "");
}

static void measure(const struct column *columns, size_t count, const json_t *rows, size_t shown,
                    int *widths)
{
    char cell[CELL_MAX];

    for (size_t c = 0; c < count; c++) {
        widths[c] = (int)strlen(columns[c].title);
        for (size_t i = 0; i < shown; i++) {
            columns[c].cell(json_array_get(rows, i), cell);
            if ((int)strlen(cell) > widths[c])
                widths[c] = (int)strlen(cell);
        }
    }
}

static void put_table(FILE *to, const struct column *columns, size_t count, const json_t *rows,
                      size_t shown)
{
    int widths[COLUMNS_MAX];
    char cell[CELL_MAX];

    measure(columns, count, rows, shown, widths);
    for (size_t c = 0; c < count; c++)
        put_cell(to, &columns[c], columns[c].title, widths[c], c + 1 == count);
    fputc('\n', to);
    for (size_t i = 0; i < shown; i++) {
        for (size_t c = 0; c < count; c++) {
            columns[c].cell(json_array_get(rows, i), cell);
            put_cell(to, &columns[c], cell, widths[c], c + 1 == count);
        }
        fputc('\n', to);
    }
}

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
            of_state += strcmp(text(json_array_get(ranks, i), "state"), states[s]) == 0;
        if (!of_state)
            continue;
        fprintf(to, "%s%zu %s", before, of_state, states[s]);
        before = ", ";
    }
    fputc('\n', to);
}

void status_table_job(FILE *to, const json_t *document, size_t ranks_max)
{
    const json_t *ranks = json_object_get(document, "ranks");
    size_t count = json_array_size(ranks);
    size_t shown = count < ranks_max ? count : ranks_max;

    fputs("job ", to);
    put_text(to, text(document, "job"));
    fprintf(to, ", causeway run with pid %llu, since ",
            (unsigned long long)number(document, "pid"));
    put_text(to, text(document, "started"));
    fputs("\ncommand: ", to);
    put_text(to, text(document, "command"));
    fputs("\nrelay: ", to);
    put_text(to, text(document, "relay"));
    fputc('\n', to);
    put_summary(to, ranks);
    put_table(to, rank_columns, LENGTH(rank_columns), ranks, shown);
    if (shown < count)
        fprintf(to, "... and %zu more\n", count - shown);
}

void status_table_jobs(FILE *to, const json_t *documents)
{
    put_table(to, job_columns, LENGTH(job_columns), documents, json_array_size(documents));
}
