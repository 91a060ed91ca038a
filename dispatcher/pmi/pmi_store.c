#include "dispatcher/pmi/pmi_store.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const struct pmi_pair *)a)->key, ((const struct pmi_pair *)b)->key);
}

struct pmi_pair *pmi_store_find(void *const *store, const char *key)
{
    struct pmi_pair probe = {.key = key};
    struct pmi_pair *const *node = tfind(&probe, store, compare_pairs);

    return node ? *node : NULL;
}

static size_t pair_size(const char *key, const char *value)
{
    return sizeof(struct pmi_pair) + strlen(key) + strlen(value) + 2;
}

const char *pmi_store_add(void **store, struct pmi_owner *owner, uint32_t rank, const char *key,
                          const char *value)
{
    size_t key_size = strlen(key) + 1;
    size_t size = pair_size(key, value);
    struct pmi_pair *pair;

    if (owner->entries == PMI_ENTRIES_MAX || size > PMI_ENTRY_BYTES_MAX - owner->bytes)
        return "too_many_entries";
    pair = malloc(size);
    if (!pair)
        return "no_memory";
    memcpy(pair->bytes, key, key_size);
    strcpy(pair->bytes + key_size, value);
    pair->key = pair->bytes;
    pair->value = pair->bytes + key_size;
    pair->owner = rank;
    if (!tsearch(pair, store, compare_pairs)) {
        free(pair);
        return "no_memory";
    }
    owner->entries++;
    owner->bytes += size;
    return NULL;
}

void pmi_store_remove(void **store, struct pmi_owner *owner, struct pmi_pair *pair)
{
    assert(owner->entries > 0);
    owner->entries--;
    owner->bytes -= pair_size(pair->key, pair->value);
    tdelete(pair, store, compare_pairs);
    free(pair);
}
