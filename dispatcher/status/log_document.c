#include "dispatcher/status/log_document.h"
#include "dispatcher/status/json_value.h"
#include "dispatcher/status/table.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

/* What is larger than a number of JSON's is no number of anything. */
static json_int_t number(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (json_int_t)value;
}

/* --- journals ------------------------------------------------------------------------------------
 */

static json_t *journal_document(const struct inspect_journal *journal, int file, bool counts)
{
    const struct journal_summary *summary = &journal->summary;

    if (journal->fd < 0)
        return json_null();
    return json_pack("{s:i, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "file", file, "counts", counts,
                     "number", number(summary->journal), "commits", number(summary->commits),
                     "parts", number(summary->committed), "bytes", number(summary->end),
                     "unfinished_parts", number(summary->parts - summary->committed), "file_bytes",
                     number(journal->size));
}

json_t *log_document(const char *dir, const struct inspect_files *files)
{
    json_t *journals = json_array();

    for (int i = 0; i < INSPECT_JOURNALS; i++)
        json_array_append_new(journals,
                              journal_document(&files->journals[i], i, i == files->counts));
    return json_pack("{s:o, s:i, s:o, s:[]}", "directory", json_value_text(dir), "version",
                     (int)JOURNAL_VERSION, "journals", journals, "jobs");
}

/* --- states --------------------------------------------------------------------------------------
 */

static json_t *job_document(const struct saved_job *saved)
{
    char id[2 * CW_ID_SIZE + 1];

    sodium_bin2hex(id, sizeof(id), saved->id, CW_ID_SIZE);
    return json_pack("{s:s, s:I, s:I, s:[], s:[]}", "job", id, "size", (json_int_t)saved->ranks,
                     "resume_ms", number(saved->resume_ns / 1000000), "ranks", "sessions");
}

static json_t *rank_document(struct inspect_image *image, uint32_t cell,
                             const struct saved_rank *saved, struct inspect_damage *damage)
{
    struct inspect_rank rank;
    char name[INSPECT_WHO_MAX];

    inspect_name(image, cell, name);
    inspect_rank(image, cell, name, &rank, damage);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b}", "rank",
                     (json_int_t)saved->rank, "incarnation", (json_int_t)saved->incarnation, "acts",
                     number(saved->acts), "events", number(rank.events), "taken",
                     number(rank.taken), "sends", number(rank.sends), "records_bytes",
                     number(rank.record_bytes), "payload_bytes", number(rank.payload_bytes),
                     "journal_bytes", number(rank.sizes.journal), "disk_bytes",
                     number(rank.sizes.disk), "ended", saved->ended != 0, "logged",
                     saved->kept != 0, "whole", rank.whole);
}

static const char *kind_of(const struct saved_conn *saved)
{
    switch (saved->state) {
    case CONN_RANK:
        return "rank";
    case CONN_DISPATCHER:
        return "dispatcher";
    case CONN_LINK:
        return "relay";
    default:
        return "closing";
    }
}

/* `number`: of the rank or of the other relay; null with a dispatcher. */
static json_t *session_document(const struct saved_conn *saved)
{
    uint32_t of = saved->state == CONN_LINK ? saved->peer : saved->rank;

    return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I}", "kind", kind_of(saved), "number",
                     saved->state == CONN_DISPATCHER ? json_null() : json_integer(of), "frames_in",
                     (json_int_t)saved->session.in_seq, "frames_out",
                     (json_int_t)saved->session.out_seq, "acted_bytes", number(saved->acted),
                     "queued_bytes", number(inspect_queued(saved)));
}

/* --- all of them ---------------------------------------------------------------------------------
 */

static void add_jobs(const struct inspect_image *image, json_t **by_cell, json_t *jobs)
{
    for (uint32_t cell = 0; cell < image->memory->header.cells_used; cell++) {
        const struct saved_job *saved = ledger_find(&image->ledger, cell, LEDGER_JOB);

        by_cell[cell] = saved ? job_document(saved) : NULL;
        if (by_cell[cell])
            json_array_append_new(jobs, by_cell[cell]);
    }
}

/* A rank or session of a job that is not there is not shown; causeway log verify tells of it. */
static void add_to_job(struct inspect_image *image, uint32_t cell, json_t *const *by_cell,
                       struct inspect_damage *damage)
{
    uint32_t cells = image->memory->header.cells_used;
    const struct saved_rank *rank = ledger_find(&image->ledger, cell, LEDGER_RANK);
    const struct saved_conn *conn = ledger_find(&image->ledger, cell, LEDGER_CONN);

    if (rank && rank->job < cells && by_cell[rank->job])
        json_array_append_new(json_object_get(by_cell[rank->job], "ranks"),
                              rank_document(image, cell, rank, damage));
    if (conn && conn->job < cells && by_cell[conn->job])
        json_array_append_new(json_object_get(by_cell[conn->job], "sessions"),
                              session_document(conn));
}

json_t *log_jobs(struct inspect_image *image, struct inspect_damage *damage)
{
    uint32_t cells = image->memory->header.cells_used;
    json_t **by_cell = calloc(cells + 1, sizeof(json_t *));
    json_t *jobs = by_cell ? json_array() : NULL;

    if (jobs) {
        add_jobs(image, by_cell, jobs);
        for (uint32_t cell = 0; cell < cells; cell++)
            add_to_job(image, cell, by_cell, damage);
    }
    free(by_cell);
    return jobs;
}

/* --- for a person --------------------------------------------------------------------------------
 */

static void put_journal(FILE *to, const json_t *journal)
{
    bool counts = json_is_true(json_object_get(journal, "counts"));
    char size[TABLE_CELL_MAX];

    if (!json_is_object(journal))
        return;
    fprintf(to, "journal.%llu: ", table_number(journal, "file"));
    if (table_number(journal, "commits") == 0) {
        fprintf(to, "no commit has ended\n");
        return;
    }
    table_bytes(table_number(journal, "bytes"), size, sizeof(size));
    fprintf(to, "journal %llu, %llu commits in %llu parts, %s%s\n", table_number(journal, "number"),
            table_number(journal, "commits"), table_number(journal, "parts"), size,
            counts ? "; it counts" : "; older");
    if (counts && table_number(journal, "unfinished_parts") > 0)
        fprintf(to, "  behind its last commit: %llu parts of one that had not ended\n",
                table_number(journal, "unfinished_parts"));
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

static void cell_number(const json_t *row, char *to)
{
    if (json_is_integer(json_object_get(row, "number")))
        snprintf(to, TABLE_CELL_MAX, "%llu", table_number(row, "number"));
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
    {"SESSION", false, .text = "kind"},         {"NUMBER", true, .cell = cell_number},
    {"FRAMES IN", true, .number = "frames_in"}, {"FRAMES OUT", true, .number = "frames_out"},
    {"QUEUED", true, .bytes = "queued_bytes"},
};

static void put_job(FILE *to, const json_t *job)
{
    const json_t *ranks = json_object_get(job, "ranks");
    const json_t *sessions = json_object_get(job, "sessions");

    fputs("\njob ", to);
    table_put_text(to, table_text(job, "job"));
    fprintf(to, ": %llu ranks, %zu of them here\n", table_number(job, "size"),
            json_array_size(ranks));
    table_put(to, rank_columns, LENGTH(rank_columns), ranks);
    table_put(to, session_columns, LENGTH(session_columns), sessions);
}

void log_table(FILE *to, const json_t *document)
{
    const json_t *journals = json_object_get(document, "journals");
    const json_t *jobs = json_object_get(document, "jobs");

    fputs("logs in ", to);
    table_put_text(to, table_text(document, "directory"));
    fprintf(to, ", version %llu\n", table_number(document, "version"));
    for (size_t i = 0; i < json_array_size(journals); i++)
        put_journal(to, json_array_get(journals, i));
    for (size_t i = 0; i < json_array_size(jobs); i++)
        put_job(to, json_array_get(jobs, i));
    if (json_array_size(jobs) == 0)
        fputs("no job\n", to);
}
