/* Random traffic from fixed seeds: every rank sends argv[1] messages (default
   2000) of random sizes (a few up to 256 KB) and tags to random ranks, itself
   too, without blocking, while it receives by batches of wildcard receives, by
   Iprobe and by Improbe. The order per pair and all contents are checked. */
#include "check.h"

enum { BATCH = 4, WINDOW = 32, MAX_SIZE = 256 << 10, HEADER = 8, TAGS = 1000 };

/* What receives: a batch of wildcard receives (left of which are not taken yet)
   or nothing but probes until the next batch. */
struct receiver {
    MPI_Request requests[BATCH];
    char *buf[BATCH];
    int posted, probes, expected, received;
    uint32_t *next; /* per source, the sequence number to come */
    uint64_t random;
};

struct sender {
    MPI_Request requests[WINDOW];
    char *buf[WINDOW];
    int total, sent;
    uint32_t *next; /* per target */
    uint64_t random;
};

static uint64_t seed_of(int from, int to, uint32_t sequence)
{
    return ((uint64_t)from * 64 + (uint64_t)to) * 1000003 + sequence;
}

static int random_size(uint64_t *random)
{
    uint32_t kind = next_random(random) % 100;

    if (kind < 80)
        return HEADER + (int)(next_random(random) % 500);
    if (kind < 97)
        return HEADER + (int)(next_random(random) % 16000);
    return HEADER + (int)(next_random(random) % (MAX_SIZE - HEADER + 1));
}

/* Draws target, size and tag of the next message. */
static void draw(struct sender *s, int *target, int *size, int *tag)
{
    *target = (int)(next_random(&s->random) % (uint32_t)check_size);
    *size = random_size(&s->random);
    *tag = (int)(next_random(&s->random) % TAGS);
}

/* Sends one message if there is a free slot. */
static void send_one(struct sender *s)
{
    int slot, flag, target, size, tag;
    uint32_t head[2];

    for (slot = 0; slot < WINDOW; slot++) {
        MPI_Test(&s->requests[slot], &flag, MPI_STATUS_IGNORE);
        if (flag)
            break;
    }
    if (slot == WINDOW)
        return;
    draw(s, &target, &size, &tag);
    head[0] = s->next[target]++;
    head[1] = (uint32_t)size << 10 | (uint32_t)tag;
    memcpy(s->buf[slot], head, HEADER);
    fill(s->buf[slot] + HEADER, (size_t)(size - HEADER), seed_of(check_rank, target, head[0]));
    MPI_Isend(s->buf[slot], size, MPI_BYTE, target, tag, MPI_COMM_WORLD, &s->requests[slot]);
    s->sent++;
}

static void check_message(struct receiver *r, const char *buf, const MPI_Status *status)
{
    int source = status->MPI_SOURCE, size;
    uint32_t head[2];

    MPI_Get_count(status, MPI_BYTE, &size);
    memcpy(head, buf, HEADER);
    check_item = r->received++;
    if (!CHECK("source in range", 1, source >= 0 && source < check_size))
        return;
    CHECK("sequence number", r->next[source], head[0]);
    CHECK("size", head[1] >> 10, size);
    CHECK("tag", head[1] & 1023, status->MPI_TAG);
    CHECK_BYTES("contents", buf + HEADER, (size_t)(size - HEADER),
                seed_of(source, check_rank, head[0]));
    r->next[source] = head[0] + 1;
}

/* Receives of a batch match in the order in which they were posted. */
static void take_batch(struct receiver *r)
{
    MPI_Status statuses[BATCH];
    int flag;

    MPI_Testall(BATCH, r->requests, &flag, statuses);
    if (!flag)
        return;
    for (int i = 0; i < BATCH; i++)
        check_message(r, r->buf[i], &statuses[i]);
    r->posted = 0;
    r->probes = (int)(next_random(&r->random) % 8);
}

static void take_probed(struct receiver *r)
{
    int flag, size, matched = next_random(&r->random) % 2;
    MPI_Message message;
    MPI_Status status;

    if (matched)
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
    else
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    if (!flag)
        return;
    MPI_Get_count(&status, MPI_BYTE, &size);
    if (matched)
        MPI_Mrecv(r->buf[0], size, MPI_BYTE, &message, &status);
    else
        MPI_Recv(r->buf[0], size, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
                 &status);
    check_message(r, r->buf[0], &status);
    r->probes--;
}

static void receive_some(struct receiver *r)
{
    if (r->posted) {
        take_batch(r);
    } else if (r->probes > 0 || r->expected - r->received < BATCH) {
        take_probed(r);
    } else {
        for (int i = 0; i < BATCH; i++)
            MPI_Irecv(r->buf[i], MAX_SIZE, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                      &r->requests[i]);
        r->posted = 1;
    }
}

/* How many messages this rank will get: the others draw theirs, too. */
static int count_expected(const struct sender *s)
{
    int *out = calloc((size_t)check_size, sizeof *out);
    int *in = must_alloc((size_t)check_size * sizeof *in), total = 0, target, size, tag;
    struct sender copy = *s;

    for (int i = 0; i < s->total; i++) {
        draw(&copy, &target, &size, &tag);
        out[target]++;
    }
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < check_size; i++)
        total += in[i];
    free(in);
    free(out);
    return total;
}

int main(int argc, char **argv)
{
    struct receiver r = {0};
    struct sender s = {0};
    int flag;

    check_init(&argc, &argv);
    s.total = argc > 1 ? atoi(argv[1]) : 2000;
    s.random = (uint64_t)check_rank * 7919 + 12345;
    r.random = (uint64_t)check_rank * 104729 + 54321;
    s.next = calloc((size_t)check_size, sizeof *s.next);
    r.next = calloc((size_t)check_size, sizeof *r.next);
    for (int i = 0; i < WINDOW; i++) {
        s.buf[i] = must_alloc(MAX_SIZE);
        s.requests[i] = MPI_REQUEST_NULL;
    }
    for (int i = 0; i < BATCH; i++)
        r.buf[i] = must_alloc(MAX_SIZE);
    r.expected = count_expected(&s);
    while (s.sent < s.total || r.received < r.expected) {
        if (s.sent < s.total)
            send_one(&s);
        if (r.received < r.expected)
            receive_some(&r);
    }
    MPI_Waitall(WINDOW, s.requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK("nothing left over", 0, flag);
    for (int i = 0; i < WINDOW; i++)
        free(s.buf[i]);
    for (int i = 0; i < BATCH; i++)
        free(r.buf[i]);
    free(r.next);
    free(s.next);
    return check_finish("storm");
}
