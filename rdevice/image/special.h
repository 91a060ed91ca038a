/* Descriptors of the kernel's own inventions: eventfd, timerfd, epoll. */
#ifndef RDEVICE_IMAGE_SPECIAL_H
#define RDEVICE_IMAGE_SPECIAL_H

#include "common/err.h"
#include "rdevice/image/file.h"

#include <stdbool.h>

/* Whether it is one of them; then *file says which, and what it is set to. With *err set when it is
 * one that an image cannot hold. */
bool special_read(struct file *file, struct file_watch *watches, struct cw_err *err);

/* Makes it anew, but for what epoll watches. Returns a descriptor, or a negative errno. */
long special_make(const struct file *file);

/* ... and that, when all descriptors are there. */
void special_watch(const struct file *file, const struct file_watch *watches);

#endif
