/* How the programs of tests/image take an image: into the file that the environment's IMAGE names,
 * with a dot and the number; through a slow reader with SLOW; with BASE, on the one before. With
 * CONTROL, there is a control socket, taker_control, which the process that goes on is given. */
#ifndef IMAGE_TAKER_H
#define IMAGE_TAKER_H

#include "rdevice/image/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 1 in the restored process, 0 in the one that went on, when the image is stored; ends the
 * process with code 3 and a message when the image is refused or fails. */
int taker_take(void);

/* Likewise, with a setting of the caller's, whose open and finish are set here. Returns -1 when the
 * image is refused or fails; the text is in taker_error. */
int taker_take_with(struct image_setting *setting);
/* The setting's standard descriptors, which taker_take_with() sets by itself. */
void taker_name_standard(struct image_setting *setting);
extern const char *taker_error;
extern struct image_outcome taker_outcome;
extern int taker_control;

#ifdef __cplusplus
}
#endif

#endif
