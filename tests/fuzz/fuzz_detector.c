/* Any messages to a failure detector: reading stays inside them, those that are refused change
 * nothing, those that are read and written again are the same, and a detector that gets them sends
 * nothing that another one refuses. The first byte says which protocol and how many processes; then
 * come messages, each after a byte with its sender, one with the time that passes, one with its
 * size. */
#include "dispatcher/detector/detector.h"
#include "dispatcher/detector/swim_message.h"
#include "dispatcher/detector/table_message.h"
#include "tests/fuzz/fuzz.h"

#define T 1000u
#define MESSAGES_MAX 200
#define SENT_MAX 64 /* for each message that comes, and each time that passes, and process */

struct group {
    enum detector_kind kind;
    uint32_t n;
    uint32_t sent;
    bool failed[256];
};

static void read_table_again(const uint8_t *bytes, size_t size, uint32_t n)
{
    static uint8_t again[DETECTOR_MESSAGE_MAX], codes[DETECTOR_PROCESSES_MAX];
    static const uint8_t none[DETECTOR_PROCESSES_MAX];
    struct cw_writer w = cw_writer(again, sizeof(again));
    struct table_message m;
    struct cw_err err;
    uint32_t distance = 0;
    uint8_t code;

    if (table_message_read(&m, bytes, size, n, &err) < 0)
        return;
    memset(codes, 0, sizeof(codes));
    if (m.kind == TABLE_WHOLE)
        memcpy(codes + 1, m.entries.at, n - 1);
    while (m.kind == TABLE_DIFFERENCE && table_next_change(&m.entries, &distance, &code)) {
        must(distance < n);
        codes[distance] = code;
    }
    if (m.kind == TABLE_WHOLE || m.kind == TABLE_DIFFERENCE)
        table_message_write(&w, &m, codes, m.kind == TABLE_DIFFERENCE ? none : NULL, n);
    else
        table_message_write_short(&w, &m);
    must(!w.bad);
    must(m.kind == TABLE_DIFFERENCE || (w.used == size && memcmp(again, bytes, size) == 0));
}

static void read_swim_again(const uint8_t *bytes, size_t size, uint32_t n)
{
    uint8_t again[SWIM_MESSAGE_MAX];
    struct cw_writer w = cw_writer(again, sizeof(again));
    struct swim_message m;
    struct cw_err err;

    if (swim_message_read(&m, bytes, size, n, &err) < 0)
        return;
    swim_message_write(&w, &m);
    must(!w.bad && w.used == size && memcmp(again, bytes, size) == 0);
}

static void on_send(void *ctx, uint32_t to, const uint8_t *bytes, size_t size)
{
    struct group *g = ctx;
    struct table_message table;
    struct swim_message swim;
    struct cw_err err;

    must(to < g->n && to != 0 && g->sent++ < SENT_MAX * g->n);
    if (g->kind == DETECTOR_SWIM)
        must(swim_message_read(&swim, bytes, size, g->n, &err) == CW_OK);
    else
        must(table_message_read(&table, bytes, size, g->n, &err) == CW_OK);
}

/* They alternate. */
static void on_verdict(void *ctx, uint32_t process, enum detector_verdict verdict)
{
    struct group *g = ctx;

    must(process < g->n && process != 0);
    must(g->failed[process] == (verdict == DETECTOR_BACK));
    g->failed[process] = verdict == DETECTOR_FAILED;
}

static void take_one(struct detector *d, struct group *g, const uint8_t *head, const uint8_t *bytes,
                     size_t size, uint64_t *now_ns)
{
    struct cw_err err = {0};
    uint64_t due_ns;

    g->sent = 0;
    *now_ns += head[1] < 250 ? head[1] * 16u : head[1] * 16u * T;
    read_table_again(bytes, size, g->n);
    read_swim_again(bytes, size, g->n);
    if (detector_receive(d, head[0], bytes, size, *now_ns, &err) < 0)
        must(err.code == CW_EPROTO);
    if (detector_due_ns(d) <= *now_ns)
        detector_advance(d, *now_ns);
    due_ns = detector_due_ns(d);
    must(due_ns > *now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct group g = {0};
    struct detector_config config = {.gossip_ns = T, .ping_ns = T / 2, .heartbeat = 1};
    struct detector_out out = {.ctx = &g, .send = on_send, .verdict = on_verdict};
    struct detector *d;
    uint64_t now_ns = 0;

    if (size < 1)
        return 0;
    config.kind = g.kind = data[0] % DETECTOR_KINDS;
    config.health_max = data[0] & 0x80 ? 8 : 0;
    config.n = g.n = 2 + data[0] / DETECTOR_KINDS % 16;
    data++, size--;
    d = detector_new(&config, &out, 0);
    must(d != NULL);
    for (uint32_t i = 0; i < MESSAGES_MAX && size >= 3; i++) {
        size_t part = data[2] < size - 3 ? data[2] : size - 3;

        take_one(d, &g, data, data + 3, part, &now_ns);
        data += 3 + part;
        size -= 3 + part;
    }
    detector_free(d);
    return 0;
}
