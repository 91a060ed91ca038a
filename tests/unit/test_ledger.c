/* What a relay leaves behind: a copy of the memory, taken at any time, opens as the last step that
 * was done. */
#include "relay/log/ledger.h"
#include "tests/lib/codec.h"
#include "tests/lib/left.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("ledger");

#define STATES 12
#define CELLS_MAX 40 /* that are ever used in any mix */
#define STEPS 400

/* Somebody whose state is kept. */
struct state {
    struct ledger_entry entry;
    uint64_t value;
};

static struct ledger_memory *memory;
static struct ledger ledger;

static void save(const void *owner, void *body)
{
    const struct state *state = owner;

    memcpy(body, &state->value, sizeof(state->value));
}

static void start(void)
{
    memory = left_new();
    CU_ASSERT_FALSE(ledger_open(&ledger, memory, LEFT_REGION));
}

static void finish(void)
{
    left_free(memory);
}

static void enter(struct state *state, uint64_t value)
{
    state->value = value;
    CU_ASSERT_TRUE(ledger_enter(&ledger, &state->entry, LEDGER_RANK, state, save));
}

static void set(struct state *state, uint64_t value)
{
    state->value = value;
    ledger_change(&state->entry);
}

/* The value in a cell, as one who takes over reads it; 0: none. */
static uint64_t value_in(const struct ledger *of, uint32_t cell)
{
    const void *body = ledger_find(of, cell, LEDGER_RANK);
    uint64_t value = 0;

    if (body)
        memcpy(&value, body, sizeof(value));
    return value;
}

/* The same, when all is left as it is now. */
static uint64_t value_left(uint32_t cell)
{
    struct ledger_memory *copy = left_copy(memory);
    struct ledger next;
    uint64_t value;

    CU_ASSERT_TRUE(ledger_open(&next, copy, LEFT_REGION));
    value = value_in(&next, cell);
    left_free(copy);
    return value;
}

/* --- states -------------------------------------------------------------------------------------
 */
TEST(step_counts_and_nothing_before_it)
{
    struct state state;

    start();
    enter(&state, 7);
    CU_ASSERT_EQUAL(value_left(state.entry.cell), 0);
    ledger_step(&ledger);
    CU_ASSERT_EQUAL(value_left(state.entry.cell), 7);
    set(&state, 8);
    CU_ASSERT_EQUAL(value_left(state.entry.cell), 7);
    ledger_step(&ledger);
    CU_ASSERT_EQUAL(value_left(state.entry.cell), 8);
    ledger_leave(&state.entry);
    CU_ASSERT_EQUAL(value_left(state.entry.cell), 8);
    ledger_step(&ledger);
    CU_ASSERT_EQUAL(value_left(state.entry.cell), 0);
    CU_ASSERT_PTR_NULL(state.entry.ledger);
    finish();
}

/* The copies are written, but the number in the header is still that of the step before. */
TEST(step_in_the_middle_is_void)
{
    struct state state[2];

    start();
    enter(&state[0], 1);
    enter(&state[1], 2);
    ledger_step(&ledger);
    for (uint64_t i = 1; i < 6; i++) {
        set(&state[0], 10 * i);
        set(&state[1], 10 * i + 1);
        ledger_step(&ledger);
        memory->header.done--;
        CU_ASSERT_EQUAL(value_left(state[0].entry.cell), i == 1 ? 1 : 10 * (i - 1));
        CU_ASSERT_EQUAL(value_left(state[1].entry.cell), i == 1 ? 2 : 10 * (i - 1) + 1);
        memory->header.done++;
    }
    finish();
}

/* The number of a step that was void is given again: its copies must not count then. */
TEST(void_step_does_not_come_back)
{
    struct state state[2];

    start();
    enter(&state[0], 1);
    enter(&state[1], 2);
    ledger_step(&ledger);
    set(&state[0], 3);
    ledger_step(&ledger);
    memory->header.done--;
    CU_ASSERT_TRUE(ledger_open(&ledger, memory, LEFT_REGION));
    state[1].value = 2;
    ledger_return(&ledger, &state[1].entry, state[1].entry.cell, &state[1], save);
    ledger_step(&ledger);
    ledger_step(&ledger);
    CU_ASSERT_EQUAL(value_left(state[0].entry.cell), 1);
    CU_ASSERT_EQUAL(value_left(state[1].entry.cell), 2);
    finish();
}

TEST(unused_cell_says_nothing)
{
    struct state state;

    start();
    enter(&state, 5);
    ledger_step(&ledger);
    CU_ASSERT_PTR_NULL(ledger_find(&ledger, state.entry.cell, LEDGER_JOB));
    CU_ASSERT_PTR_NULL(ledger_find(&ledger, state.entry.cell + 1, LEDGER_RANK));
    CU_ASSERT_PTR_NULL(ledger_find(&ledger, UINT32_MAX, LEDGER_RANK));
    finish();
}

TEST(without_a_ledger_nothing_is_kept)
{
    struct state state = {0};
    struct ledger_entry to;

    CU_ASSERT_TRUE(ledger_enter(NULL, &state.entry, LEDGER_RANK, &state, save));
    ledger_change(&state.entry);
    CU_ASSERT_FALSE(state.entry.changed);
    memset(&to, 0, sizeof(to));
    ledger_move(&to, &state.entry, &state);
    CU_ASSERT_PTR_NULL(to.ledger);
    ledger_leave(&state.entry);
}

/* --- any mix ------------------------------------------------------------------------------------
 */
struct model {
    struct state state[STATES];
    uint64_t done[CELLS_MAX]; /* by cell: the value as the last step left it */
    uint64_t values;
    uint64_t seed;
};

static void change_some(struct model *m)
{
    struct state *state = &m->state[codec_random_below(&m->seed, STATES)];

    if (!state->entry.ledger)
        enter(state, ++m->values);
    else if (codec_random_below(&m->seed, 4) == 0)
        ledger_leave(&state->entry);
    else
        set(state, ++m->values);
}

static void note_step(struct model *m)
{
    memset(m->done, 0, sizeof(m->done));
    for (int i = 0; i < STATES; i++)
        if (m->state[i].entry.ledger)
            m->done[m->state[i].entry.cell] = m->state[i].value;
}

/* Each cell is as the last step left it. */
static void check_cells(const struct model *m, const struct ledger *of)
{
    bool right = true;

    for (uint32_t cell = 0; cell < CELLS_MAX; cell++)
        right &= value_in(of, cell) == m->done[cell];
    CU_ASSERT_TRUE(right);
}

static void check_copy(const struct model *m)
{
    struct ledger_memory *copy = left_copy(memory);
    struct ledger next;

    CU_ASSERT_TRUE(ledger_open(&next, copy, LEFT_REGION));
    check_cells(m, &next);
    left_free(copy);
}

/* Who comes after it takes up the states that were left, with what they were. */
static void take_over(struct model *m)
{
    CU_ASSERT_TRUE(ledger_open(&ledger, memory, LEFT_REGION));
    memset(m->state, 0, sizeof(m->state));
    for (uint32_t cell = 0, i = 0; cell < CELLS_MAX; cell++) {
        if (m->done[cell] == 0)
            continue;
        CU_ASSERT_TRUE_FATAL(i < STATES);
        m->state[i].value = m->done[cell];
        ledger_return(&ledger, &m->state[i].entry, cell, &m->state[i], save);
        i++;
    }
    if (codec_random_below(&m->seed, 2)) /* else it is killed at once again */
        ledger_step(&ledger);
}

TEST(copy_at_any_time_is_the_last_step)
{
    static struct model m;

    m = (struct model){.seed = 3};
    start();
    for (int i = 0; i < STEPS; i++) {
        for (uint64_t n = codec_random_below(&m.seed, 5); n > 0; n--) {
            change_some(&m);
            check_copy(&m);
        }
        if (codec_random_below(&m.seed, 8) == 0) {
            take_over(&m);
            check_copy(&m);
            continue;
        }
        ledger_step(&ledger);
        note_step(&m);
        check_copy(&m);
    }
    CU_ASSERT_TRUE(memory->header.cells_used <= CELLS_MAX);
    finish();
}

/* --- cells --------------------------------------------------------------------------------------
 */
TEST(cell_is_used_again_after_a_step)
{
    struct state state[3];
    uint32_t first;

    start();
    enter(&state[0], 1);
    enter(&state[1], 2);
    ledger_step(&ledger);
    first = state[0].entry.cell;
    ledger_leave(&state[0].entry);
    enter(&state[2], 3); /* what was left there counts until the step */
    CU_ASSERT_NOT_EQUAL(state[2].entry.cell, first);
    ledger_step(&ledger);
    enter(&state[0], 4);
    CU_ASSERT_EQUAL(state[0].entry.cell, first);
    CU_ASSERT_EQUAL(value_left(first), 0);
    ledger_step(&ledger);
    CU_ASSERT_EQUAL(value_left(first), 4);
    CU_ASSERT_EQUAL(value_left(state[2].entry.cell), 3);
    finish();
}

/* Chains of who had the cell before are not those of who has it now. */
TEST(chains_have_names_of_their_own)
{
    struct state state;
    uint64_t before;
    uint32_t cell;

    start();
    enter(&state, 1);
    before = ledger_chain(&state.entry, 0);
    cell = state.entry.cell;
    CU_ASSERT_NOT_EQUAL(before, 0);
    CU_ASSERT_NOT_EQUAL(before, ledger_chain(&state.entry, 1));
    ledger_step(&ledger);
    ledger_leave(&state.entry);
    ledger_step(&ledger);
    CU_ASSERT_TRUE(ledger_open(&ledger, memory, LEFT_REGION));
    enter(&state, 2);
    CU_ASSERT_EQUAL(state.entry.cell, cell);
    CU_ASSERT_NOT_EQUAL(ledger_chain(&state.entry, 0), before);
    finish();
}

TEST(state_changes_hands)
{
    struct state state[2] = {0};

    start();
    enter(&state[0], 1);
    ledger_step(&ledger);
    set(&state[0], 2);
    state[1].value = 3;
    ledger_move(&state[1].entry, &state[0].entry, &state[1]);
    CU_ASSERT_PTR_NULL(state[0].entry.ledger);
    CU_ASSERT_PTR_NULL(state[0].entry.next);
    CU_ASSERT_EQUAL(value_left(state[1].entry.cell), 1);
    ledger_step(&ledger);
    CU_ASSERT_EQUAL(value_left(state[1].entry.cell), 3);
    finish();
}

/* Each one's page is touched: 64 MiB for this test. */
TEST(all_cells_are_used)
{
    struct state state = {0};
    uint32_t entered = 0;
    struct state more;

    start();
    state.value = 9;
    for (uint32_t i = 0; i < LEDGER_CELLS; i++) {
        ledger.changed = NULL; /* nothing is asked of those before the last */
        entered += ledger_enter(&ledger, &state.entry, LEDGER_RANK, &state, save);
    }
    CU_ASSERT_EQUAL(entered, LEDGER_CELLS);
    CU_ASSERT_FALSE(ledger_enter(&ledger, &more.entry, LEDGER_RANK, &more, save));
    ledger_step(&ledger);
    CU_ASSERT_FALSE(ledger_enter(&ledger, &more.entry, LEDGER_RANK, &more, save));
    CU_ASSERT_EQUAL(value_left(LEDGER_CELLS - 1), 9);
    ledger_drop(&ledger, 77);
    CU_ASSERT_FALSE(ledger_enter(&ledger, &more.entry, LEDGER_RANK, &more, save));
    ledger_step(&ledger);
    enter(&more, 4);
    CU_ASSERT_EQUAL(more.entry.cell, 77);
    finish();
}

/* --- what makes no sense ------------------------------------------------------------------------
 */
static void spoil(int how)
{
    struct ledger_header *h = &memory->header;

    switch (how) {
    case 0:
        h->magic ^= 1;
        break;
    case 1:
        h->version++;
        break;
    case 2:
        h->block_bytes--;
        break;
    case 3:
        h->region_size += 4096;
        break;
    case 4:
        h->carved =
            LEFT_REGION + sizeof(struct relay_block) - LEFT_REGION % sizeof(struct relay_block);
        break;
    case 7:
        h->carved = 4096;
        break;
    case 5:
        h->cells_used = LEDGER_CELLS + 1;
        break;
    default:
        h->extents_used = LEDGER_EXTENTS + 1;
        break;
    }
}

TEST(what_makes_no_sense_begins_anew)
{
    for (int how = 0; how < 8; how++) {
        struct state state;

        start();
        enter(&state, 5);
        ledger_step(&ledger);
        spoil(how);
        CU_ASSERT_FALSE(ledger_open(&ledger, memory, LEFT_REGION));
        CU_ASSERT_EQUAL(memory->header.cells_used, 0);
        CU_ASSERT_EQUAL(memory->header.carved, 0);
        CU_ASSERT_EQUAL(value_in(&ledger, state.entry.cell), 0);
        enter(&state, 6);
        ledger_step(&ledger);
        CU_ASSERT_EQUAL(value_left(state.entry.cell), 6);
        finish();
    }
}
