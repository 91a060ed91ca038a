/* Where a file that the program has open is by now: programs write results under one name and
 * rename them when they are whole. */
#ifndef RDEVICE_IMAGE_RENAMED_H
#define RDEVICE_IMAGE_RENAMED_H

#include "rdevice/image/file.h"

/* In the restored process: opens the file, by the name that it has now in its directory. What the
 * program writes has its name of then again, and what has this name by now gets the other's: the
 * program renames it once more. Returns the descriptor, or a negative errno: it is not there. */
int renamed_open(const struct file *file, int flags);

#endif
