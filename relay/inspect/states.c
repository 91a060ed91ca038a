#include "relay/inspect/states.h"
#include "relay/log/point.h"

#include <sodium.h>
#include <stdio.h>

#define RECORDS 0u /* which chain of a rank's */
#define PAYLOAD 1u

struct look {
    struct inspect_image *image;
    struct inspect_chain payload;
    const char *what;     /* the records, and whose */
    struct relay_log log; /* its counts alone */
    bool trimmed;         /* its first events are not here, and the point is still to come ... */
    uint64_t begins;      /* ... at which the log begins: the position of its record */
    uint64_t bytes;
    struct inspect_damage *damage;
};

static bool take_payload(void *ctx, uint32_t number, const uint8_t *bytes, uint32_t used)
{
    (void)number;
    (void)bytes;
    *(uint64_t *)ctx += used;
    return true;
}

/* The bytes that stand beside a record are in the payload chain. */
static bool is_placed_well(const struct look *look, const struct log_record *record)
{
    uint64_t number = record->at >> CHAIN_SHIFT;
    uint32_t at = chain_offset(record->at);
    uint64_t left = record->size;

    if (left > RELAY_BLOCK_BYTES || number > UINT32_MAX)
        return false;
    for (; left > 0; at = 0, number++) {
        uint32_t used = inspect_chain_used(look->image, &look->payload, (uint32_t)number);

        if (used == 0 && number < look->payload.solid)
            return true; /* nobody reads that record any more */
        if (used <= at)
            return false;
        left -= left < used - at ? left : used - at;
    }
    return true;
}

/* What was let go of is counted there. `position`: of the record. */
static bool begin_at(struct look *look, const struct log_record *record, uint64_t position)
{
    struct log_point point;

    if (!log_point_read(record, position, &point))
        return false;
    log_go_on_from(&look->log, &point);
    look->trimmed = false;
    return true;
}

/* `position`: behind it. */
static const char *what_is_wrong(struct look *look, uint32_t size, const struct log_record *record,
                                 uint64_t position)
{
    if (size == 0)
        return "there is no record that makes sense";
    if (record->placed && !is_placed_well(look, record))
        return "a record whose payload is missing";
    if (look->trimmed && position - size == look->begins)
        return begin_at(look, record, look->begins) ? NULL
                                                    : "there is no point where the log begins";
    if (!look->trimmed && !log_count(&look->log, record, position))
        return "more events are taken than there are";
    return NULL;
}

static bool take_records(void *ctx, uint32_t number, const uint8_t *bytes, uint32_t used)
{
    struct look *look = ctx;
    struct log_record record;
    uint32_t size;

    look->bytes += used;
    for (uint32_t at = 0; at < used; at += size) {
        const char *wrong;

        size = log_record_get(bytes + at, used - at, &record);
        wrong = what_is_wrong(look, size, &record, ((uint64_t)number << CHAIN_SHIFT) + at + size);
        if (!wrong)
            continue;
        inspect_damaged(look->damage, "%s: position %llu (segment %u, byte %u): %s", look->what,
                        (unsigned long long)number << CHAIN_SHIFT | at, number, at, wrong);
        return false;
    }
    return true;
}

void inspect_rank(struct inspect_image *image, uint32_t cell, const char *who,
                  struct inspect_rank *rank, struct inspect_damage *damage)
{
    const struct saved_rank *saved = ledger_find(&image->ledger, cell, LEDGER_RANK);
    char records_of[INSPECT_TEXT_MAX / 2];
    char payload_of[INSPECT_TEXT_MAX / 2];
    struct inspect_chain records = {
        .what = records_of, .cell = cell, .which = RECORDS, .end = saved->records};
    struct look look = {.image = image,
                        .payload = {.what = payload_of,
                                    .cell = cell,
                                    .which = PAYLOAD,
                                    .end = saved->payload,
                                    .solid = saved->payload_solid},
                        .trimmed = saved->points.trimmed,
                        .begins = saved->points.at[0],
                        .what = records_of,
                        .damage = damage};

    *rank = (struct inspect_rank){0};
    snprintf(records_of, sizeof(records_of), "%s, records", who);
    snprintf(payload_of, sizeof(payload_of), "%s, payload", who);
    rank->whole = inspect_chain(image, &look.payload, take_payload, &rank->payload_bytes,
                                &rank->sizes, damage);
    rank->whole &= inspect_chain(image, &records, take_records, &look, &rank->sizes, damage);
    rank->record_bytes = look.bytes;
    rank->events = look.log.event_count;
    rank->taken = look.log.taken;
    rank->sends = look.log.send_count;
}

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
