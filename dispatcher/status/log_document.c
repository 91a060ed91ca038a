#include "dispatcher/status/log_document.h"
#include "dispatcher/status/json_value.h"

#include <sodium.h>
#include <stdlib.h>

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
