/* Locks of the dynamic loader, which know their owner by its number, and which nobody else can give
 * to the thread that takes its place. */
#ifndef RDEVICE_IMAGE_LOADER_H
#define RDEVICE_IMAGE_LOADER_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the thread is inside dlopen(), dlclose(), dl_iterate_phdr() or the like. */
bool loader_is_used_by(int32_t tid);

#endif
