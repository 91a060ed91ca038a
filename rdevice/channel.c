#include "rdevice/channel.h"
#include "common/clock.h"
#include "common/decided.h"
#include "rdevice/arena.h"
#include "rdevice/fatal.h"
#include "rdevice/image/system.h"
#include "rdevice/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define TELLS_MAX (4u << 20) /* bytes by which the log grows before the relay is told ... */
#define TELLS_SHARE 64u      /* ... or a rank's part of this part of the memory */
#define NOTED_SEND 16u       /* bytes of payload of what it sends: clock and contents */
#define AWAIT_NS 1000000ull  /* for a piece that is put again: between two looks */
#define PROVIDE_TRIES 100u   /* for what follows, where signals come */
#ifndef PROVIDE_BYTES
#define PROVIDE_BYTES (64ull << 20) /* of the disk at a time */
#endif

_Static_assert(CW_READINGS_MAX <= CW_CHANNEL_NOTE_MAX, "inputs are noted at once");
_Static_assert(PROVIDE_BYTES % CW_CHANNEL_BLOCK_MAX == 0, "whole blocks, of any size");

static void *map_at(void *at, size_t offset, int fd, off_t size)
{
    return system_map((uintptr_t)at + offset, (uint64_t)size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
}

/* All of what this descriptor has, `offset` bytes from where the memory is; the memory itself says
 * where: *start. Returns how much. */
static size_t map(int fd, size_t offset, void **start, uint32_t ranks)
{
    struct stat s;
    void *at;

    if (fd < 0 || fstat(fd, &s) < 0 || s.st_size == 0)
        fatal_exit(CW_REPORT_FATAL,
                   "descriptor %d (" CW_CHANNEL_ENV ") is no channel memory of %u ranks: did the "
                   "program close it? --channel off does without",
                   fd, ranks);
    at = map_at(*start, offset, fd, s.st_size);
    if (system_failed(at) && offset == 0) {
        *start = ARENA_CHANNEL_SANITIZED;
        at = map_at(*start, 0, fd, s.st_size);
    }
    if (system_failed(at))
        fatal_exit(CW_REPORT_FATAL,
                   "mapping the channel memory, %zu bytes: %s; --channel off does "
                   "without",
                   (size_t)s.st_size, strerror((int)-(intptr_t)at));
    system_call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
    return (size_t)s.st_size;
}

static void map_memory(struct channel *c, uint32_t ranks)
{
    void *start = ARENA_CHANNEL;
    size_t size = map(c->fd, 0, &start, ranks);

    c->file_size = c->file_fd >= 0 ? map(c->file_fd, size, &start, ranks) : 0;
    size += c->file_size;
    if (!cw_channel_at(&c->memory, start, size, ranks))
        fatal_exit(CW_REPORT_FATAL, "channel memory of %zu bytes for %u ranks: that cannot be",
                   size, ranks);
    cw_channel_with_file(&c->memory, c->file_size);
}

static bool allocate(int fd, uint64_t at, uint64_t size)
{
    long result = -EINTR;

    for (uint32_t i = 0; i < PROVIDE_TRIES && result == -EINTR; i++)
        result = system_call(SYS_fallocate, fd, 0, at, size);
    return result == 0;
}

/* Whether there are blocks again, where logs are kept: the file gets some more of the disk. That
 * another rank does the same at the same time does no harm. */
static bool provide(struct channel *c)
{
    uint64_t at = cw_channel_provided(&c->memory);
    uint64_t size = c->file_size > at ? c->file_size - at : 0;

    if (size > PROVIDE_BYTES)
        size = PROVIDE_BYTES;
    if (!c->others_keep || size == 0 || !allocate(c->file_fd, at, size))
        return false;
    cw_channel_provide(&c->memory, at + size);
    return true;
}

/* As cw_stream_room and cw_stream_fits. Others may have taken all that the file got, and it gets
 * more: as often as it can. */
static int32_t room_in(struct channel *c, struct cw_stream *stream, uint64_t wanted)
{
    int32_t room = cw_stream_room(stream, wanted);

    while (room < 0 && stream->spent && provide(c))
        room = cw_stream_room(stream, wanted);
    return room;
}

static bool fits_in(struct channel *c, struct cw_stream *stream, uint32_t size)
{
    bool fits = cw_stream_fits(stream, size);

    while (!fits && stream->spent && provide(c))
        fits = cw_stream_fits(stream, size);
    return fits;
}

static void open_streams(struct channel *c)
{
    for (uint32_t other = 0; other < c->memory.ranks; other++) {
        c->out[other] = cw_channel_stream(&c->memory, c->rank, other, c->others_keep);
        if (c->others_keep)
            cw_stream_find_end(&c->out[other]);
        c->found[other] = c->out[other].sum;
    }
}

/* The setup says who shares the memory; it stays where it is. */
static void find_places(struct channel *c, const struct cw_setup *setup)
{
    size_t size = setup->ranks * sizeof(*c->places);

    c->ranks = setup->channel_rank;
    c->far = setup->channel_ranks < setup->ranks;
    c->places = memset(arena_alloc(size), 0xff, size);
    for (uint32_t place = 0; place < setup->channel_ranks; place++)
        c->places[c->ranks[place]] = place;
    c->rank = c->places[setup->process.rank];
}

static void ring_at_bell(const struct channel *c)
{
    cw_channel_set_bell(&c->memory, c->rank, c->bell.fd < 0 ? 0 : c->incarnation);
}

/* Before others can find that it sleeps. */
static void open_bell(struct channel *c, const struct cw_setup *setup, int number)
{
    c->bell.fd = -1;
    c->incarnation = setup->process.incarnation;
    if (c->far)
        bell_open(&c->bell, setup->job, setup->process.rank, setup->process.incarnation, number);
    ring_at_bell(c);
}

void channel_open(struct channel *c, const struct cw_setup *setup, struct inbox *inbox,
                  const struct request_table *requests)
{
    const char *text = getenv(CW_CHANNEL_ENV);
    const char *file = text ? strchr(text, ',') : NULL;
    uint32_t ranks = setup->channel_ranks;

    *c = (struct channel){.on = setup->flags & CW_SETUP_CHANNEL,
                          .fd = text ? atoi(text) : -1,
                          .file_fd = file ? atoi(file + 1) : -1,
                          .imaged = setup->image_servers > 0};
    if (!c->on)
        return;
    map_memory(c, ranks);
    find_places(c, setup);
    open_bell(c, setup, -1);
    c->came_before = cw_channel_come(&c->memory, c->rank);
    c->waits_for = c->awaits = CHANNEL_NOBODY;
    c->keeps = c->others_keep = cw_channel_keeps(&c->memory) && !cw_channel_is_spent(&c->memory);
    c->decisions = cw_channel_decisions(&c->memory, c->rank);
    c->found = arena_alloc(ranks * sizeof(*c->found));
    c->made = memset(arena_alloc(ranks * sizeof(*c->made)), 0, ranks * sizeof(*c->made));
    c->in = arena_alloc(ranks * sizeof(*c->in));
    c->out = arena_alloc(ranks * sizeof(*c->out));
    c->marked = arena_alloc((ranks + 1) * sizeof(*c->marked));
    c->holds = memset(arena_alloc(ranks * sizeof(*c->holds)), 0, ranks * sizeof(*c->holds));
    for (uint32_t other = 0; other < ranks; other++)
        c->in[other] = cw_channel_stream(&c->memory, other, c->rank, c->keeps);
    open_streams(c);
    mailbox_begin(&c->mailbox, inbox, requests, ranks, setup->mailbox_bytes);
    arrivals_begin(&c->arrivals, &c->mailbox);
    if (c->far)
        mailbox_open_far(&c->mailbox);
}

void channel_open_again(struct channel *c, const struct cw_setup *setup)
{
    if (!c->on)
        return;
    map_memory(c, c->memory.ranks);
    open_bell(c, setup, c->bell.fd);
    if (cw_channel_is_spent(&c->memory)) /* since the image was taken */
        c->keeps = c->others_keep = false;
    c->came_before = cw_channel_come(&c->memory, c->rank);
    c->repeated = 0;
    c->waits_for = c->awaits = CHANNEL_NOBODY;
    c->lost = false;
    open_streams(c);
    arrivals_on_restore(&c->arrivals);
}

void channel_welcome(struct channel *c, const struct cw_welcome *welcome)
{
    c->lost = welcome->flags & CW_WELCOME_DECIDED;
    if (c->lost) {
        c->decides = cw_channel_decisions(&c->memory, c->rank);
        cw_stream_find_end(&c->decides);
        c->decides_skip = c->decides.sum.messages;
        cw_channel_set_bell(&c->memory, c->rank,
                            0); /* who waits for a piece does so at its futex */
    } else if (!c->came_before && welcome->flags & CW_WELCOME_REPLAY)
        fatal_exit(CW_REPORT_FATAL,
                   "this rank cannot be started again: the channel memory of its host was lost, "
                   "and with it the "
                   "log of what its ranks did (--channel off keeps the logs at relays)");
}

void channel_mark(struct channel *c, uint64_t polls)
{
    c->marked_polls = polls;
    for (uint32_t other = 0; other < c->memory.ranks; other++)
        c->marked[other] = c->in[other].at;
    c->marked[c->memory.ranks] = c->decisions.at;
}

void channel_trim(struct channel *c, uint64_t polls)
{
    if (!c->keeps || polls == 0 || polls != c->marked_polls)
        return;
    for (uint32_t other = 0; other < c->memory.ranks; other++)
        cw_stream_free(&c->in[other], c->marked[other]);
    cw_stream_free(&c->decisions, c->marked[c->memory.ranks]);
    c->marked_polls = 0;
    c->held_told = 0;
}

static uint64_t held(const struct channel *c)
{
    uint64_t bytes = c->keeps ? cw_stream_held(&c->decisions) : 0;

    for (uint32_t other = 0; c->keeps && other < c->memory.ranks; other++)
        bytes += cw_stream_held(&c->in[other]);
    return bytes;
}

bool channel_grew(const struct channel *c)
{
    uint64_t much = c->memory.size / TELLS_SHARE / c->memory.ranks;

    return c->keeps && held(c) >= c->held_told + (much < TELLS_MAX ? much : TELLS_MAX);
}

struct cw_rank_stats channel_count(struct channel *c)
{
    c->held_told = held(c);
    return (struct cw_rank_stats){.sent = c->sent,
                                  .sent_bytes = c->sent_bytes,
                                  .received = c->mailbox.received,
                                  .received_bytes = c->mailbox.received_bytes,
                                  .unexpected = c->mailbox.unexpected,
                                  .log_bytes = c->held_told};
}

__attribute__((noreturn, cold)) static void broken(const struct channel *c, uint32_t other,
                                                   const char *what)
{
    fatal_exit(CW_REPORT_FATAL, "rank %u broke the channel memory: %s", c->ranks[other], what);
}

/* --- sleeping ------------------------------------------------------------------------------------
 */

/* Returns whether it slept. */
static bool wake(struct channel *c, uint32_t other)
{
    _Atomic uint32_t *futex;
    uint32_t bell;

    if (!cw_channel_wakes(&c->memory, other, &futex))
        return false;
    bell = c->far && c->bell.fd >= 0 ? cw_channel_bell(&c->memory, other) : 0;
    if (bell)
        bell_ring(&c->bell, c->ranks[other], bell);
    else
        system_call(SYS_futex, futex, FUTEX_WAKE, 1);
    return true;
}

static bool has_room(struct channel *c)
{
    return c->waits_for != CHANNEL_NOBODY &&
           cw_stream_room(&c->out[c->waits_for], CW_CHANNEL_PIECE_MAX) >= 0;
}

static bool is_readable(const struct channel *c)
{
    uint32_t other = 0;

    if (c->awaits != CHANNEL_NOBODY)
        return cw_stream_readable(&c->in[c->awaits]);
    while (other < c->memory.ranks && (c->holds[other] || !cw_stream_readable(&c->in[other])))
        other++;
    return other < c->memory.ranks;
}

/* With a log, nothing is taken where there is no room: what is there is no reason to be awake. */
static bool reads(const struct channel *c)
{
    return c->waits_for == CHANNEL_NOBODY || !c->keeps;
}

bool channel_goes_to_sleep(struct channel *c)
{
    c->sleeps = cw_channel_sleep(&c->memory, c->rank);
    if (c->waits_for != CHANNEL_NOBODY)
        cw_stream_wait(&c->out[c->waits_for]);
    return !(reads(c) && is_readable(c)) && !has_room(c);
}

void channel_woke(struct channel *c)
{
    if (atomic_load_explicit(c->sleeps, memory_order_relaxed) == 0)
        c->next_look_ns = cw_clock_ns() + CHANNEL_HELD_LOOK_NS; /* others look: one at a time */
    cw_channel_woke(&c->memory, c->rank);
}

void channel_sleep(struct channel *c, uint64_t ns)
{
    struct timespec t = {.tv_nsec = (long)ns};

    if (channel_goes_to_sleep(c))
        system_call(SYS_futex, c->sleeps, FUTEX_WAIT, 1, &t, NULL, 0);
    channel_woke(c);
}

/* --- what this rank decides ----------------------------------------------------------------------
 */

/* Where there is no room for it, there is no log any more: the device finds that, and says so. */
static void note(struct channel *c, const struct cw_piece *piece, const void *bytes)
{
    struct iovec from = {(void *)bytes, piece->size};

    if (!c->keeps)
        return;
    if (!fits_in(c, &c->decisions, piece->size)) {
        cw_channel_set_spent(&c->memory);
        return;
    }
    cw_stream_put(&c->decisions, piece, &from, 0);
    c->decided++;
}

void channel_note_inputs(struct channel *c, uint64_t polls)
{
    if (inputs_written.used == 0)
        return;
    note(c,
         &(struct cw_piece){
             .type = CW_PIECE_INPUTS, .size = (uint16_t)inputs_written.used, .tag = polls},
         inputs_written.bytes);
    inputs_written.used = 0;
}

void channel_note_send(struct channel *c, const struct cw_send *send)
{
    const uint64_t rest[NOTED_SEND / sizeof(uint64_t)] = {send->clock, send->contents};

    note(c,
         &(struct cw_piece){.type = CW_PIECE_SEND,
                            .size = NOTED_SEND,
                            .tag = send->tag,
                            .total = send->total,
                            .req = send->dst,
                            .more = send->kind},
         rest);
}

/* What is read there this rank has written, if no other one has. */
static void check_decisions(const struct channel *c, bool good)
{
    if (!good || c->decisions.broken)
        fatal_exit(CW_REPORT_FATAL, "what this rank decided cannot be read in channel memory: "
                                    "another rank of its host wrote there");
}

bool channel_next(struct channel *c, struct cw_piece *piece)
{
    bool there = cw_stream_next(&c->decisions, piece);

    check_decisions(c, !there || (piece->type >= CW_PIECE_TOOK &&
                                  (piece->type != CW_PIECE_SEND || piece->size == NOTED_SEND)));
    return there;
}

void channel_repeated(struct channel *c, const struct cw_piece *piece)
{
    cw_stream_take(&c->decisions, piece);
    c->decided++;
}

struct cw_send channel_noted_send(const struct channel *c, const struct cw_piece *piece)
{
    struct cw_send send = {
        .dst = piece->req, .kind = (uint32_t)piece->more, .tag = piece->tag, .total = piece->total};
    uint64_t rest[NOTED_SEND / sizeof(uint64_t)];

    memcpy(rest, cw_stream_payload(&c->decisions), NOTED_SEND);
    send.clock = rest[0];
    send.contents = rest[1];
    check_decisions(c, cw_send_makes_sense(&send));
    return send;
}

const uint8_t *channel_noted_inputs(const struct channel *c)
{
    return cw_stream_payload(&c->decisions);
}

/* Others of the host may still repeat. */
void channel_live(struct channel *c)
{
    cw_stream_find_end(&c->decisions);
    check_decisions(c, true);
    if (c->lost)
        ring_at_bell(c);
    c->lost = false;
}

const char *channel_decided(struct channel *c, const uint8_t *bytes, size_t size)
{
    struct cw_reader r = cw_reader(bytes, size);
    const uint8_t *payload;
    struct cw_piece piece;

    while (r.left > 0 && cw_decision_get(&r, &piece, &payload)) {
        if (c->decides_skip > 0) {
            c->decides_skip--; /* an incarnation after those has written it here */
            continue;
        }
        if (!fits_in(c, &c->decides, piece.size))
            return "there is no room for it in channel memory (--log-memory, --log-disk)";
        cw_stream_put(&c->decides, &piece, &(struct iovec){(void *)payload, piece.size}, 0);
    }
    return r.bad ? "it cannot be read" : NULL;
}

uint32_t channel_count_sent(struct channel *c, uint32_t rank, uint64_t total)
{
    c->sent++;
    c->sent_bytes += total;
    return c->places[rank];
}

uint64_t channel_begin(struct channel *c, uint32_t to, uint64_t total)
{
    uint64_t number = ++c->made[to].messages;

    if (number < c->found[to].messages)
        return total;
    return number == c->found[to].messages && number > 0 ? c->found[to].bytes : UINT64_MAX;
}

void channel_forget(struct channel *c)
{
    if (!c->keeps)
        return;
    c->keeps = false;
    for (uint32_t other = 0; other < c->memory.ranks; other++)
        cw_stream_forget(&c->in[other]);
    cw_stream_forget(&c->decisions);
}

void channel_give_up(struct channel *c)
{
    channel_forget(c);
    c->others_keep = false;
    for (uint32_t other = 0; other < c->memory.ranks; other++)
        c->out[other].keeps = false;
}

/* --- pieces --------------------------------------------------------------------------------------
 */

int32_t channel_put(struct channel *c, uint32_t to, struct cw_piece *head, const struct iovec *from,
                    size_t skip, size_t size)
{
    struct cw_stream *stream = &c->out[to];
    int32_t room = room_in(c, stream, size);

    if (stream->broken)
        broken(c, to, "it took what was not put");
    c->waits_for = room < 0 ? to : CHANNEL_NOBODY;
    if (room < 0)
        return -1;
    head->size = (uint16_t)room;
    head->more = c->decided;
    cw_stream_put(stream, head, from, skip);
    if (to != c->rank)
        wake(c, to);
    return room;
}

/* Those for which there is no room now are told later. */
static void tell_news(struct channel *c)
{
    struct mailbox *m = &c->mailbox;
    uint32_t left = 0;

    for (uint32_t i = 0; i < m->news_count; i++) {
        if (m->news[i].kind != NEWS_SENT) {
            m->news[left++] = m->news[i];
            continue;
        }
        struct cw_piece piece = {.type = CW_PIECE_SENT, .req = m->news[i].req};
        struct cw_stream_sum *made = &c->made[m->news[i].rank];
        uint32_t waits_for = c->waits_for;

        if (made->sents < c->found[m->news[i].rank].sents) {
            made->sents++; /* an earlier incarnation has told it */
            continue;
        }
        if (channel_put(c, m->news[i].rank, &piece, NULL, 0, 0) < 0)
            m->news[left++] = m->news[i];
        else
            made->sents++;
        c->waits_for = waits_for;
    }
    m->news_count = left;
}

/* At most `most` pieces, `again` those that were taken before; returns how many. `*decided`: what
 * their writer had decided when it put the last of them. */
static uint32_t read_pieces(struct channel *c, uint32_t other, uint32_t most, bool again,
                            uint64_t *decided)
{
    struct cw_stream *stream = &c->in[other];
    struct cw_piece piece;
    const char *wrong;
    uint32_t count = 0;

    c->holds[other] = false;
    while (count < most && cw_stream_next(stream, &piece)) {
        c->holds[other] = !mailbox_takes(&c->mailbox, &piece) && !again;
        if (c->holds[other]) {
            c->held = other;
            break;
        }
        wrong = mailbox_piece(&c->mailbox, other, &piece, stream);
        if (wrong)
            broken(c, other, wrong);
        cw_stream_take(stream, &piece);
        *decided = piece.more;
        count++;
    }
    if (stream->broken)
        broken(c, other, "a piece of a length or a type that there is not");
    if (count > 0 && cw_stream_is_awaited(stream))
        wake(c, other);
    return count;
}

static void note_took(struct channel *c, uint64_t polls, uint32_t other, uint64_t count,
                      uint64_t decided)
{
    note(c,
         &(struct cw_piece){
             .type = CW_PIECE_TOOK, .tag = polls, .total = decided, .req = other, .more = count},
         NULL);
}

static bool read_one(struct channel *c, uint32_t other, uint64_t polls)
{
    uint64_t decided = 0;
    uint32_t count;

    if (c->keeps)
        channel_note_inputs(c, polls);
    count = read_pieces(c, other, CHANNEL_PIECES_MAX, false, &decided);
    if (count > 0)
        note_took(c, polls, other, count, decided);
    return count > 0;
}

/* All that has come through the relay, or so much of it. */
static void take_arrivals(struct channel *c, uint64_t count, uint64_t polls)
{
    const char *wrong = NULL;

    c->arrivals_polls = polls;
    while (count-- > 0 && !wrong)
        wrong = arrivals_take(&c->arrivals);
    if (wrong)
        fatal_exit(CW_REPORT_FATAL, "the relay broke the protocol: %s", wrong);
}

static bool read_arrivals(struct channel *c, uint64_t polls)
{
    uint64_t count = arrivals_count(&c->arrivals);

    if (count == 0)
        return false;
    if (c->keeps)
        channel_note_inputs(c, polls);
    take_arrivals(c, count, polls);
    note_took(c, polls, c->memory.ranks, count, 0);
    return true;
}

/* Where there are ranks elsewhere, these may go on: then what is held back is taken all the same,
 * as much again as there is room. */
__attribute__((cold)) static void all_wait(struct channel *c)
{
    struct cw_piece piece = {.total = 0};

    cw_stream_next(&c->in[c->held], &piece);
    c->held_looks = 0;
    if (c->far && mailbox_stretches(&c->mailbox, piece.total))
        return;
    fatal_exit(CW_REPORT_FATAL,
               "messages of %llu bytes wait that rank %u has not received, one of %llu bytes from "
               "rank %u has no room beside them (%llu bytes, an equal part of --memory-max), and "
               "all other ranks wait: receive messages earlier, or raise --memory-max",
               (unsigned long long)(c->mailbox.waiting_bytes + c->mailbox.active_bytes),
               c->ranks[c->rank], (unsigned long long)piece.total, c->ranks[c->held],
               (unsigned long long)c->mailbox.room);
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

/* Others see which of their messages were matched: what decided that, until now, is noted first. */
void channel_tell_news(struct channel *c, uint64_t polls, bool noted)
{
    if (c->mailbox.news_count == 0)
        return;
    if (c->keeps && !noted) {
        channel_note_inputs(c, polls);
        note_took(c, polls, c->rank, 0, 0);
    }
    tell_news(c);
}

bool channel_read(struct channel *c, uint64_t polls)
{
    bool came = false;

    for (uint32_t other = 0; other < c->memory.ranks; other++)
        if (cw_stream_readable(&c->in[other]))
            came |= read_one(c, other, polls);
    came |= read_arrivals(c, polls);
    if (came)
        c->held_looks = 0;
    else if (c->holds[c->held])
        look_at_others(c);
    channel_tell_news(c, polls, came);
    return came;
}

bool channel_lacks(const struct channel *c, const struct cw_piece *piece)
{
    return piece->req == c->memory.ranks && arrivals_count(&c->arrivals) < piece->more;
}

bool channel_next_news(struct channel *c, struct mailbox_news *news)
{
    struct mailbox *m = &c->mailbox;
    uint32_t i = 0;

    while (i < m->news_count && m->news[i].kind == NEWS_SENT)
        i++;
    if (i == m->news_count)
        return false;
    *news = m->news[i];
    m->news_count--;
    memmove(&m->news[i], &m->news[i + 1], (m->news_count - i) * sizeof(*m->news));
    return true;
}

bool channel_repeat_took(struct channel *c, struct cw_piece *piece)
{
    uint64_t taken = piece->more;
    uint64_t decided;

    if (piece->req == c->memory.ranks)
        take_arrivals(c, piece->more, piece->tag);
    else if (piece->req < c->memory.ranks)
        taken = read_pieces(c, piece->req,
                            piece->more < UINT32_MAX ? (uint32_t)piece->more : UINT32_MAX, true,
                            &decided);
    if (piece->req > c->memory.ranks || (taken < piece->more && !c->lost))
        fatal_exit(CW_REPORT_FATAL, "the log in channel memory lacks what this rank had taken from "
                                    "another one of its host");
    c->repeated += taken;
    piece->more -= taken;
    if (piece->more > 0)
        return false;
    if (c->mailbox.news_count > 0)
        tell_news(c);
    return true;
}

void channel_await(struct channel *c, const struct cw_piece *piece)
{
    c->awaits = piece->req;
    channel_sleep(c, AWAIT_NS);
    c->awaits = CHANNEL_NOBODY;
}
