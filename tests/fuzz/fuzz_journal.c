/* A journal with right sums and wrong records: who restores it may refuse it, or lose what it says,
 * but no assertion fails, and at the end nothing is held. A core makes the journal once, by a
 * script. The input is a list of changes of its records, and then of what the clients do. The same
 * bytes are looked at as causeway log does. */
#include "common/buf.h"
#include "common/err.h"
#include "dispatcher/status/log_document.h"
#include "relay/inspect/image.h"
#include "relay/log/restore.h"
#include "relay/log/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/left_job.h"

#include <errno.h>
#include <sys/mman.h>

#define REGION (64ull << 20)
#define LEFT_SIZE (sizeof(struct ledger_memory) + REGION)
#define MEMORY_MAX (48u << 20)
#define LOG_MEMORY (100u << 10)
#define PLACES 64u          /* on disk */
#define FILE_MAX (4u << 20) /* bytes of a journal */
#define RECORDS_MAX 8192u
#define CHANGES_MAX 24u

/* A record of the journal that was made. */
struct made_record {
    struct journal_record header;
    const uint8_t *bytes;
    struct journal_part part; /* that it stands in */
    bool last;                /* in its part */
};

struct change {
    uint32_t record;
    uint8_t what;
    uint8_t how;
    uint16_t place;
    uint16_t value;
};

static uint8_t files[STORE_FILES][FILE_MAX]; /* PLACES segments are no more */
static struct made_record records[RECORDS_MAX];
static uint32_t record_count;
static struct relay_journal next_journal;
static struct change changes[CHANGES_MAX];
static uint32_t change_count;
static uint8_t journal[2 * FILE_MAX]; /* the one that was changed */
static uint64_t journal_size;
static bool making; /* what is written stays */
static uint64_t wrong_read;

/* --- the disk -----------------------------------------------------------------------------------
 */
static int carry_out(const struct relay_log_io *io)
{
    if (io->offset + io->size > FILE_MAX)
        return EIO;
    if (io->write && making)
        memcpy(files[io->file] + io->offset, io->at, io->size);
    if (!io->write)
        memcpy(io->at, files[io->file] + io->offset, io->size);
    if (!io->write && wrong_read-- == 0)
        io->at[9] ^= 1;
    return 0;
}

static int read_place(void *ctx, uint32_t extent, uint8_t *to, uint32_t size)
{
    uint64_t offset = (uint64_t)extent * RELAY_BLOCK_BYTES;

    (void)ctx;
    if (offset + size > FILE_MAX)
        return ENODATA;
    memcpy(to, files[STORE_SEGMENTS] + offset, size);
    return 0;
}

/* --- what is made -------------------------------------------------------------------------------
 */
static struct ledger_memory *left_new(void)
{
    void *at = mmap(NULL, LEFT_SIZE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    must(at != MAP_FAILED);
    return at;
}

static void open_core(struct ledger_memory *left, const struct relay_journal *to)
{
    struct relay_core_config config = {.memory_max = MEMORY_MAX,
                                       .log_memory = making ? LOG_MEMORY : MEMORY_MAX,
                                       .log_disk = PLACES * RELAY_BLOCK_BYTES,
                                       .ledger = left,
                                       .journal = *to};

    config.region = (struct relay_region){.start = (uint8_t *)(left + 1), .size = REGION};
    left_job_open(&config, carry_out);
}

static void note_records(const uint8_t *bytes, const struct journal_summary *summary)
{
    struct journal_reader reader = journal_read(bytes, summary->end);
    bool sense;

    while (journal_next_part(&reader)) {
        struct made_record *record = &records[record_count];

        while (must(record_count < RECORDS_MAX),
               journal_next_record(&reader, &record->header, &record->bytes, &sense)) {
            record->part = reader.part;
            record++;
            record_count++;
        }
        must(sense);
        record[-1].last = true;
    }
}

/* The core that made it stays, for nothing of it may be given back. */
static void make_journal(void)
{
    struct ledger_memory *left = left_new();
    static struct relay_core *first;
    struct journal_summary summary[2];
    int newest;

    making = true;
    wrong_read = UINT64_MAX;
    open_core(left, &(struct relay_journal){.number = 1});
    left_job_begin(0, 0);
    first = left_job_leave();
    making = false;
    for (int i = 0; i < 2; i++)
        journal_look(files[STORE_JOURNAL_0 + i], FILE_MAX, &summary[i]);
    newest = summary[1].journal > summary[0].journal;
    must(first && summary[newest].commits > 0 && left->header.extents_used > 0);
    next_journal = (struct relay_journal){.number = summary[newest].journal + 1, .file = !newest};
    note_records(files[STORE_JOURNAL_0 + newest], &summary[newest]);
}

/* --- changes ------------------------------------------------------------------------------------
 */
static void read_changes(struct cw_reader *r)
{
    change_count = cw_get_u8(r) % CHANGES_MAX;
    for (uint32_t i = 0; i < change_count; i++)
        changes[i] = (struct change){.record = cw_get_u16(r) % record_count,
                                     .what = cw_get_u8(r),
                                     .how = cw_get_u8(r),
                                     .place = cw_get_u16(r),
                                     .value = cw_get_u16(r)};
}

static uint64_t some_value(const struct change *change, uint64_t old)
{
    switch (change->how & 7) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return 0;
    case 3:
        return UINT64_MAX;
    case 4:
        return old ^ 1ull << (change->how >> 3);
    default:
        return change->value;
    }
}

/* One number of it. */
static void change_at(void *at, size_t size, const struct change *change)
{
    size_t wide = 1u << (change->how >> 6);
    size_t place;
    uint64_t value = 0;

    if (size < wide)
        return;
    place = change->place % (size / wide) * wide;
    memcpy(&value, (uint8_t *)at + place, wide);
    value = some_value(change, value);
    memcpy((uint8_t *)at + place, &value, wide);
}

/* Writes it, so often as its changes say. */
static void put_record(struct journal_writer *writer, uint32_t number)
{
    const struct made_record *record = &records[number];
    uint32_t times = 1;

    for (uint32_t i = 0; i < change_count; i++)
        if (changes[i].record == number && changes[i].what % 8 == 0)
            times = changes[i].how % 3;
    for (; times > 0 && journal_room(writer) > record->header.size; times--) {
        uint8_t *at = journal_add(writer, &record->header);

        if (record->header.size)
            memcpy(at, record->bytes, record->header.size);
        for (uint32_t i = 0; i < change_count; i++) {
            if (changes[i].record != number)
                continue;
            if (changes[i].what % 8 < 4)
                change_at(at - sizeof(record->header), sizeof(record->header), &changes[i]);
            else
                change_at(at, record->header.size, &changes[i]);
        }
    }
}

static void change_part(struct journal_part *part, uint32_t number)
{
    for (uint32_t i = 0; i < change_count; i++)
        if (changes[i].record == number && changes[i].what > 200)
            change_at(&part->number, sizeof(part->number), &changes[i]);
        else if (changes[i].record == number && changes[i].what > 180)
            part->generation = changes[i].value;
}

/* With right sums. */
static void write_journal(void)
{
    static _Alignas(JOURNAL_ALIGN) uint8_t room[JOURNAL_PART_MAX];
    struct journal_writer writer;

    journal_size = 0;
    journal_start(&writer, room, sizeof(room));
    for (uint32_t i = 0; i < record_count; i++) {
        struct journal_part part = records[i].part;
        uint32_t size;

        put_record(&writer, i);
        if (!records[i].last)
            continue;
        change_part(&part, i);
        size = journal_finish(&writer, &part);
        must(journal_size + size <= sizeof(journal));
        memcpy(journal + journal_size, room, size);
        journal_size += size;
        journal_start(&writer, room, sizeof(room));
    }
}

/* --- and what follows ---------------------------------------------------------------------------
 */
static void inspect(const struct journal_summary *summary)
{
    struct inspect_damage damage = {0};
    struct inspect_totals totals;
    struct relay_returned returned;
    struct inspect_image image;
    struct cw_err err = {0};
    json_t *jobs;

    if (inspect_image_open(&image, journal, summary, read_place, NULL, &err) < 0) {
        must(change_count > 0);
        return;
    }
    jobs = log_jobs(&image, &damage);
    must(jobs);
    json_decref(jobs);
    inspect_image_close(&image);
    must(inspect_image_open(&image, journal, summary, read_place, NULL, &err) == CW_OK);
    inspect_states(&image, &totals, &damage);
    must(inspect_trial(&image, left_job_key, &returned, &err) == CW_OK);
    must(change_count > 0 ||
         (damage.count == 0 && returned.lost == 0 && returned.jobs == totals.jobs));
    inspect_image_close(&image);
}

/* `wrong`: one of its reads gives other bytes. */
static void take_up(const struct journal_summary *summary, struct cw_reader *r, bool wrong)
{
    struct ledger_memory *left = left_new();
    const struct relay_region region = {.start = (uint8_t *)(left + 1), .size = REGION};
    struct relay_returned returned = {0};
    struct cw_err err = {0};

    if (restore(left, &region, journal, summary, &err) == CW_OK) {
        open_core(left, &next_journal);
        left_job_return(&returned);
        must(change_count > 0 || wrong ||
             (returned.lost == 0 && returned.sessions == LEFT_JOB_SESSIONS));
        while (r->left > 0)
            left_job_act(r);
        left_job_end();
    }
    munmap(left, LEFT_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cw_reader r = cw_reader(data, size);
    struct journal_summary summary;

    if (record_count == 0)
        make_journal();
    read_changes(&r);
    write_journal();
    journal_look(journal, journal_size, &summary);
    must(change_count > 0 || summary.commits > 0);
    wrong_read = UINT64_MAX;
    if (summary.commits > 0) {
        if (size % 4 == 0)
            inspect(&summary);
        wrong_read = size % 7 ? UINT64_MAX : size % 16;
        take_up(&summary, &r, size % 7 == 0);
    }
    return 0;
}
