/* What the kernel keeps of the process as a whole, and a program sets once, if at all: by prctl(2),
 * personality(2), files of /proc/self. Kept in static memory, so that it is in the image. */
#ifndef RDEVICE_IMAGE_TRAITS_H
#define RDEVICE_IMAGE_TRAITS_H

void traits_read(void);

/* In the restored process; before credentials are given up. What cannot be set is a remark. */
void traits_restore(void);
/* ... and what would be in the way of the rest, or is lost when credentials change: the last. */
void traits_restore_last(void);

#endif
