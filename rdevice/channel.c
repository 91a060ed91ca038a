#include "rdevice/channel.h"
#include "common/clock.h"
#include "rdevice/arena.h"
#include "rdevice/fatal.h"
#include "rdevice/image/system.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

static void *map_memory(uint32_t ranks)
{
    const char *text = getenv(CW_CHANNEL_ENV);
    size_t size = cw_channel_bytes(ranks);
    int fd = text ? atoi(text) : -1;
    struct stat s;
    void *at;

    if (fd < 0 || fstat(fd, &s) < 0 || s.st_size != (off_t)size)
        fatal_exit(CW_REPORT_FATAL,
                   "descriptor %d (" CW_CHANNEL_ENV ") is no channel memory of %u ranks: did the "
                   "program close it before MPI_Init? --channel off does without",
                   fd, ranks);
    at = system_map((uintptr_t)ARENA_CHANNEL, size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    if (system_failed(at))
        fatal_exit(CW_REPORT_FATAL,
                   "mapping the channel memory, %zu bytes: %s; --channel off does "
                   "without",
                   size, strerror((int)-(intptr_t)at));
    system_close(fd);
    return at;
}

void channel_open(struct channel *c, const struct cw_setup *setup, struct inbox *inbox,
                  const struct request_table *requests)
{
    uint32_t ranks = setup->ranks;

    *c = (struct channel){.on = setup->flags & CW_SETUP_CHANNEL};
    if (!c->on)
        return;
    if (ranks > CW_CHANNEL_RANKS_MAX)
        fatal_exit(CW_REPORT_FATAL, "channel memory for %u ranks: at most %u share one", ranks,
                   CW_CHANNEL_RANKS_MAX);
    c->memory = cw_channel_at(map_memory(ranks), ranks);
    c->rank = c->waits_for = setup->process.rank;
    c->in = arena_alloc(ranks * sizeof(*c->in));
    c->out = arena_alloc(ranks * sizeof(*c->out));
    for (uint32_t other = 0; other < ranks; other++) {
        c->in[other] = cw_channel_stream(&c->memory, other, c->rank);
        c->out[other] = cw_channel_stream(&c->memory, c->rank, other);
    }
    c->holds = memset(arena_alloc(ranks * sizeof(*c->holds)), 0, ranks * sizeof(*c->holds));
    mailbox_begin(&c->mailbox, inbox, requests, ranks, setup->mailbox_bytes);
}

__attribute__((noreturn, cold)) static void broken(uint32_t other, const char *what)
{
    fatal_exit(CW_REPORT_FATAL, "rank %u broke the channel memory: %s", other, what);
}

/* --- sleeping ------------------------------------------------------------------------------------
 */

/* Returns whether it slept. */
static bool wake(struct channel *c, uint32_t other)
{
    if (!cw_channel_wakes(&c->memory, other))
        return false;
    system_call(SYS_futex, c->memory.memory + (size_t)other * CW_CHANNEL_LINE, FUTEX_WAKE, 1);
    return true;
}

static bool has_room(struct channel *c)
{
    return c->waits_for != c->rank &&
           cw_stream_room(&c->out[c->waits_for], CW_CHANNEL_PIECE_MAX) >= 0;
}

static bool is_readable(const struct channel *c)
{
    uint32_t other = 0;

    while (other < c->memory.ranks && (c->holds[other] || !cw_stream_readable(&c->in[other])))
        other++;
    return other < c->memory.ranks;
}

void channel_sleep(struct channel *c, uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};
    _Atomic uint32_t *futex = cw_channel_sleep(&c->memory, c->rank);

    if (c->waits_for != c->rank)
        cw_stream_wait(&c->out[c->waits_for]);
    if (!is_readable(c) && !has_room(c))
        system_call(SYS_futex, futex, FUTEX_WAIT, 1, &t, NULL, 0);
    if (atomic_load_explicit(futex, memory_order_relaxed) == 0)
        c->next_look_ns = cw_clock_ns() + CHANNEL_HELD_LOOK_NS; /* others look: one at a time */
    cw_channel_woke(&c->memory, c->rank);
}

/* --- pieces --------------------------------------------------------------------------------------
 */

int32_t channel_put(struct channel *c, uint32_t to, struct cw_piece *head, const struct iovec *from,
                    size_t skip, size_t size)
{
    struct cw_stream *stream = &c->out[to];
    int32_t room = cw_stream_room(stream, size);

    if (stream->broken)
        broken(to, "it took what was not put");
    c->waits_for = room < 0 ? to : c->rank;
    if (room < 0)
        return -1;
    head->size = (uint32_t)room;
    cw_stream_put(stream, head, from, skip);
    if (to != c->rank)
        wake(c, to);
    return room;
}

/* Those for which there is no room now are told later. */
static void tell_matched(struct channel *c)
{
    struct mailbox *m = &c->mailbox;
    uint32_t left = 0;

    for (uint32_t i = 0; i < m->matched_count; i++) {
        struct cw_piece piece = {.type = CW_PIECE_SENT, .req = m->matched[i].req};
        uint32_t waits_for = c->waits_for;

        if (channel_put(c, m->matched[i].rank, &piece, NULL, 0, 0) < 0)
            m->matched[left++] = m->matched[i];
        c->waits_for = waits_for;
    }
    m->matched_count = left;
}

static bool read_one(struct channel *c, uint32_t other)
{
    struct cw_stream *stream = &c->in[other];
    struct cw_piece piece;
    const char *wrong;
    uint32_t count = 0;

    c->holds[other] = false;
    while (count < CHANNEL_PIECES_MAX && cw_stream_next(stream, &piece)) {
        c->holds[other] = !mailbox_takes(&c->mailbox, &piece);
        if (c->holds[other]) {
            c->held = other;
            break;
        }
        wrong = mailbox_piece(&c->mailbox, other, &piece, stream);
        if (wrong)
            broken(other, wrong);
        cw_stream_take(stream, &piece);
        count++;
    }
    if (stream->broken)
        broken(other, "a piece of a length or a type that there is not");
    if (count > 0 && cw_stream_is_awaited(stream))
        wake(c, other);
    return count > 0;
}

__attribute__((noreturn, cold)) static void all_wait(const struct channel *c)
{
    struct cw_piece piece = {.total = 0};

    cw_stream_next(&c->in[c->held], &piece);
    fatal_exit(CW_REPORT_FATAL,
               "messages of %llu bytes wait that rank %u has not received, one of %llu bytes from "
               "rank %u has no room beside them (%llu bytes, an equal part of --memory-max), and "
               "all other ranks wait: receive messages earlier, or raise --memory-max",
               (unsigned long long)(c->mailbox.waiting_bytes + c->mailbox.active_bytes), c->rank,
               (unsigned long long)piece.total, c->held, (unsigned long long)c->mailbox.room);
}

/* Whoever slept is woken, and sleeps again before the next look, unless it goes on. */
static void look_at_others(struct channel *c)
{
    uint64_t now = cw_clock_ns();
    bool all = true;

    if (now < c->next_look_ns)
        return;
    c->next_look_ns = now + CHANNEL_HELD_LOOK_NS;
    for (uint32_t other = 0; other < c->memory.ranks; other++)
        if (other != c->rank)
            all &= wake(c, other);
    c->held_looks = all ? c->held_looks + 1 : 0;
    if (c->held_looks > CHANNEL_HELD_LOOKS_MAX)
        all_wait(c);
}

bool channel_read(struct channel *c)
{
    bool came = false;

    for (uint32_t other = 0; other < c->memory.ranks; other++)
        if (cw_stream_readable(&c->in[other]))
            came |= read_one(c, other);
    if (came)
        c->held_looks = 0;
    else if (c->holds[c->held])
        look_at_others(c);
    if (c->mailbox.matched_count > 0)
        tell_matched(c);
    return came;
}
