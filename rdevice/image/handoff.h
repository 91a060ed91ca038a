/* What the restorer leaves for the process that it has restored, at the address in the header of
 * the image; and how it says that an image is of no use. */
#ifndef RDEVICE_IMAGE_HANDOFF_H
#define RDEVICE_IMAGE_HANDOFF_H

#include <stdint.h>

#define HANDOFF_MAGIC 0x46464f444e414857ull
#define HANDOFF_EXIT 113     /* exit code, as CW_EXIT_DEVICE */
#define HANDOFF_REPORT 8u    /* CW_REPORT_NOT_RESTORED */
#define HANDOFF_BROKE_OFF 9u /* CW_REPORT_IMAGE_BROKE_OFF */
#define HANDOFF_TEXT_MAX 400 /* bytes of its text */

struct handoff {
    uint64_t magic;
    int32_t control_fd, pmi_fd, channel_fd, channel_file_fd; /* -1: none */
};

#endif
