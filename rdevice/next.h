/* Functions in front of libc's or MPI's: what they are declared with, and the function that ours
 * stands in front of: the next one of its name, in the libraries after this one. */
#ifndef RDEVICE_NEXT_H
#define RDEVICE_NEXT_H

#include <dlfcn.h>
#include <string.h>

/* The library's symbols are hidden unless they say otherwise. */
#define PUBLIC __attribute__((visibility("default")))
#define ALIAS(name, of) PUBLIC extern __typeof__(of) name __attribute__((alias(#of), copy(of)))
/* Where it returns to. */
#define CALLER ((uintptr_t)__builtin_return_address(0))

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
