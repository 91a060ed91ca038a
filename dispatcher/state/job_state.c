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

static void put_body(struct cw_writer *w, const struct job_state_record *v)
{
    switch ((enum job_state_type)v->type) {
    case JOB_STATE_JOB:
        cw_put_bytes(w, v->id, sizeof(v->id));
        cw_put_bytes(w, v->key, sizeof(v->key));
        cw_put_u32(w, v->rank);
        break;
    case JOB_STATE_FILE:
        cw_put_u64(w, v->file.size);
        cw_put_u64(w, v->file.mtime_ns);
        cw_put_bytes(w, v->file.path, strlen(v->file.path) + 1);
        break;
    case JOB_STATE_STDIN:
        for (int i = 0; i < 3; i++)
            cw_put_u64(w, v->stdin_file[i]);
        cw_put_bytes(w, v->bytes, v->size);
        break;
    case JOB_STATE_START:
        cw_put_u32(w, v->rank);
        cw_put_u32(w, v->number);
        cw_put_u32(w, v->image);
        break;
    case JOB_STATE_REPORT:
    case JOB_STATE_PMI:
        cw_put_u32(w, v->rank);
        cw_put_bytes(w, v->bytes, v->size);
        break;
    case JOB_STATE_STARTED:
    case JOB_STATE_MARK:
    case JOB_STATE_TRIMMED:
    case JOB_STATE_ENDED:
        cw_put_u32(w, v->rank);
        cw_put_u32(w, v->number);
        break;
    case JOB_STATE_PLACE:
        cw_put_u32(w, v->rank);
        cw_put_u32(w, v->number);
        for (int i = 0; i < JOB_STATE_STREAMS; i++)
            cw_put_u64(w, v->place.printed[i]);
        cw_put_u64(w, v->place.input);
        break;
    case JOB_STATE_BEGUN:
        break;
    default:
        cw_put_bytes(w, v->bytes, v->size);
        break;
    }
}

/* All that is left. */
static void get_rest(struct cw_reader *r, struct job_state_record *v)
{
    v->size = (uint32_t)r->left;
    v->bytes = cw_get_bytes(r, r->left);
}

/* All that is left is a text with its end, and nothing after it. */
static bool get_text(struct cw_reader *r, struct job_state_record *v)
{
    get_rest(r, v);
    return v->size > 0 && memchr(v->bytes, '\0', v->size) == v->bytes + v->size - 1;
}

static bool get_file(struct cw_reader *r, struct job_state_record *v)
{
    v->file.size = cw_get_u64(r);
    v->file.mtime_ns = cw_get_u64(r);
    if (r->bad || !get_text(r, v))
        return false;
    v->file.path = (const char *)v->bytes;
    return true;
}

static void get_fixed(struct cw_reader *r, struct job_state_record *v)
{
    v->rank = cw_get_u32(r);
    if (v->type == JOB_STATE_REPORT || v->type == JOB_STATE_PMI) {
        get_rest(r, v);
        return;
    }
    v->number = cw_get_u32(r);
    if (v->type == JOB_STATE_START)
        v->image = cw_get_u32(r);
    if (v->type != JOB_STATE_PLACE)
        return;
    for (int i = 0; i < JOB_STATE_STREAMS; i++)
        v->place.printed[i] = cw_get_u64(r);
    v->place.input = cw_get_u64(r);
}

/* False: no writer of this version wrote that. */
static bool get_body(struct cw_reader *r, uint32_t ranks, struct job_state_record *v)
{
    switch ((enum job_state_type)v->type) {
    case JOB_STATE_JOB:
        cw_get_copy(r, v->id, sizeof(v->id));
        cw_get_copy(r, v->key, sizeof(v->key));
        v->rank = cw_get_u32(r);
        return cw_reader_end(r) && v->rank > 0 && v->rank <= CW_RANKS_MAX && ranks == 0;
    case JOB_STATE_FILE:
        return get_file(r, v);
    case JOB_STATE_STDIN:
        for (int i = 0; i < 3; i++)
            v->stdin_file[i] = cw_get_u64(r);
        return !r->bad && get_text(r, v);
    case JOB_STATE_BEGUN:
        return cw_reader_end(r);
    case JOB_STATE_ARGUMENT:
    case JOB_STATE_VARIABLE:
    case JOB_STATE_DIRECTORY:
        return get_text(r, v);
    case JOB_STATE_INPUT:
        get_rest(r, v);
        return true;
    default:
        get_fixed(r, v);
        return cw_reader_end(r) && v->rank < ranks;
    }
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
