/* What comes from the other end of a striped tunnel: a greeting, an answer, and chunks over several
 * connections in pieces. What is held stays within its bound, and what comes out is in order. */
#include "tests/fuzz/fuzz.h"
#include "tunnels/stripe_order.h"

#define WAYS 4u
#define BUFFER_BYTES (2u * STRIPE_CHUNK_BYTES_MAX)

struct way {
    uint8_t bytes[BUFFER_BYTES];
    size_t end;
    struct stripe_arrived arrived;
};

static struct way ways[WAYS];
static struct stripe_order order;
static uint64_t dropped;

static void read_greeting(const uint8_t *data, size_t size)
{
    uint8_t bytes[STRIPE_GREETING_BYTES] = {0};
    struct stripe_greeting greeting, again;
    struct cw_err err;

    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    if (stripe_greeting_get(bytes, &greeting, &err) < 0)
        return;
    must(memchr(greeting.host, '\0', sizeof(greeting.host)) || greeting.kind == STRIPE_JOIN);
    stripe_greeting_put(bytes, &greeting);
    must(stripe_greeting_get(bytes, &again, &err) == CW_OK && again.port == greeting.port);
}

static void read_answer(const uint8_t *data, size_t size)
{
    uint8_t bytes[STRIPE_ANSWER_BYTES] = {0};
    struct stripe_answer answer;

    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    stripe_answer_get(bytes, &answer);
    for (const char *at = answer.text; *at; at++)
        must(*at >= ' ' && *at <= '~');
}

static void check_held(void)
{
    uint64_t held = 0;

    for (uint32_t i = 0; i < STRIPE_AHEAD_MAX; i++)
        if (order.held[i]) {
            must(order.held[i]->size > 0 && order.held[i]->size <= STRIPE_CHUNK_BYTES_MAX);
            held++;
        }
    must(order.total == UINT64_MAX || order.next + held <= order.total);
}

static bool take(struct way *way)
{
    struct cw_err err;
    size_t used;
    bool ahead;
    int result =
        stripe_order_take(&order, &way->arrived, way->bytes, way->end, &used, &ahead, &err);

    must(used <= way->end);
    memmove(way->bytes, way->bytes + used, way->end - used);
    way->end -= used;
    return result == CW_OK;
}

/* A piece: which way, whether what has its turn is taken then, and how long; then its bytes. */
static size_t read_piece(const uint8_t *data, size_t size, bool *good)
{
    struct way *way = &ways[data[0] % WAYS];
    size_t piece = data[1] < size - 2 ? data[1] : size - 2;

    piece = piece < BUFFER_BYTES - way->end ? piece : BUFFER_BYTES - way->end;
    memcpy(way->bytes + way->end, data + 2, piece);
    way->end += piece;
    *good = take(way);
    while ((data[0] & 0x80) && stripe_order_first(&order)) {
        must(order.next == dropped++);
        stripe_order_drop(&order);
    }
    return 2 + piece;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool good = true;

    read_greeting(data, size);
    read_answer(data, size);
    for (uint32_t i = 0; i < WAYS; i++) {
        ways[i].end = 0;
        ways[i].arrived = (struct stripe_arrived){0};
    }
    stripe_order_init(&order);
    dropped = 0;
    for (size_t at = 0; good && size - at > 2;) {
        at += read_piece(data + at, size - at, &good);
        check_held();
    }
    stripe_order_fini(&order);
    return 0;
}
