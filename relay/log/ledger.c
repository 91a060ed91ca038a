#include "relay/log/ledger.h"
#include "relay/log/commit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static bool makes_sense(const struct ledger_header *header, uint64_t region_size)
{
    return header->magic == LEDGER_MAGIC && header->version == LEDGER_VERSION &&
           header->block_bytes == sizeof(struct relay_block) &&
           header->region_size == region_size && header->carved <= region_size &&
           header->carved % sizeof(struct relay_block) == 0 && header->cells_used <= LEDGER_CELLS &&
           header->extents_used <= LEDGER_EXTENTS;
}

const struct ledger_copy *ledger_copy_of(const struct ledger *ledger, uint32_t cell)
{
    const struct ledger_copy *copy = ledger->memory->cells[cell].copy;
    uint64_t done = ledger->memory->header.done;
    bool valid[2] = {copy[0].step > 0 && copy[0].step <= done,
                     copy[1].step > 0 && copy[1].step <= done};

    if (valid[0] && valid[1])
        return &copy[copy[1].step > copy[0].step];
    return valid[0] ? &copy[0] : valid[1] ? &copy[1] : NULL;
}

/* The one to be written: that of this step already, or else the older one. */
static struct ledger_copy *to_write(const struct ledger *ledger, uint32_t cell)
{
    struct ledger_copy *copy = ledger->memory->cells[cell].copy;

    if (copy[0].step == ledger->step || copy[1].step == ledger->step)
        return &copy[copy[1].step == ledger->step];
    return &copy[copy[1].step < copy[0].step];
}

/* The next step has the number of one that was not done. */
static void drop_void(struct ledger *ledger)
{
    for (uint32_t cell = 0; cell < ledger->memory->header.cells_used; cell++)
        for (int i = 0; i < 2; i++) {
            struct ledger_copy *copy = &ledger->memory->cells[cell].copy[i];

            if (copy->step > ledger->memory->header.done)
                copy->step = 0;
        }
}

bool ledger_open(struct ledger *ledger, struct ledger_memory *memory, uint64_t region_size)
{
    bool left = makes_sense(&memory->header, region_size);

    *ledger = (struct ledger){.memory = memory, .dropped = LEDGER_CELLS};
    if (left)
        drop_void(ledger);
    else
        memory->header = (struct ledger_header){.magic = LEDGER_MAGIC,
                                                .version = LEDGER_VERSION,
                                                .block_bytes = sizeof(struct relay_block),
                                                .region_size = region_size};
    ledger->step = memory->header.done + 1;
    return left;
}

/* --- states --------------------------------------------------------------------------------------
 */

static bool is_free(const struct ledger *ledger, uint32_t cell)
{
    const struct ledger_copy *copy = ledger->memory->cells[cell].copy;
    const struct ledger_copy *now = ledger_copy_of(ledger, cell);

    return (!now || now->kind == LEDGER_FREE) &&
           (copy[0].step != ledger->step || copy[0].kind == LEDGER_FREE) &&
           (copy[1].step != ledger->step || copy[1].kind == LEDGER_FREE);
}

static bool find_free(struct ledger *ledger, uint32_t *cell)
{
    struct ledger_header *header = &ledger->memory->header;

    while (ledger->free_hint < header->cells_used && !is_free(ledger, ledger->free_hint))
        ledger->free_hint++;
    if (ledger->free_hint == LEDGER_CELLS)
        return false;
    *cell = ledger->free_hint++;
    if (*cell < header->cells_used)
        return true;
    memset(&ledger->memory->cells[*cell], 0, sizeof(ledger->memory->cells[*cell]));
    header->cells_used = *cell + 1;
    return true;
}

static void write_copy(struct ledger *ledger, uint32_t cell, uint32_t kind, uint32_t generation,
                       const struct ledger_entry *entry)
{
    struct ledger_copy *copy = to_write(ledger, cell);

    copy->step = ledger->step;
    copy->kind = kind;
    copy->generation = generation;
    memset(copy->body, 0, sizeof(copy->body));
    if (entry)
        entry->save(entry->owner, copy->body);
    if (ledger->commit)
        commit_cell(ledger->commit, cell);
}

void ledger_put(struct ledger *ledger, uint32_t cell, uint32_t kind, uint32_t generation,
                const void *body)
{
    struct ledger_header *header = &ledger->memory->header;
    struct ledger_copy *copy;

    if (cell >= header->cells_used) {
        memset(&ledger->memory->cells[header->cells_used], 0,
               (cell + 1 - header->cells_used) * sizeof(struct ledger_cell));
        header->cells_used = cell + 1;
    }
    copy = to_write(ledger, cell);
    *copy = (struct ledger_copy){.step = ledger->step, .kind = kind, .generation = generation};
    if (body)
        memcpy(copy->body, body, LEDGER_BODY);
}

bool ledger_enter(struct ledger *ledger, struct ledger_entry *entry, enum ledger_kind kind,
                  const void *owner, void (*save)(const void *owner, void *body))
{
    uint32_t cell;

    if (!ledger)
        return true;
    if (!find_free(ledger, &cell))
        return false;
    *entry = (struct ledger_entry){.ledger = ledger,
                                   .owner = owner,
                                   .save = save,
                                   .cell = cell,
                                   .generation = ++ledger->memory->header.generation,
                                   .kind = kind};
    write_copy(ledger, cell, kind, entry->generation, NULL);
    ledger_change(entry);
    return true;
}

void ledger_return(struct ledger *ledger, struct ledger_entry *entry, uint32_t cell,
                   const void *owner, void (*save)(const void *owner, void *body))
{
    const struct ledger_copy *copy = ledger_copy_of(ledger, cell);

    *entry = (struct ledger_entry){.ledger = ledger,
                                   .owner = owner,
                                   .save = save,
                                   .cell = cell,
                                   .generation = copy->generation,
                                   .kind = copy->kind};
    ledger_change(entry);
}

void ledger_drop(struct ledger *ledger, uint32_t cell)
{
    write_copy(ledger, cell, LEDGER_FREE, 0, NULL);
    if (ledger->commit) /* else what has ended might come back, for long */
        commit_want(ledger->commit);
    if (cell < ledger->dropped)
        ledger->dropped = cell;
}

/* It has not changed. */
static void unchange(struct ledger_entry *entry)
{
    struct ledger_entry **at = &entry->ledger->changed;

    if (!entry->changed)
        return;
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    entry->changed = false;
}

void ledger_leave(struct ledger_entry *entry)
{
    if (!entry->ledger)
        return;
    unchange(entry);
    ledger_drop(entry->ledger, entry->cell);
    *entry = (struct ledger_entry){0};
}

void ledger_move(struct ledger_entry *entry, struct ledger_entry *from, const void *owner)
{
    if (!from->ledger)
        return;
    unchange(from);
    *entry = *from;
    entry->owner = owner;
    *from = (struct ledger_entry){0};
    ledger_change(entry);
}

void ledger_step(struct ledger *ledger)
{
    struct ledger_entry *entry = ledger->changed;

    for (; entry; entry = entry->next) {
        write_copy(ledger, entry->cell, entry->kind, entry->generation, entry);
        entry->changed = false;
    }
    ledger->changed = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)&ledger->memory->header.done = ledger->step++;
    atomic_signal_fence(memory_order_seq_cst);
    if (ledger->dropped < ledger->free_hint)
        ledger->free_hint = ledger->dropped;
    ledger->dropped = LEDGER_CELLS;
}

const void *ledger_find(const struct ledger *ledger, uint32_t cell, enum ledger_kind kind)
{
    const struct ledger_copy *copy =
        cell < ledger->memory->header.cells_used ? ledger_copy_of(ledger, cell) : NULL;

    return copy && copy->kind == (uint32_t)kind ? copy->body : NULL;
}

/* --- chains --------------------------------------------------------------------------------------
 */

static int compare(const void *a, const void *b)
{
    const struct ledger_piece *x = a;
    const struct ledger_piece *y = b;

    if (x->chain != y->chain)
        return x->chain < y->chain ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* A segment that is in memory and on disk is one piece. */
static void merge(struct ledger *ledger)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ledger->left_count; i++) {
        struct ledger_piece *piece = &ledger->left[i];
        struct ledger_piece *last = count ? &ledger->left[count - 1] : NULL;

        if (!last || compare(last, piece) != 0) {
            ledger->left[count++] = *piece;
            continue;
        }
        if (piece->block) {
            last->block = piece->block;
            last->used = piece->used;
        } else {
            last->extent = piece->extent;
            last->sum = piece->sum;
        }
    }
    ledger->left_count = count;
}

static void add(struct ledger *ledger, const struct ledger_piece *piece)
{
    ledger->left[ledger->left_count++] = *piece;
}

static void add_extents(struct ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->memory->header.extents_used; i++) {
        const struct ledger_extent *extent = &ledger->memory->extents[i];

        if (extent->chain)
            add(ledger, &(struct ledger_piece){.chain = extent->chain,
                                               .number = extent->number,
                                               .used = extent->used,
                                               .extent = i,
                                               .sum = extent->sum});
    }
}

int ledger_find_left(struct ledger *ledger, struct supply *supply)
{
    const struct ledger_header *header = &ledger->memory->header;
    size_t most = supply_return(supply, header->carved) + header->extents_used;
    struct relay_block *block;

    ledger->left = malloc((most + 1) * sizeof(*ledger->left));
    if (!ledger->left)
        return CW_ENOMEM;
    for (uint64_t i = 0; (block = supply_at(supply, i)); i++) {
        if (block->mark.chain)
            add(ledger, &(struct ledger_piece){.chain = block->mark.chain,
                                               .number = block->mark.number,
                                               .used = block->mark.used,
                                               .block = block,
                                               .extent = LEDGER_EXTENTS});
        else
            supply_give(supply, block);
    }
    add_extents(ledger);
    qsort(ledger->left, ledger->left_count, sizeof(*ledger->left), compare);
    merge(ledger);
    return CW_OK;
}

struct ledger_piece *ledger_left(struct ledger *ledger, uint64_t chain, uint32_t number)
{
    const struct ledger_piece key = {.chain = chain, .number = number};

    return bsearch(&key, ledger->left, ledger->left_count, sizeof(key), compare);
}

void ledger_forget_left(struct ledger *ledger, struct supply *supply)
{
    for (uint32_t i = 0; i < ledger->left_count; i++) {
        const struct ledger_piece *piece = &ledger->left[i];

        if (piece->taken)
            continue;
        if (piece->extent != LEDGER_EXTENTS)
            ledger->memory->extents[piece->extent].chain = 0;
        if (piece->block) {
            piece->block->mark.chain = 0;
            supply_give(supply, piece->block);
        }
    }
    free(ledger->left);
    ledger->left = NULL;
    ledger->left_count = 0;
}
