#include "dispatcher/status/log_table.h"
#include "dispatcher/status/table.h"

#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* --- journals ------------------------------------------------------------------------------------
 */

static unsigned long long count(const json_t *row, const char *key)
{
    return table_number(row, key);
}

static void put_behind(FILE *to, const json_t *journal)
{
    if (count(journal, "unfinished_parts") > 0)
        fprintf(to, "  behind its last commit: %llu parts of one that had not ended\n",
                count(journal, "unfinished_parts"));
}

static void put_journal(FILE *to, const json_t *journal)
{
    bool counts = json_is_true(json_object_get(journal, "counts"));
    char size[TABLE_CELL_MAX];

    if (!json_is_object(journal))
        return;
    fprintf(to, "journal.%llu: ", count(journal, "file"));
    if (count(journal, "commits") == 0) {
        fprintf(to, "no commit has ended\n");
        return;
    }
    table_bytes(table_number(journal, "bytes"), size, sizeof(size));
    fprintf(to, "journal %llu, %llu commits in %llu parts, %s%s\n", count(journal, "number"),
            count(journal, "commits"), count(journal, "parts"), size,
            counts ? "; it counts" : "; older");
    if (counts)
        put_behind(to, journal);
}

/* --- jobs ----------------------------------------------------------------------------------------
 */

static void cell_log(const json_t *row, char *to)
{
    bool logged = json_is_true(json_object_get(row, "logged"));

    strcpy(to, !logged                                       ? "given up"
               : json_is_true(json_object_get(row, "whole")) ? "whole"
                                                             : "damaged");
}

static void cell_kind(const json_t *row, char *to)
{
    snprintf(to, TABLE_CELL_MAX, "%s", table_text(row, "kind"));
}

static void cell_number(const json_t *row, char *to)
{
    if (json_is_integer(json_object_get(row, "number")))
        snprintf(to, TABLE_CELL_MAX, "%llu", count(row, "number"));
    else
        strcpy(to, "-");
}

static const struct table_column rank_columns[] = {
    {"RANK", true, .number = "rank"},
    {"INCARNATION", true, .number = "incarnation"},
    {"ACTS", true, .number = "acts"},
    {"EVENTS", true, .number = "events"},
    {"RECORDS", true, .bytes = "records_bytes"},
    {"PAYLOAD", true, .bytes = "payload_bytes"},
    {"IN JOURNAL", true, .bytes = "journal_bytes"},
    {"ON DISK", true, .bytes = "disk_bytes"},
    {"LOG", false, .cell = cell_log},
};

static const struct table_column session_columns[] = {
    {"SESSION", false, .cell = cell_kind},      {"NUMBER", true, .cell = cell_number},
    {"FRAMES IN", true, .number = "frames_in"}, {"FRAMES OUT", true, .number = "frames_out"},
    {"QUEUED", true, .bytes = "queued_bytes"},
};

static void put_job(FILE *to, const json_t *job)
{
    const json_t *ranks = json_object_get(job, "ranks");
    const json_t *sessions = json_object_get(job, "sessions");

    fputs("\njob ", to);
    table_put_text(to, table_text(job, "job"));
    fprintf(to, ": %llu ranks, %zu of them here\n", count(job, "size"), json_array_size(ranks));
    table_put(to, rank_columns, LENGTH(rank_columns), ranks);
    table_put(to, session_columns, LENGTH(session_columns), sessions);
}

void log_table(FILE *to, const json_t *document)
{
    const json_t *journals = json_object_get(document, "journals");
    const json_t *jobs = json_object_get(document, "jobs");

    fputs("logs in ", to);
    table_put_text(to, table_text(document, "directory"));
    fprintf(to, ", version %llu\n", count(document, "version"));
    for (size_t i = 0; i < json_array_size(journals); i++)
        put_journal(to, json_array_get(journals, i));
    for (size_t i = 0; i < json_array_size(jobs); i++)
        put_job(to, json_array_get(jobs, i));
    if (json_array_size(jobs) == 0)
        fputs("no job\n", to);
}
