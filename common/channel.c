#include "common/channel.h"
#include "common/copy.h"

#include <assert.h>
#include <string.h>

#define HEAD sizeof(struct cw_piece)
#define SMALL_TOTAL_MAX (64u << 20) /* of blocks, one for each stream; else blocks are smaller */
#define PIECES_MIN 4u               /* that have room in a block */

/* Where a block of a stream begins, and what was put before it. */
struct block_note {
    uint64_t at;
    uint32_t number;
    struct cw_stream_sum sum;
};

/* In the memory: a line of the reader, and two of the writer. */
struct cw_stream_head {
    _Alignas(CW_CHANNEL_LINE) _Atomic uint64_t taken; /* the reader's position */
    _Atomic uint64_t first; /* 1 + number of the first block that is there, and above 32 bits how
                               many were before it; 0: none yet. The writer's at first, then the
                               reader's */
    _Alignas(CW_CHANNEL_LINE) _Atomic uint32_t waits; /* 1: the writer waits for room */
    _Atomic uint32_t noted;                           /* 1 + which note counts; 0: none */
    struct block_note notes[2];                       /* of one writer after the other, by turns */
};

enum place { IN_MEMORY, IN_FILE, PLACES };

/* At the start of the memory. */
struct blocks_head {
    _Alignas(CW_CHANNEL_LINE) _Atomic uint64_t free[PLACES]; /* 1 + the first free block, and a
                                                                count of changes above 32 bits */
    _Alignas(CW_CHANNEL_LINE) _Atomic uint32_t used[PLACES]; /* blocks that were ever taken */
    _Atomic uint32_t spent;                                  /* 1: nothing is kept any more */
    _Atomic uint32_t provided;                               /* blocks that the file has */
};

struct rank_head {
    _Alignas(CW_CHANNEL_LINE) _Atomic uint32_t sleeps; /* 1: it is to be woken there */
    _Atomic uint32_t cpu;                              /* 1 + the processor; 0: not known */
    _Atomic uint32_t came;                             /* 1: a process of it was here */
    _Atomic uint32_t bell;                             /* that wakes it; 0: the futex does */
};

_Static_assert(CW_CHANNEL_PIECE_MAX <= UINT16_MAX && CW_CHANNEL_NOTE_MAX <= UINT16_MAX, "size");
_Static_assert(HEAD == 40, "docs/protocol.md, Channel memory");
_Static_assert(sizeof(struct cw_stream_head) == 192, "docs/protocol.md, Channel memory");
_Static_assert(sizeof(struct blocks_head) == 128, "docs/protocol.md, Channel memory");

/* --- where things are ----------------------------------------------------------------------------
 */

static uint32_t block_bytes(uint32_t ranks)
{
    uint32_t size = CW_CHANNEL_BLOCK_MAX;

    while (size > CW_CHANNEL_BLOCK_MIN && (uint64_t)size * ranks * ranks > SMALL_TOTAL_MAX)
        size /= 2;
    return size;
}

static size_t heads_bytes(uint32_t ranks)
{
    size_t streams = (size_t)ranks * ranks + ranks;
    size_t all = sizeof(struct blocks_head) + (size_t)ranks * CW_CHANNEL_LINE +
                 streams * sizeof(struct cw_stream_head);

    return (all + CW_CHANNEL_BLOCK_MIN - 1) / CW_CHANNEL_BLOCK_MIN * CW_CHANNEL_BLOCK_MIN;
}

size_t cw_channel_bytes(uint32_t ranks, uint64_t log_bytes)
{
    uint32_t block = block_bytes(ranks);
    uint64_t blocks = (uint64_t)ranks * ranks * CW_CHANNEL_AHEAD + log_bytes / block;

    return heads_bytes(ranks) + (size_t)blocks * block;
}

bool cw_channel_at(struct cw_channel *channel, void *memory, size_t size, uint32_t ranks)
{
    uint32_t block = block_bytes(ranks);

    if (ranks == 0 || ranks > CW_CHANNEL_RANKS_MAX || size < cw_channel_bytes(ranks, 0) ||
        (size - heads_bytes(ranks)) / block >= UINT32_MAX)
        return false;
    *channel = (struct cw_channel){.memory = memory,
                                   .size = size,
                                   .ranks = ranks,
                                   .block_bytes = block,
                                   .blocks = (uint32_t)((size - heads_bytes(ranks)) / block)};
    channel->in_memory = channel->blocks;
    return true;
}

static struct blocks_head *blocks_of(const struct cw_channel *channel)
{
    return (struct blocks_head *)channel->memory;
}

uint64_t cw_channel_blocks_of(uint32_t ranks, uint64_t bytes)
{
    return bytes / block_bytes(ranks) * block_bytes(ranks);
}

void cw_channel_with_file(struct cw_channel *channel, uint64_t bytes)
{
    channel->in_memory = channel->blocks - (uint32_t)(bytes / channel->block_bytes);
}

uint64_t cw_channel_provided(const struct cw_channel *channel)
{
    return (uint64_t)channel->block_bytes *
           atomic_load_explicit(&blocks_of(channel)->provided, memory_order_relaxed);
}

void cw_channel_provide(const struct cw_channel *channel, uint64_t bytes)
{
    _Atomic uint32_t *provided = &blocks_of(channel)->provided;
    uint32_t blocks = (uint32_t)(bytes / channel->block_bytes);
    uint32_t before = atomic_load_explicit(provided, memory_order_relaxed);

    while (before < blocks &&
           !atomic_compare_exchange_weak_explicit(provided, &before, blocks, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

bool cw_channel_keeps(const struct cw_channel *channel)
{
    return channel->blocks > channel->ranks * channel->ranks * CW_CHANNEL_AHEAD;
}

bool cw_channel_is_spent(const struct cw_channel *channel)
{
    return atomic_load_explicit(&blocks_of(channel)->spent, memory_order_relaxed);
}

void cw_channel_set_spent(const struct cw_channel *channel)
{
    atomic_store_explicit(&blocks_of(channel)->spent, 1, memory_order_relaxed);
}

uint64_t cw_channel_place_of_block(const struct cw_channel *channel, uint32_t number)
{
    return heads_bytes(channel->ranks) + (uint64_t)number * channel->block_bytes;
}

static uint8_t *block_at(const struct cw_channel *channel, uint32_t number)
{
    return channel->memory + cw_channel_place_of_block(channel, number);
}

static uint64_t place_of_head(const struct cw_channel *channel, size_t index)
{
    return sizeof(struct blocks_head) + (uint64_t)channel->ranks * CW_CHANNEL_LINE +
           index * sizeof(struct cw_stream_head);
}

static size_t index_of_decisions(const struct cw_channel *channel, uint32_t rank)
{
    return (size_t)channel->ranks * channel->ranks + rank;
}

uint64_t cw_channel_place_of_decisions(const struct cw_channel *channel, uint32_t rank)
{
    return place_of_head(channel, index_of_decisions(channel, rank)) +
           offsetof(struct cw_stream_head, first);
}

static struct cw_stream stream_of(const struct cw_channel *channel, size_t index, bool keeps)
{
    return (struct cw_stream){
        .channel = channel,
        .head = (struct cw_stream_head *)(channel->memory + place_of_head(channel, index)),
        .step = CW_CHANNEL_LINE,
        .keeps = keeps};
}

struct cw_stream cw_channel_stream(const struct cw_channel *channel, uint32_t from, uint32_t to,
                                   bool keeps)
{
    return stream_of(channel, (size_t)to * channel->ranks + from, keeps);
}

struct cw_stream cw_channel_decisions(const struct cw_channel *channel, uint32_t rank)
{
    struct cw_stream stream = stream_of(channel, index_of_decisions(channel, rank), true);

    stream.step = CW_CHANNEL_DECISION_STEP;
    return stream;
}

/* --- blocks --------------------------------------------------------------------------------------
 */

/* At the end of a block: 1 + the next one, of its stream or that is free. */
static _Atomic uint32_t *link_of(const struct cw_channel *channel, uint32_t number)
{
    return (_Atomic uint32_t *)(block_at(channel, number) + channel->block_bytes) - 1;
}

/* The one that was freed last: it is warm. A process that dies with it in hand takes it along. */
static bool take_free(const struct cw_channel *channel, enum place place, uint32_t *number)
{
    _Atomic uint64_t *list = &blocks_of(channel)->free[place];
    uint64_t free = atomic_load_explicit(list, memory_order_acquire);

    while ((uint32_t)free) {
        uint32_t first = (uint32_t)free - 1;
        uint64_t next;

        if (first >= channel->blocks)
            return false;
        next = atomic_load_explicit(link_of(channel, first), memory_order_relaxed);
        next |= ((free >> 32) + 1) << 32;
        if (atomic_compare_exchange_weak_explicit(list, &free, next, memory_order_acquire,
                                                  memory_order_acquire)) {
            *number = first;
            return true;
        }
    }
    return false;
}

static bool take_new(const struct cw_channel *channel, enum place place, uint32_t *number)
{
    struct blocks_head *head = blocks_of(channel);
    uint32_t before = place == IN_FILE ? channel->in_memory : 0;
    uint32_t most = channel->in_memory;
    uint32_t used = atomic_load_explicit(&head->used[place], memory_order_relaxed);

    if (place == IN_FILE)
        most = atomic_load_explicit(&head->provided, memory_order_relaxed);
    while (used < most && before + used < channel->blocks)
        if (atomic_compare_exchange_weak_explicit(&head->used[place], &used, used + 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            *number = before + used;
            return true;
        }
    return false;
}

static bool block_take(const struct cw_channel *channel, uint32_t *number)
{
    bool taken = false;

    for (int place = IN_MEMORY; place < PLACES && !taken; place++)
        taken = take_free(channel, place, number) || take_new(channel, place, number);
    return taken;
}

static void block_give(const struct cw_channel *channel, uint32_t number)
{
    enum place place = number < channel->in_memory ? IN_MEMORY : IN_FILE;
    _Atomic uint64_t *list = &blocks_of(channel)->free[place];
    uint64_t free = atomic_load_explicit(list, memory_order_relaxed);
    uint64_t now;

    do {
        atomic_store_explicit(link_of(channel, number), (uint32_t)free, memory_order_relaxed);
        now = (((free >> 32) + 1) << 32) | (number + 1);
    } while (!atomic_compare_exchange_weak_explicit(list, &free, now, memory_order_release,
                                                    memory_order_relaxed));
}

/* --- sleeping ------------------------------------------------------------------------------------
 */

static struct rank_head *rank_of(const struct cw_channel *channel, uint32_t rank)
{
    return (struct rank_head *)(channel->memory + sizeof(struct blocks_head)) + rank;
}

uint64_t cw_channel_place_of_came(uint32_t rank)
{
    return sizeof(struct blocks_head) + (uint64_t)rank * CW_CHANNEL_LINE +
           offsetof(struct rank_head, came);
}

uint64_t cw_channel_place_of_spent(void)
{
    return offsetof(struct blocks_head, spent);
}

bool cw_channel_come(const struct cw_channel *channel, uint32_t rank)
{
    return atomic_exchange_explicit(&rank_of(channel, rank)->came, 1, memory_order_relaxed);
}

static _Atomic uint32_t *sleeps_of(const struct cw_channel *channel, uint32_t rank)
{
    return &rank_of(channel, rank)->sleeps;
}

/* Either this side sees that the other one waits, or the other one sees what this side did: each
 * writes, then reads what the other writes, with a full fence between. */
static bool is_set(_Atomic uint32_t *word)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(word, memory_order_relaxed) &&
           atomic_exchange_explicit(word, 0, memory_order_relaxed);
}

static void set(_Atomic uint32_t *word)
{
    atomic_store_explicit(word, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

_Atomic uint32_t *cw_channel_sleep(const struct cw_channel *channel, uint32_t rank)
{
    set(sleeps_of(channel, rank));
    return sleeps_of(channel, rank);
}

void cw_channel_woke(const struct cw_channel *channel, uint32_t rank)
{
    atomic_store_explicit(sleeps_of(channel, rank), 0, memory_order_relaxed);
}

bool cw_channel_wakes(const struct cw_channel *channel, uint32_t rank, _Atomic uint32_t **futex)
{
    *futex = sleeps_of(channel, rank);
    return is_set(*futex);
}

void cw_channel_set_bell(const struct cw_channel *channel, uint32_t rank, uint32_t number)
{
    atomic_store_explicit(&rank_of(channel, rank)->bell, number, memory_order_relaxed);
}

uint32_t cw_channel_bell(const struct cw_channel *channel, uint32_t rank)
{
    return atomic_load_explicit(&rank_of(channel, rank)->bell, memory_order_relaxed);
}

void cw_channel_runs_on(const struct cw_channel *channel, uint32_t rank, int cpu)
{
    _Atomic uint32_t *word = &rank_of(channel, rank)->cpu;

    if (atomic_load_explicit(word, memory_order_relaxed) != (uint32_t)(cpu + 1))
        atomic_store_explicit(word, (uint32_t)(cpu + 1), memory_order_relaxed);
}

bool cw_channel_shares_cpu(const struct cw_channel *channel, uint32_t rank, int cpu)
{
    uint32_t other = 0;

    while (other < rank && atomic_load_explicit(&rank_of(channel, other)->cpu,
                                                memory_order_relaxed) != (uint32_t)(cpu + 1))
        other++;
    return other < rank;
}

void cw_stream_wait(struct cw_stream *stream)
{
    set(&stream->head->waits);
}

bool cw_stream_is_awaited(const struct cw_stream *stream)
{
    return !stream->keeps && is_set(&stream->head->waits);
}

/* --- pieces --------------------------------------------------------------------------------------
 */

/* Of a piece with so much payload: the piece after it begins at a line, where the two sides are
 * different processes. */
static uint32_t length_of(const struct cw_stream *stream, uint32_t payload)
{
    return (uint32_t)((HEAD + payload + stream->step - 1) & ~(stream->step - 1));
}

static struct cw_piece *piece_of(const struct cw_stream *stream)
{
    return (struct cw_piece *)(stream->block + stream->offset);
}

static uint32_t piece_max(const struct cw_channel *channel)
{
    uint32_t most = channel->block_bytes / PIECES_MIN - CW_CHANNEL_LINE;

    return most < CW_CHANNEL_PIECE_MAX ? most : CW_CHANNEL_PIECE_MAX;
}

static bool is_there(const struct cw_stream *stream)
{
    return atomic_load_explicit(&piece_of(stream)->stamp, memory_order_acquire) == stream->at + 1;
}

static void enter(struct cw_stream *stream, uint32_t number)
{
    stream->at += stream->block ? stream->channel->block_bytes - stream->offset : 0;
    stream->number = number;
    stream->block = block_at(stream->channel, number);
    stream->offset = 0;
}

/* The first block that is there, if one is. */
static bool begin(struct cw_stream *stream)
{
    uint64_t first = atomic_load_explicit(&stream->head->first, memory_order_acquire);

    if (first == 0 || stream->broken)
        return false;
    stream->broken |= (uint32_t)first - 1 >= stream->channel->blocks;
    if (stream->broken)
        return false;
    enter(stream, (uint32_t)first - 1);
    stream->at = (first >> 32) * stream->channel->block_bytes;
    return true;
}

/* Each field is read once: others may change it meanwhile. */
static void copy_head(struct cw_piece *to, const volatile struct cw_piece *from)
{
    to->size = from->size;
    to->type = from->type;
    to->tag = from->tag;
    to->total = from->total;
    to->req = from->req;
    to->more = from->more;
}

/* --- writing -------------------------------------------------------------------------------------
 */

/* For a successor, who looks from there on: of a process that dies here the other note counts. */
static void note_block(struct cw_stream *stream)
{
    struct cw_stream_head *head = stream->head;
    uint32_t turn = (uint32_t)(stream->at / stream->channel->block_bytes) & 1;

    head->notes[turn] =
        (struct block_note){.at = stream->at, .number = stream->number, .sum = stream->sum};
    atomic_store_explicit(&head->noted, turn + 1, memory_order_release);
}

/* A block of which nothing looks like a piece, where a reader looks. */
static bool new_block(struct cw_stream *stream, uint32_t *number)
{
    struct cw_piece *first;

    stream->spent = !block_take(stream->channel, number);
    if (stream->spent)
        return false;
    first = (struct cw_piece *)block_at(stream->channel, *number);
    atomic_store_explicit(&first->stamp, 0, memory_order_relaxed);
    return true;
}

static bool first_block(struct cw_stream *stream)
{
    uint32_t number;

    if (!new_block(stream, &number))
        return false;
    atomic_store_explicit(&stream->head->first, number + 1ull, memory_order_release);
    enter(stream, number);
    note_block(stream);
    return true;
}

/* The last line of a block is for this. */
static bool next_block(struct cw_stream *stream)
{
    struct cw_piece *to = piece_of(stream);
    uint32_t number;

    if (!new_block(stream, &number))
        return false;
    copy_head(to, &(struct cw_piece){.type = CW_PIECE_NEXT, .tag = number});
    atomic_store_explicit(link_of(stream->channel, stream->number), number + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&to->stamp, stream->at + 1, memory_order_release);
    enter(stream, number);
    note_block(stream);
    return true;
}

/* One who is not kept waits for the reader. */
static bool is_ahead(struct cw_stream *stream)
{
    uint64_t most = (uint64_t)stream->channel->block_bytes * (CW_CHANNEL_AHEAD - 1);

    if (stream->keeps || stream->at - stream->seen < most)
        return false;
    stream->seen = atomic_load_explicit(&stream->head->taken, memory_order_acquire);
    stream->broken |= stream->seen > stream->at;
    return stream->broken || stream->at - stream->seen >= most;
}

/* Behind the piece there has to be a line. */
static int64_t left_in_block(const struct cw_stream *stream)
{
    return (int64_t)stream->channel->block_bytes - (int64_t)stream->offset -
           (int64_t)(CW_CHANNEL_LINE + HEAD);
}

bool cw_stream_fits(struct cw_stream *stream, uint32_t size)
{
    if (!stream->block && !first_block(stream))
        return false;
    return left_in_block(stream) >= (int64_t)size || (!is_ahead(stream) && next_block(stream));
}

int32_t cw_stream_room(struct cw_stream *stream, uint64_t wanted)
{
    uint32_t most = piece_max(stream->channel);
    uint32_t least;

    if (wanted < most)
        most = (uint32_t)wanted;
    least = most < CW_CHANNEL_PIECE_MIN ? most : CW_CHANNEL_PIECE_MIN;
    if (!cw_stream_fits(stream, least))
        return -1;
    return left_in_block(stream) < (int64_t)most ? (int32_t)left_in_block(stream) : (int32_t)most;
}

static void gather(uint8_t *to, size_t size, const struct iovec *from, size_t skip)
{
    for (; size > 0; from++) {
        size_t n = from->iov_len > skip ? from->iov_len - skip : 0;

        if (n > size)
            n = size;
        if (n > 0)
            cw_copy(to, (const uint8_t *)from->iov_base + skip, n);
        skip -= skip < from->iov_len ? skip : from->iov_len;
        to += n;
        size -= n;
    }
}

static void count(struct cw_stream_sum *sum, const struct cw_piece *piece)
{
    if (piece->type <= CW_PIECE_AM || piece->type > CW_PIECE_NEXT) {
        sum->messages++;
        sum->bytes = 0;
    }
    if (piece->type <= CW_PIECE_MORE)
        sum->bytes += piece->size;
    sum->sents += piece->type == CW_PIECE_SENT;
}

/* The reader looks at the stamp of the piece after this one next: what lies there from before must
 * not look like one. */
void cw_stream_put(struct cw_stream *stream, const struct cw_piece *piece, const struct iovec *from,
                   size_t skip)
{
    struct cw_piece *to = piece_of(stream);
    uint32_t length = length_of(stream, piece->size);
    struct cw_piece *next = (struct cw_piece *)((uint8_t *)to + length);

    assert(stream->offset + length <= stream->channel->block_bytes - CW_CHANNEL_LINE);
    copy_head(to, piece);
    gather((uint8_t *)to + HEAD, piece->size, from, skip);
    atomic_store_explicit(&next->stamp, 0, memory_order_relaxed);
    atomic_store_explicit(&to->stamp, stream->at + 1, memory_order_release);
    stream->at += length;
    stream->offset += length;
    if (stream->keeps)
        count(&stream->sum, piece);
}

/* --- reading -------------------------------------------------------------------------------------
 */

bool cw_stream_readable(const struct cw_stream *stream)
{
    return stream->block ? is_there(stream)
                         : atomic_load_explicit(&stream->head->first, memory_order_relaxed) != 0;
}

static bool has_room_for(const struct cw_stream *stream, const struct cw_piece *piece)
{
    uint32_t end = stream->channel->block_bytes - CW_CHANNEL_LINE;
    uint32_t most =
        piece->type == CW_PIECE_INPUTS ? CW_CHANNEL_NOTE_MAX : piece_max(stream->channel);

    return piece->type < CW_PIECE_TYPES && piece->size <= most &&
           (piece->type == CW_PIECE_NEXT ? piece->tag < stream->channel->blocks
                                         : stream->offset + length_of(stream, piece->size) <= end);
}

/* From block to block. */
static bool look(struct cw_stream *stream, struct cw_piece *piece)
{
    while ((stream->block || begin(stream)) && is_there(stream)) {
        copy_head(piece, piece_of(stream));
        stream->broken |= !has_room_for(stream, piece);
        if (stream->broken || piece->type != CW_PIECE_NEXT)
            return !stream->broken;
        enter(stream, (uint32_t)piece->tag);
        if (!stream->keeps)
            cw_stream_free(stream, stream->at);
    }
    return false;
}

bool cw_stream_next(struct cw_stream *stream, struct cw_piece *piece)
{
    return look(stream, piece);
}

const uint8_t *cw_stream_payload(const struct cw_stream *stream)
{
    return stream->block + stream->offset + HEAD;
}

static void pass(struct cw_stream *stream, const struct cw_piece *piece)
{
    stream->at += length_of(stream, piece->size);
    stream->offset += length_of(stream, piece->size);
}

void cw_stream_take(struct cw_stream *stream, const struct cw_piece *piece)
{
    pass(stream, piece);
    if (!stream->keeps)
        atomic_store_explicit(&stream->head->taken, stream->at, memory_order_release);
}

/* Where there are logs the block before stays, too: a writer that died when it had gone on to the
 * next one may have noted that one last. */
void cw_stream_free(struct cw_stream *stream, uint64_t before)
{
    uint64_t first = atomic_load_explicit(&stream->head->first, memory_order_relaxed);
    uint64_t end = before / stream->channel->block_bytes;

    while ((first >> 32) + cw_channel_keeps(stream->channel) < end && !stream->broken) {
        uint32_t number = (uint32_t)first - 1;
        uint32_t next =
            number < stream->channel->blocks
                ? atomic_load_explicit(link_of(stream->channel, number), memory_order_relaxed)
                : 0;

        stream->broken |= next == 0 || next > stream->channel->blocks;
        if (stream->broken)
            break;
        first = ((first >> 32) + 1) << 32 | next;
        atomic_store_explicit(&stream->head->first, first, memory_order_relaxed);
        block_give(stream->channel, number); /* which is seen after that */
    }
}

uint64_t cw_stream_held(const struct cw_stream *stream)
{
    uint64_t first = atomic_load_explicit(&stream->head->first, memory_order_relaxed);

    return stream->at - (first >> 32) * stream->channel->block_bytes;
}

void cw_stream_forget(struct cw_stream *stream)
{
    stream->keeps = false;
    cw_stream_free(stream, stream->at);
    atomic_store_explicit(&stream->head->taken, stream->at, memory_order_release);
}

void cw_stream_find_end(struct cw_stream *stream)
{
    const volatile struct cw_stream_head *head = stream->head;
    uint32_t noted = atomic_load_explicit(&head->noted, memory_order_acquire);
    struct block_note note = head->notes[(noted - 1) & 1]; /* read once, as copy_head() does */
    struct cw_piece piece;
    uint32_t before;

    if (noted && note.number < stream->channel->blocks) {
        stream->number = note.number;
        stream->block = block_at(stream->channel, note.number);
        stream->at = note.at;
        stream->offset = 0;
        stream->sum = note.sum;
    }
    for (before = stream->number; look(stream, &piece); before = stream->number) {
        if (stream->number != before)
            note_block(stream);
        count(&stream->sum, &piece);
        pass(stream, &piece);
    }
    if (stream->number != before)
        note_block(stream);
}
