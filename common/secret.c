#include "common/secret.h"

#include <sodium.h>
#include <sys/mman.h>

void *cw_secret_alloc(size_t size)
{
    void *secret = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (secret == MAP_FAILED)
        return NULL;
    madvise(secret, size, MADV_DONTDUMP);
    madvise(secret, size, MADV_WIPEONFORK);
    return secret;
}

void cw_secret_free(void *secret, size_t size)
{
    if (!secret)
        return;
    sodium_memzero(secret, size);
    munmap(secret, size);
}
