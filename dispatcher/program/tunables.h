/* What libc is told, so that a rank's process needs no more of the processor than each x86-64 has
 * (--ckpt-cpu baseline). Pure. */
#ifndef DISPATCHER_TUNABLES_H
#define DISPATCHER_TUNABLES_H

#define TUNABLES_NAME "GLIBC_TUNABLES"

/* The setting NAME=VALUE that adds this to `user`, a value of the variable; NULL: there is none.
 * The caller frees it; NULL: no memory. */
char *tunables_baseline(const char *user);

#endif
