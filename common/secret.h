/* Memory for keys that a process keeps for long. It is excluded from core dumps and filled with
 * zeros in a child after fork(). A kernel without these features still provides the memory. */
#ifndef CW_SECRET_H
#define CW_SECRET_H

#include <stddef.h>

/* Returns `size` bytes of zeros on pages of their own, or NULL without memory. The caller frees. */
void *cw_secret_alloc(size_t size);

/* Wipes and frees the memory of cw_secret_alloc(size). NULL is allowed. */
void cw_secret_free(void *secret, size_t size);

#endif
