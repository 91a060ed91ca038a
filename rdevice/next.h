/* The function that ours stands in front of: the next one of its name, in the libraries after this
 * one. */
#ifndef RDEVICE_NEXT_H
#define RDEVICE_NEXT_H

#include <dlfcn.h>
#include <string.h>

/* `pointer`: to the pointer that is to be set. A pointer to a function is not an object pointer in
 * C, but is for dlsym(). */
static inline void next_resolve(void *pointer, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    memcpy(pointer, &symbol, sizeof(symbol));
}

/* The same, found at the first call. */
#define NEXT(name)                                                                                 \
    ({                                                                                             \
        static __typeof__(&name) next;                                                             \
        if (!next)                                                                                 \
            next_resolve(&next, #name);                                                            \
        next;                                                                                      \
    })

#endif
