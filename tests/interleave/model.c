#include "tests/interleave/model.h"

#include <assert.h>
#include <string.h>

#define CELL 4u         /* bytes */
#define CELLS_MAX 4096u /* of a memory */
#define PLACES_MAX 128u /* that are accessed atomically */
#define STORES_MAX 128u /* to one place */

struct view {
    uint8_t seen[PLACES_MAX]; /* number of the store */
    uint16_t clock[MODEL_THREADS];
};

struct store {
    uint64_t value;
    struct view view;
};

struct place {
    uint8_t *at;
    unsigned size;
    unsigned count; /* 0: not accessed yet, what counts is the memory */
    unsigned first; /* that may be seen */
    bool stale;     /* written by an access that was not atomic */
    struct store stores[STORES_MAX];
};

/* When each thread last did what. */
struct cell {
    uint16_t wrote[MODEL_THREADS];
    uint16_t read[MODEL_THREADS];
    uint16_t stored[MODEL_THREADS];
    uint16_t loaded[MODEL_THREADS];
};

struct thread {
    struct view now;
    struct view acquired; /* by an acquire fence that follows */
    struct view released; /* at the last release fence */
    uint64_t past;
};

static uint8_t *memory;
static size_t memory_size;
static struct cell cells[CELLS_MAX];
static uint8_t place_at[CELLS_MAX]; /* 1 + the place; 0: none */
static struct place places[PLACES_MAX];
static unsigned place_count;
static struct thread threads[MODEL_THREADS];
static struct view fences;
static uint16_t cells_touched[CELLS_MAX];
static unsigned touched_count;
static bool touched[CELLS_MAX];
static const char *wrong;

/* --- views ------------------------------------------------------------------------------------ */

static void join(struct view *view, const struct view *other)
{
    for (unsigned i = 0; i < PLACES_MAX; i++)
        view->seen[i] = view->seen[i] > other->seen[i] ? view->seen[i] : other->seen[i];
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        view->clock[i] = view->clock[i] > other->clock[i] ? view->clock[i] : other->clock[i];
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ (word + 1)) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST ||
           order == __ATOMIC_CONSUME;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/* --- races ------------------------------------------------------------------------------------ */

static bool knows(const struct thread *thread, const uint16_t *clocks)
{
    bool all = true;

    for (unsigned i = 0; i < MODEL_THREADS; i++)
        all &= clocks[i] <= thread->now.clock[i];
    return all;
}

static void race(bool ordered, const char *what)
{
    if (!ordered && !wrong)
        wrong = what;
}

static unsigned number_of(const void *at)
{
    return (unsigned)((const uint8_t *)at - memory) / CELL;
}

static struct cell *touch(const void *at)
{
    unsigned number = number_of(at);

    if (!touched[number])
        cells_touched[touched_count++] = (uint16_t)number;
    touched[number] = true;
    return &cells[number];
}

static void atomic_access(unsigned thread, const struct model_op *op, bool loads, bool stores)
{
    struct thread *t = &threads[thread];

    for (unsigned i = 0; i < op->size; i += CELL) {
        struct cell *cell = touch((uint8_t *)op->at + i);

        race(knows(t, cell->wrote), "an atomic access races with a write that is not");
        race(!stores || knows(t, cell->read), "an atomic store races with a read that is not");
        if (loads)
            cell->loaded[thread] = t->now.clock[thread];
        if (stores)
            cell->stored[thread] = t->now.clock[thread];
    }
}

void model_access(unsigned thread, const void *at, size_t size, bool writes)
{
    struct thread *t = &threads[thread];
    const uint8_t *end = (const uint8_t *)at + size;

    for (const uint8_t *byte = at; byte < end; byte += CELL - (byte - memory) % CELL) {
        struct cell *cell = touch(byte);
        unsigned place = place_at[cell - cells];

        race(knows(t, cell->wrote) && knows(t, cell->stored),
             "an access that is not atomic races with a write");
        race(!writes || (knows(t, cell->read) && knows(t, cell->loaded)),
             "a write that is not atomic races with a read");
        *(writes ? &cell->wrote[thread] : &cell->read[thread]) = t->now.clock[thread];
        if (writes && place)
            places[place - 1].stale = true;
    }
}

/* --- places ----------------------------------------------------------------------------------- */

static uint64_t value_at(const struct place *place)
{
    uint64_t value = 0;

    memcpy(&value, place->at, place->size);
    return value;
}

static struct store *append(struct place *place, uint64_t value)
{
    struct store *store = &place->stores[place->count];

    if (place->count == STORES_MAX - 1)
        wrong = "a place is written without end";
    else
        place->count++;
    store->value = value;
    return store;
}

static struct place *new_place(const struct model_op *op)
{
    struct place *place = &places[place_count];

    assert(place_count < PLACES_MAX);
    place->at = op->at;
    place->size = op->size;
    place->count = 0;
    place_count++;
    for (unsigned i = 0; i < op->size; i += CELL)
        place_at[number_of((uint8_t *)op->at + i)] = (uint8_t)place_count;
    return place;
}

/* Accesses to one place are all of one size, and what was written to it otherwise is known to
 * whoever comes, or it was a race. */
static struct place *place_of(const struct model_op *op)
{
    unsigned number = place_at[number_of(op->at)];
    struct place *place = number ? &places[number - 1] : new_place(op);

    assert(place->at == op->at && place->size == op->size);
    if (place->count == 0 || place->stale) {
        memset(&append(place, value_at(place))->view, 0, sizeof(struct view));
        place->first = place->count - 1;
        place->stale = false;
    }
    return place;
}

static unsigned oldest_for(const struct thread *t, const struct place *place)
{
    unsigned seen = t->now.seen[place - places];

    return seen > place->first ? seen : place->first;
}

static void see(struct thread *t, const struct place *place, unsigned number, int order)
{
    const struct store *store = &place->stores[number];

    t->now.seen[place - places] = (uint8_t)number;
    join(&t->acquired, &store->view);
    if (acquires(order))
        join(&t->now, &store->view);
}

/* `goes_on`: what the store before it carried is carried on. */
static void put(struct thread *t, struct place *place, uint64_t value, int order, bool goes_on)
{
    struct store *store = append(place, value);

    t->now.seen[place - places] = (uint8_t)(place->count - 1);
    store->view = releases(order) ? t->now : t->released;
    store->view.seen[place - places] = (uint8_t)(place->count - 1);
    if (goes_on)
        join(&store->view, &store[-1].view);
    memcpy(place->at, &value, place->size);
}

/* --- operations ------------------------------------------------------------------------------- */

void model_use(void *use, size_t size)
{
    assert(size / CELL <= CELLS_MAX);
    memory = use;
    memory_size = size;
    place_count = 0;
    memset(place_at, 0, sizeof(place_at));
}

bool model_covers(const void *at)
{
    return (const uint8_t *)at >= memory && (const uint8_t *)at < memory + memory_size;
}

void model_begin(void)
{
    for (unsigned i = 0; i < touched_count; i++) {
        cells[cells_touched[i]] = (struct cell){{0}, {0}, {0}, {0}};
        touched[cells_touched[i]] = false;
    }
    touched_count = 0;
    memset(threads, 0, sizeof(threads));
    memset(&fences, 0, sizeof(fences));
    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        threads[i].past = i + 1;
        threads[i].now.clock[i] = 1;
    }
    for (unsigned i = 0; i < place_count; i++) {
        places[i].count = 0;
        places[i].stale = false;
    }
    wrong = NULL;
}

/* The older ones of which a comparison sees that they are not as expected. */
static unsigned older_differing(const struct place *place, unsigned oldest, uint64_t expected,
                                unsigned skip, unsigned *number)
{
    unsigned count = 0;

    for (unsigned i = place->count - 1; i-- > oldest;)
        if (place->stores[i].value != expected && count++ == skip)
            *number = i;
    return count;
}

unsigned model_choices(unsigned thread, const struct model_op *op)
{
    const struct place *place;
    unsigned oldest, number;

    if (op->kind != MODEL_LOAD && op->kind != MODEL_COMPARE)
        return 1;
    place = place_of(op);
    oldest = oldest_for(&threads[thread], place);
    return op->kind == MODEL_LOAD ? place->count - oldest
                                  : 1 + older_differing(place, oldest, op->expected, 0, &number);
}

static void fence(struct thread *t, int order)
{
    if (acquires(order))
        join(&t->now, &t->acquired);
    if (order == __ATOMIC_SEQ_CST) {
        join(&t->now, &fences);
        fences = t->now;
    }
    if (releases(order))
        t->released = t->now;
}

static unsigned seen_by(const struct place *place, const struct model_op *op, unsigned choice)
{
    unsigned number = place->count - 1;

    if (choice && op->kind == MODEL_COMPARE)
        older_differing(place, 0, op->expected, choice - 1, &number);
    else
        number -= choice;
    return number;
}

static struct model_result access_place(unsigned thread, const struct model_op *op, unsigned choice)
{
    struct thread *t = &threads[thread];
    struct place *place = place_of(op);
    unsigned number = seen_by(place, op, choice);
    struct model_result result = {.value = place->stores[number].value};
    bool loads = op->kind != MODEL_STORE;
    bool compares = op->kind == MODEL_COMPARE || op->kind == MODEL_SLEEP;
    bool stores = op->kind == MODEL_STORE || op->kind == MODEL_EXCHANGE;

    result.done = compares && result.value == op->expected;
    stores |= op->kind == MODEL_COMPARE && result.done;
    atomic_access(thread, op, loads, stores);
    if (loads)
        see(t, place, number, compares && !result.done ? op->order_failed : op->order);
    if (stores)
        put(t, place, op->value, op->order, loads);
    if (loads)
        t->past = mix(t->past, result.value);
    return result;
}

struct model_result model_do(unsigned thread, const struct model_op *op, unsigned choice)
{
    struct model_result result = {.done = true};

    threads[thread].past = mix(threads[thread].past, op->kind);
    if (op->kind == MODEL_FENCE)
        fence(&threads[thread], op->order);
    else if (op->kind != MODEL_WAKE && op->kind != MODEL_WRITE)
        result = access_place(thread, op, choice);
    if (op->kind != MODEL_LOAD && op->kind != MODEL_SLEEP)
        threads[thread].now.clock[thread]++; /* others may know what was before */
    return result;
}

void model_follow(unsigned thread, unsigned other)
{
    join(&threads[thread].now, &threads[other].now);
}

void model_succeed(unsigned thread)
{
    struct thread *t = &threads[thread];

    t->acquired = t->released = t->now;
}

void model_note(unsigned thread, uint64_t event)
{
    threads[thread].past = mix(threads[thread].past, event);
}

void model_forget(unsigned thread, uint64_t where)
{
    threads[thread].past = where;
}

/* --- what can still matter ---------------------------------------------------------------------
 */

/* What all know that go on. */
static struct view known_to_all(const bool *ended)
{
    struct view floor;

    memset(&floor, 0xff, sizeof(floor));
    for (unsigned t = 0; t < MODEL_THREADS; t++) {
        const struct view *now = &threads[t].now;

        for (unsigned i = 0; i < PLACES_MAX && !ended[t]; i++)
            floor.seen[i] = floor.seen[i] < now->seen[i] ? floor.seen[i] : now->seen[i];
        for (unsigned i = 0; i < MODEL_THREADS && !ended[t]; i++)
            floor.clock[i] = floor.clock[i] < now->clock[i] ? floor.clock[i] : now->clock[i];
    }
    for (unsigned i = 0; i < place_count; i++)
        if (floor.seen[i] < places[i].first)
            floor.seen[i] = (uint8_t)places[i].first;
    return floor;
}

/* How long ago, where all know it: 0xffff. */
static uint16_t age(uint16_t clock, unsigned thread, const struct view *floor)
{
    return clock <= floor->clock[thread] ? 0xffff
                                         : (uint16_t)(threads[thread].now.clock[thread] - clock);
}

static uint64_t mix_view(uint64_t hash, const struct view *view, const struct view *floor)
{
    for (unsigned i = 0; i < place_count; i++) {
        unsigned seen = view->seen[i] > floor->seen[i] ? view->seen[i] : floor->seen[i];

        if (places[i].count > floor->seen[i] + 1u)
            hash = mix(hash, i << 8 | (places[i].count - seen));
    }
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        hash = mix(hash, age(view->clock[i], i, floor));
    return hash;
}

static uint64_t mix_cell(uint64_t hash, unsigned at, const struct view *floor)
{
    const struct cell *cell = &cells[at];
    uint64_t ages;

    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        ages = (uint64_t)age(cell->wrote[i], i, floor) << 48 |
               (uint64_t)age(cell->read[i], i, floor) << 32 |
               (uint64_t)age(cell->stored[i], i, floor) << 16 | age(cell->loaded[i], i, floor);
        if (ages != UINT64_MAX)
            hash = mix(mix(hash, at * MODEL_THREADS + i), ages);
    }
    return hash;
}

static uint64_t mix_stores(uint64_t hash, const struct view *floor)
{
    for (unsigned i = 0; i < place_count; i++)
        for (unsigned n = floor->seen[i]; n < places[i].count; n++) {
            hash = mix(mix(hash, i), places[i].stores[n].value);
            hash = mix_view(hash, &places[i].stores[n].view, floor);
        }
    return hash;
}

static uint64_t mix_thread(uint64_t hash, const struct thread *t, const struct view *floor)
{
    struct view acquired = t->now;

    join(&acquired, &t->acquired);
    hash = mix_view(mix(hash, t->past), &t->now, floor);
    return mix_view(mix_view(hash, &acquired, floor), &t->released, floor);
}

uint64_t model_hash(const bool *ended)
{
    struct view floor = known_to_all(ended);
    uint64_t hash = mix_stores(1, &floor);

    for (unsigned i = 0; i < touched_count; i++)
        hash += mix_cell(0, cells_touched[i], &floor);
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        if (!ended[i])
            hash = mix_thread(mix(hash, i), &threads[i], &floor);
    return mix_view(hash, &fences, &floor);
}

const char *model_wrong(void)
{
    return wrong;
}
