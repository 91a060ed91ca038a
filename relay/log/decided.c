#include "relay/log/log.h"

#include <string.h>

#define CUT 0u                /* in place of the type of a decision */
#define CUT_SIZE (1u + 2 * 8) /* and: how many count; 1 + position of the cut before it, or 0 */

static uint8_t *append(struct relay_log *log, size_t size, uint64_t *position)
{
    uint64_t held = 0;
    uint8_t *to = chain_append(&log->decided.chain, (uint32_t)size, position, &held);

    log_hold(log, held);
    return to;
}

int log_decide(struct relay_log *log, const struct cw_piece *piece, const uint8_t *payload)
{
    uint8_t head[CW_DECISION_HEAD_MAX];
    size_t size = cw_decision_put_head(head, piece);
    uint64_t position;
    uint8_t *to = append(log, size + piece->size, &position);

    if (!to)
        return CW_ENOMEM;
    memcpy(to, head, size);
    if (piece->size)
        memcpy(to + size, payload, piece->size);
    log->decided.count++;
    return CW_OK;
}

int log_cut_decided(struct relay_log *log, uint64_t count)
{
    struct log_decided *decided = &log->decided;
    uint64_t position;
    uint8_t *to;
    struct cw_writer w;

    if (count >= decided->count)
        return CW_OK;
    to = append(log, CUT_SIZE, &position);
    if (!to)
        return CW_ENOMEM;
    w = cw_writer(to, CUT_SIZE);
    cw_put_u8(&w, CUT);
    cw_put_u64(&w, count);
    cw_put_u64(&w, decided->cut);
    decided->cut = position + 1;
    decided->count = count;
    return CW_OK;
}

/* --- reading -------------------------------------------------------------------------------------
 */

/* A cut: how many count after it, and where the one before it is. False: it is none. */
static bool get_cut(struct cw_reader r, uint64_t *count, uint64_t *before)
{
    bool is = cw_get_u8(&r) == CUT;

    *count = cw_get_u64(&r);
    *before = cw_get_u64(&r);
    return is && !r.bad;
}

static struct cw_reader read_at(const struct chain *chain, uint64_t *position)
{
    struct chain_bytes bytes;

    return chain_read(chain, position, &bytes) == CHAIN_HERE ? cw_reader(bytes.at, bytes.size)
                                                             : cw_reader(NULL, 0);
}

/* Of what is here so many count: whatever cut comes leaves no more. */
static uint64_t most_after(const struct log_decided *decided, uint64_t position)
{
    uint64_t most = UINT64_MAX;
    uint64_t cut = decided->cut;
    uint64_t at, count, before;

    while (cut > position) {
        at = cut - 1;
        if (!get_cut(read_at(&decided->chain, &at), &count, &before) || before >= cut)
            return 0;
        if (count < most)
            most = count;
        cut = before;
    }
    return most;
}

/* Past a cut, or to the first decision. */
static void go_on(const struct log_decided *decided, struct log_decided_reading *reading)
{
    reading->begun = true;
    reading->most = most_after(decided, reading->position);
}

static bool pass_cut(const struct log_decided *decided, struct log_decided_reading *reading,
                     struct cw_reader r)
{
    uint64_t count, before;

    if (!get_cut(r, &count, &before))
        return false;
    reading->number = count;
    reading->position += CUT_SIZE;
    go_on(decided, reading);
    return true;
}

bool log_next_decided(const struct log_decided *decided, struct log_decided_reading *reading,
                      struct log_decision *decision)
{
    struct cw_reader r;
    bool counts = false;

    if (!reading->begun) {
        reading->position = chain_position(decided->chain.first, 0);
        go_on(decided, reading);
    }
    while (!counts) {
        r = read_at(&decided->chain, &reading->position);
        if (pass_cut(decided, reading, r))
            continue;
        decision->bytes = r.at;
        decision->size = r.left;
        if (!cw_decision_get(&r, &decision->piece, &decision->payload))
            return false;
        decision->size -= r.left;
        reading->position += decision->size;
        counts = reading->number++ < reading->most;
    }
    return true;
}
