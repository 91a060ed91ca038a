/* The kernel's own code in a process. */
#ifndef RESTORER_VDSO_H
#define RESTORER_VDSO_H

#include <stddef.h>
#include <stdint.h>

/* Lets each function of `old`, which lies where it is to be used, jump to that of the same name in
 * `new`. Returns NULL, or what is missing (constant text). */
const char *vdso_redirect(uint8_t *old, size_t old_size, const uint8_t *new, size_t new_size);

#endif
