#include "common/match.h"
#include "common/err.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MIN 16u
#define TABLE_MAX (1u << 31) /* beyond it only the chains grow */

/* All entries of one class whose tags agree under its mask, in order. */
struct match_key {
    struct match_key *next; /* in its bucket, or in the free list */
    struct match_links links;
    uint64_t tag; /* masked */
    uint8_t class;
};

static struct match_posted *posted_of(struct match_link *link)
{
    return (struct match_posted *)link;
}

static uint32_t hash(uint64_t tag, uint8_t class)
{
    uint64_t h = (tag + class + 1) * 0x9e3779b97f4a7c15ull;

    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ull;
    return (uint32_t)(h >> 32);
}

static struct match_key **bucket_of(const struct match_table *table, uint64_t tag, uint8_t class)
{
    return &table->buckets[hash(tag, class) & (table->size - 1)];
}

static struct match_key *key_find(const struct match_table *table, uint64_t tag, uint8_t class)
{
    struct match_key *key;

    if (table->used == 0)
        return NULL;
    for (key = *bucket_of(table, tag, class); key; key = key->next)
        if (key->tag == tag && key->class == class)
            return key;
    return NULL;
}

static int table_grow(struct match_index *ix, struct match_table *table)
{
    struct match_table grown = {.size = table->size ? table->size * 2 : TABLE_MIN,
                                .used = table->used};
    size_t bytes = grown.size * sizeof(*grown.buckets);

    grown.buckets = ix->memory->alloc(ix->owner, bytes);
    if (!grown.buckets)
        return CW_ENOMEM;
    memset(grown.buckets, 0, bytes);
    for (uint32_t i = 0; i < table->size; i++) {
        while (table->buckets[i]) {
            struct match_key *key = table->buckets[i];
            struct match_key **to = bucket_of(&grown, key->tag, key->class);

            table->buckets[i] = key->next;
            key->next = *to;
            *to = key;
        }
    }
    ix->memory->free(ix->owner, table->buckets, table->size * sizeof(*table->buckets));
    *table = grown;
    return CW_OK;
}

static struct match_key *key_add(struct match_index *ix, struct match_table *table, uint64_t tag,
                                 uint8_t class)
{
    struct match_key *key = ix->free_keys;
    struct match_key **bucket;

    if (table->used >= table->size && table->size < TABLE_MAX && table_grow(ix, table) < 0)
        return NULL;
    if (key)
        ix->free_keys = key->next;
    else if (!(key = ix->memory->alloc(ix->owner, sizeof(*key))))
        return NULL;
    bucket = bucket_of(table, tag, class);
    *key = (struct match_key){.next = *bucket, .tag = tag, .class = class};
    TAILQ_INIT(&key->links);
    *bucket = key;
    table->used++;
    return key;
}

static void key_remove(struct match_index *ix, struct match_table *table, struct match_key *key)
{
    struct match_key **at = bucket_of(table, key->tag, key->class);

    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
    table->used--;
    key->next = ix->free_keys;
    ix->free_keys = key;
}

static int link_add(struct match_index *ix, struct match_table *table, struct match_link *link,
                    uint64_t tag, uint8_t class)
{
    struct match_key *key = key_find(table, tag, class);

    if (!key && !(key = key_add(ix, table, tag, class)))
        return CW_ENOMEM;
    link->key = key;
    TAILQ_INSERT_TAIL(&key->links, link, others);
    return CW_OK;
}

static void link_remove(struct match_index *ix, struct match_table *table, struct match_link *link)
{
    struct match_key *key = link->key;

    TAILQ_REMOVE(&key->links, link, others);
    if (TAILQ_EMPTY(&key->links))
        key_remove(ix, table, key);
}

void match_init(struct match_index *ix, const struct match_memory *memory, void *owner)
{
    *ix = (struct match_index){.memory = memory, .owner = owner};
    TAILQ_INIT(&ix->scanned);
    TAILQ_INIT(&ix->all);
}

/* MATCH_CLASSES when the mask has none. */
static uint8_t class_find(const struct match_index *ix, uint64_t mask)
{
    for (uint8_t class = 0; class < ix->classes; class ++)
        if (ix->masks[class] == mask)
            return class;
    return MATCH_CLASSES;
}

bool match_takes(const struct match_index *ix, uint64_t mask)
{
    return ix->classes < MATCH_CLASSES || class_find(ix, mask) < MATCH_CLASSES;
}

/* The class of a mask; a new class takes in the messages that wait already. Returns
 * MATCH_CLASSES when there is no room for another (or no memory): then scan. */
static uint8_t class_of(struct match_index *ix, uint64_t mask)
{
    uint8_t class = class_find(ix, mask);
    struct match_waiting *m;

    if (class < MATCH_CLASSES || ix->classes == MATCH_CLASSES)
        return class;
    class = (uint8_t)ix->classes;
    TAILQ_FOREACH (m, &ix->all, in_order) {
        if (link_add(ix, &ix->waiting_keys, &m->links[class], m->tag & mask, class) == CW_OK)
            continue;
        while ((m = TAILQ_PREV(m, match_waitings, in_order)))
            link_remove(ix, &ix->waiting_keys, &m->links[class]);
        return MATCH_CLASSES;
    }
    ix->masks[class] = mask;
    ix->classes++;
    return class;
}

int match_post(struct match_index *ix, struct match_posted *posted)
{
    posted->order = ++ix->order;
    posted->class = class_of(ix, posted->mask);
    if (posted->class == MATCH_CLASSES) {
        TAILQ_INSERT_TAIL(&ix->scanned, &posted->link, others);
        return CW_OK;
    }
    if (link_add(ix, &ix->posted_keys, &posted->link, posted->tag & posted->mask, posted->class) <
        0)
        return CW_ENOMEM;
    ix->posted_in[posted->class]++;
    return CW_OK;
}

void match_unpost(struct match_index *ix, struct match_posted *posted)
{
    if (posted->class == MATCH_CLASSES) {
        TAILQ_REMOVE(&ix->scanned, &posted->link, others);
        return;
    }
    link_remove(ix, &ix->posted_keys, &posted->link);
    ix->posted_in[posted->class]--;
}

static void table_fini(struct match_index *ix, struct match_table *table)
{
    assert(table->used == 0);
    ix->memory->free(ix->owner, table->buckets, table->size * sizeof(*table->buckets));
    *table = (struct match_table){0};
}

void match_fini(struct match_index *ix, void (*release)(void *ctx, struct match_posted *posted),
                void *ctx)
{
    for (uint32_t i = 0; i < ix->posted_keys.size; i++)
        while (ix->posted_keys.buckets[i]) {
            struct match_posted *posted =
                posted_of(TAILQ_FIRST(&ix->posted_keys.buckets[i]->links));

            match_unpost(ix, posted);
            release(ctx, posted);
        }
    while (!TAILQ_EMPTY(&ix->scanned)) {
        struct match_posted *posted = posted_of(TAILQ_FIRST(&ix->scanned));

        match_unpost(ix, posted);
        release(ctx, posted);
    }
    table_fini(ix, &ix->posted_keys);
    table_fini(ix, &ix->waiting_keys);
    while (ix->free_keys) {
        struct match_key *key = ix->free_keys;

        ix->free_keys = key->next;
        ix->memory->free(ix->owner, key, sizeof(*key));
    }
}

struct match_posted *match_find_posted(struct match_index *ix, uint64_t tag)
{
    struct match_posted *best = NULL;
    struct match_link *l;

    for (uint8_t class = 0; class < ix->classes; class ++) {
        struct match_key *key;
        struct match_posted *posted;

        if (ix->posted_in[class] == 0)
            continue;
        key = key_find(&ix->posted_keys, tag & ix->masks[class], class);
        if (!key)
            continue;
        posted = posted_of(TAILQ_FIRST(&key->links));
        if (!best || posted->order < best->order)
            best = posted;
    }
    TAILQ_FOREACH (l, &ix->scanned, others) {
        struct match_posted *posted = posted_of(l);

        if (best && best->order < posted->order)
            break;
        if (((posted->tag ^ tag) & posted->mask) == 0)
            return posted;
    }
    return best;
}

static struct match_posted *find_request(const struct match_links *links, uint32_t req)
{
    struct match_link *l;

    TAILQ_FOREACH (l, links, others)
        if (posted_of(l)->req == req)
            return posted_of(l);
    return NULL;
}

struct match_posted *match_find_request(struct match_index *ix, uint32_t req, uint64_t tag,
                                        uint64_t mask)
{
    uint8_t class = class_find(ix, mask);
    struct match_posted *found;

    if (class < MATCH_CLASSES) {
        struct match_key *key = key_find(&ix->posted_keys, tag & mask, class);

        if (key && (found = find_request(&key->links, req)))
            return found;
    }
    return find_request(&ix->scanned, req);
}

uint64_t match_posted_count(const struct match_index *ix)
{
    const struct match_link *l;
    uint64_t count = 0;

    for (uint32_t class = 0; class < ix->classes; class ++)
        count += ix->posted_in[class];
    TAILQ_FOREACH (l, &ix->scanned, others)
        count++;
    return count;
}

static int compare_order(const void *a, const void *b)
{
    uint64_t left = (*(struct match_posted *const *)a)->order;
    uint64_t right = (*(struct match_posted *const *)b)->order;

    return (left > right) - (left < right);
}

void match_posted_all(const struct match_index *ix, struct match_posted **all)
{
    struct match_link *l;
    uint64_t count = 0;

    for (uint32_t i = 0; i < ix->posted_keys.size; i++)
        for (const struct match_key *key = ix->posted_keys.buckets[i]; key; key = key->next)
            TAILQ_FOREACH (l, &key->links, others)
                all[count++] = posted_of(l);
    TAILQ_FOREACH (l, &ix->scanned, others)
        all[count++] = posted_of(l);
    qsort(all, count, sizeof(struct match_posted *), compare_order);
}

int match_wait(struct match_index *ix, struct match_waiting *message)
{
    for (uint8_t class = 0; class < ix->classes; class ++) {
        if (link_add(ix, &ix->waiting_keys, &message->links[class], message->tag & ix->masks[class],
                     class) == CW_OK)
            continue;
        while (class -- > 0)
            link_remove(ix, &ix->waiting_keys, &message->links[class]);
        return CW_ENOMEM;
    }
    TAILQ_INSERT_TAIL(&ix->all, message, in_order);
    ix->waiting++;
    return CW_OK;
}

void match_unwait(struct match_index *ix, struct match_waiting *message)
{
    for (uint8_t class = 0; class < ix->classes; class ++)
        link_remove(ix, &ix->waiting_keys, &message->links[class]);
    TAILQ_REMOVE(&ix->all, message, in_order);
    assert(ix->waiting > 0);
    ix->waiting--;
}

struct match_waiting *match_find_waiting(struct match_index *ix, uint64_t tag, uint64_t mask)
{
    struct match_waiting *m;
    struct match_key *key;
    uint8_t class;

    if (TAILQ_EMPTY(&ix->all))
        return NULL;
    class = class_of(ix, mask);
    if (class < MATCH_CLASSES) {
        key = key_find(&ix->waiting_keys, tag & mask, class);
        /* links[] is the first member: step back from the link of this class */
        return key ? (struct match_waiting *)(TAILQ_FIRST(&key->links) - class) : NULL;
    }
    TAILQ_FOREACH (m, &ix->all, in_order)
        if (((m->tag ^ tag) & mask) == 0)
            return m;
    return NULL;
}
