#include "relay/inspect/states.h"

#include <sodium.h>
#include <stdio.h>

#define TOLD 0u /* which chain of a job's */
#define OUT 0u  /* ... and of a session's */

static uint32_t cells_of(const struct inspect_image *image)
{
    return image->memory->header.cells_used;
}

/* --- names ---------------------------------------------------------------------------------------
 */

const struct saved_job *inspect_job_of(const struct inspect_image *image, uint32_t cell)
{
    const struct saved_rank *rank = ledger_find(&image->ledger, cell, LEDGER_RANK);
    const struct saved_conn *conn = ledger_find(&image->ledger, cell, LEDGER_CONN);

    return ledger_find(&image->ledger, rank ? rank->job : conn ? conn->job : cell, LEDGER_JOB);
}

static void name_conn(const struct saved_conn *conn, char *to)
{
    switch (conn->state) {
    case CONN_DISPATCHER:
        snprintf(to, INSPECT_WHO_MAX, "the dispatcher's session of ");
        break;
    case CONN_LINK:
        snprintf(to, INSPECT_WHO_MAX, "the link to relay %u of ", conn->peer);
        break;
    default:
        snprintf(to, INSPECT_WHO_MAX, "the session of rank %u of ", conn->rank);
        break;
    }
}

void inspect_name(const struct inspect_image *image, uint32_t cell, char name[INSPECT_WHO_MAX])
{
    const struct saved_rank *rank = ledger_find(&image->ledger, cell, LEDGER_RANK);
    const struct saved_conn *conn = ledger_find(&image->ledger, cell, LEDGER_CONN);
    const struct saved_job *job = inspect_job_of(image, cell);
    char id[2 * CW_ID_SIZE + 1] = "that is not there";
    char what[INSPECT_WHO_MAX] = "";

    if (job)
        sodium_bin2hex(id, sizeof(id), job->id, CW_ID_SIZE);
    if (rank)
        snprintf(what, sizeof(what), "rank %u of ", rank->rank);
    else if (conn)
        name_conn(conn, what);
    snprintf(name, INSPECT_WHO_MAX, "%.48sjob %s", what, id);
}

/* --- jobs ----------------------------------------------------------------------------------------
 */

static void look_at_job(struct inspect_image *image, uint32_t cell, struct inspect_totals *totals,
                        struct inspect_damage *damage)
{
    const struct saved_job *saved = ledger_find(&image->ledger, cell, LEDGER_JOB);
    struct inspect_chain chain = {.cell = cell, .which = TOLD};
    char name[INSPECT_WHO_MAX];

    if (!saved)
        return;
    totals->jobs++;
    totals->linked += saved->told.count > 0;
    inspect_name(image, cell, name);
    if (saved->ranks == 0 || saved->ranks > CW_RANKS_MAX)
        inspect_damaged(damage, "%s: it says that it has %u ranks", name, saved->ranks);
    chain.what = name;
    chain.end = saved->told;
    inspect_chain(image, &chain, NULL, NULL, &totals->sizes, damage);
}

/* --- ranks ---------------------------------------------------------------------------------------
 */

static void add_sizes(struct inspect_sizes *to, const struct inspect_sizes *sizes)
{
    to->journal += sizes->journal;
    to->disk += sizes->disk;
    to->segments += sizes->segments;
}

static void look_at_rank(struct inspect_image *image, uint32_t cell, struct inspect_totals *totals,
                         struct inspect_damage *damage)
{
    const struct saved_rank *saved = ledger_find(&image->ledger, cell, LEDGER_RANK);
    const struct saved_job *job = saved ? inspect_job_of(image, cell) : NULL;
    struct inspect_rank rank;
    char name[INSPECT_WHO_MAX];

    if (!saved)
        return;
    totals->ranks++;
    inspect_name(image, cell, name);
    if (!job || saved->rank >= job->ranks)
        inspect_damaged(damage, "%s: there is no such rank", name);
    if (!saved->kept)
        inspect_damaged(damage, "%s: its log had been given up before", name);
    inspect_rank(image, cell, name, &rank, damage);
    add_sizes(&totals->sizes, &rank.sizes);
}

/* --- sessions ------------------------------------------------------------------------------------
 */

bool inspect_is_open(const struct saved_conn *saved)
{
    return saved->state == CONN_RANK || saved->state == CONN_DISPATCHER ||
           saved->state == CONN_LINK;
}

/* What is queued for the other side is what its chain holds. */
static void look_at_queue(struct inspect_image *image, uint32_t cell,
                          const struct saved_conn *saved, const char *name,
                          struct inspect_totals *totals, struct inspect_damage *damage)
{
    const struct inspect_chain chain = {
        .what = name, .cell = cell, .which = OUT, .end = saved->out.chain};
    struct inspect_sizes sizes = {0};

    if (inspect_chain(image, &chain, NULL, NULL, &sizes, damage) &&
        sizes.journal + sizes.disk - saved->out.skip != inspect_queued(saved))
        inspect_damaged(damage, "%s: %llu bytes are queued, and %llu of them are there", name,
                        (unsigned long long)inspect_queued(saved),
                        (unsigned long long)(sizes.journal + sizes.disk - saved->out.skip));
    add_sizes(&totals->sizes, &sizes);
}

static void look_at_conn(struct inspect_image *image, uint32_t cell, struct inspect_totals *totals,
                         struct inspect_damage *damage)
{
    const struct saved_conn *saved = ledger_find(&image->ledger, cell, LEDGER_CONN);
    char name[INSPECT_WHO_MAX];

    if (!saved || !inspect_job_of(image, cell) || !inspect_is_open(saved))
        return;
    totals->sessions++;
    inspect_name(image, cell, name);
    if (saved->state != CONN_RANK)
        look_at_queue(image, cell, saved, name, totals, damage);
}

void inspect_states(struct inspect_image *image, struct inspect_totals *totals,
                    struct inspect_damage *damage)
{
    *totals = (struct inspect_totals){0};
    for (uint32_t cell = 0; cell < cells_of(image); cell++)
        look_at_job(image, cell, totals, damage);
    for (uint32_t cell = 0; cell < cells_of(image); cell++)
        look_at_rank(image, cell, totals, damage);
    for (uint32_t cell = 0; cell < cells_of(image); cell++)
        look_at_conn(image, cell, totals, damage);
}
