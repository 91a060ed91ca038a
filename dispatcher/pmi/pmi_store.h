/* Keys and their values, each put there by one rank, of which each may put a bounded part. Pure. */
#ifndef DISPATCHER_PMI_STORE_H
#define DISPATCHER_PMI_STORE_H

#include <stddef.h>
#include <stdint.h>

#define PMI_ENTRIES_MAX 4096           /* keys and names that one rank may hold */
#define PMI_ENTRY_BYTES_MAX (1u << 20) /* bytes of them */

/* A node of a store: tsearch orders by key. One allocation with both strings. */
struct pmi_pair {
    const char *key;
    const char *value;
    uint32_t owner;
    char bytes[];
};

/* What a rank has in all stores. */
struct pmi_owner {
    uint32_t entries;
    size_t bytes;
};

/* A store is a root of tsearch(3), NULL when it is empty. NULL: the key is not there. */
struct pmi_pair *pmi_store_find(void *const *store, const char *key);

/* The key must not be there; copies both. Returns a word for "msg=", or NULL when it is stored; an
 * exhausted memory is answered like a bound. */
const char *pmi_store_add(void **store, struct pmi_owner *owner, uint32_t rank, const char *key,
                          const char *value);

/* `owner` is that of the rank pair->owner. */
void pmi_store_remove(void **store, struct pmi_owner *owner, struct pmi_pair *pair);

#endif
