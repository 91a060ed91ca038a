#include "dispatcher/state/job_state.h"
#include "common/buf.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAGIC 0x45544154534a5743ull /* "CWJSTATE" */
#define BYTES_BITS 24 /* of a line that is not complete; a longer one counts as so long */
#define BYTES_MASK ((1ull << BYTES_BITS) - 1)

uint64_t job_state_printed(uint64_t lines, uint64_t bytes)
{
    return lines << BYTES_BITS | (bytes < BYTES_MASK ? bytes : BYTES_MASK);
}

uint64_t job_state_printed_lines(uint64_t printed)
{
    return printed >> BYTES_BITS;
}

uint64_t job_state_printed_bytes(uint64_t printed)
{
    return printed & BYTES_MASK;
}

void job_state_put_header(uint8_t to[JOB_STATE_HEADER])
{
    struct cw_writer w = cw_writer(to, JOB_STATE_HEADER);

    cw_put_u64(&w, MAGIC);
    cw_put_u32(&w, JOB_STATE_VERSION);
    cw_put_u32(&w, 0);
}

uint32_t job_state_version(const uint8_t *bytes, size_t size)
{
    struct cw_reader r = cw_reader(bytes, size);
    uint64_t magic = cw_get_u64(&r);
    uint32_t version = cw_get_u32(&r);

    cw_get_u32(&r);
    return r.bad || magic != MAGIC ? 0 : version;
}

/* --- bodies --------------------------------------------------------------------------------------
 */

#define FIELDS_MAX 3 /* of one type */

/* TEXT and REST: all that is left, `bytes`; TEXT has its end there, and nothing after it. */
enum field { END, ID, KEY, RANK, NUMBER, IMAGE, FILE_TIMES, STDIN_FILE, PLACE, TEXT, REST };

/* Where a field is in a record; numbers stand one after the other there, too. */
#define FIELD(member)                                                                              \
    {                                                                                              \
        offsetof(struct job_state_record, member), sizeof(((struct job_state_record *)0)->member)  \
    }
static const struct {
    size_t offset, size;
} fields[] = {[ID] = FIELD(id),
              [KEY] = FIELD(key),
              [RANK] = FIELD(rank),
              [NUMBER] = FIELD(number),
              [IMAGE] = FIELD(image),
              [FILE_TIMES] = {offsetof(struct job_state_record, file), 2 * sizeof(uint64_t)},
              [STDIN_FILE] = FIELD(stdin_file),
              [PLACE] = FIELD(place)};

/* Also of a type behind them all, which has none. */
static const uint8_t fields_of[JOB_STATE_TYPES + 1][FIELDS_MAX + 1] = {
    [JOB_STATE_JOB] = {ID, KEY, RANK},
    [JOB_STATE_ARGUMENT] = {TEXT},
    [JOB_STATE_VARIABLE] = {TEXT},
    [JOB_STATE_DIRECTORY] = {TEXT},
    [JOB_STATE_FILE] = {FILE_TIMES, TEXT},
    [JOB_STATE_STDIN] = {STDIN_FILE, TEXT},
    [JOB_STATE_BEGUN] = {END},
    [JOB_STATE_START] = {RANK, NUMBER, IMAGE},
    [JOB_STATE_STARTED] = {RANK, NUMBER},
    [JOB_STATE_REPORT] = {RANK, REST},
    [JOB_STATE_PMI] = {RANK, NUMBER, REST},
    [JOB_STATE_MARK] = {RANK, NUMBER},
    [JOB_STATE_INPUT] = {REST},
    [JOB_STATE_PLACE] = {RANK, NUMBER, PLACE},
    [JOB_STATE_TRIMMED] = {RANK, NUMBER},
    [JOB_STATE_ENDED] = {RANK, NUMBER},
    [JOB_STATE_NODE] = {NUMBER, TEXT},
};

static void put_body(struct cw_writer *w, const struct job_state_record *v)
{
    for (const uint8_t *field = fields_of[v->type]; *field != END; field++)
        if (*field < TEXT)
            cw_put_bytes(w, (const uint8_t *)v + fields[*field].offset, fields[*field].size);
        else if (v->type == JOB_STATE_FILE)
            cw_put_bytes(w, v->file.path, strlen(v->file.path) + 1);
        else
            cw_put_bytes(w, v->bytes, v->size);
}

/* False: no writer of this version wrote that. */
static bool get_body(struct cw_reader *r, uint32_t ranks, struct job_state_record *v)
{
    bool sense = true;

    for (const uint8_t *field = fields_of[v->type]; *field != END; field++) {
        if (*field < TEXT) {
            cw_get_copy(r, (uint8_t *)v + fields[*field].offset, fields[*field].size);
        } else {
            v->size = (uint32_t)r->left;
            v->bytes = cw_get_bytes(r, r->left);
        }
        if (*field == TEXT)
            sense = v->size > 0 && memchr(v->bytes, '\0', v->size) == v->bytes + v->size - 1;
        if (*field == RANK && v->type != JOB_STATE_JOB)
            sense = v->rank < ranks;
    }
    if (v->type == JOB_STATE_JOB)
        sense = v->rank > 0 && v->rank <= CW_RANKS_MAX && ranks == 0;
    if (v->type == JOB_STATE_FILE)
        v->file.path = (const char *)v->bytes;
    return cw_reader_end(r) && sense;
}

/* --- records -------------------------------------------------------------------------------------
 */

/* Of its type, size and body. */
static uint64_t checksum(const uint8_t *record, uint32_t type, size_t body)
{
    return XXH3_64bits_withSeed(record + JOB_STATE_RECORD, body, (uint64_t)type << 32 | body);
}

size_t job_state_put(uint8_t *to, const struct job_state_record *record)
{
    struct cw_writer body = cw_writer(to + JOB_STATE_RECORD, JOB_STATE_BODY_MAX);
    struct cw_writer head = cw_writer(to, JOB_STATE_RECORD);

    put_body(&body, record);
    if (body.bad)
        return 0;
    cw_put_u32(&head, record->type);
    cw_put_u32(&head, (uint32_t)body.used);
    cw_put_u64(&head, checksum(to, record->type, body.used));
    return JOB_STATE_RECORD + body.used;
}

/* What cannot be read is the torn tail of the last writes, unless it was known to be on disk. */
static enum job_state_found unreadable(const struct job_state_bytes *in, size_t offset)
{
    return offset < in->synced ? JOB_STATE_DAMAGED : JOB_STATE_END;
}

enum job_state_found job_state_get(const struct job_state_bytes *in, size_t *offset, uint32_t ranks,
                                   struct job_state_record *record)
{
    const uint8_t *at = in->bytes + *offset;
    struct cw_reader r;
    uint32_t body;

    *record = (struct job_state_record){0};
    if (*offset > in->size || in->size - *offset < JOB_STATE_RECORD)
        return unreadable(in, *offset);
    r = cw_reader(at, JOB_STATE_RECORD);
    record->type = cw_get_u32(&r);
    body = cw_get_u32(&r);
    if (body > JOB_STATE_BODY_MAX || body > in->size - *offset - JOB_STATE_RECORD ||
        cw_get_u64(&r) != checksum(at, record->type, body))
        return unreadable(in, *offset);
    if (record->type == 0 || record->type >= JOB_STATE_TYPES)
        return JOB_STATE_DAMAGED;
    r = cw_reader(at + JOB_STATE_RECORD, body);
    if (!get_body(&r, ranks, record))
        return JOB_STATE_DAMAGED;
    *offset += JOB_STATE_RECORD + body;
    return JOB_STATE_GOT;
}
