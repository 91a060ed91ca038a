/* What the kernel keeps of the process beside memory; and the jump into it. */
#ifndef RESTORER_PROCESS_H
#define RESTORER_PROCESS_H

#include "common/image.h"

/* Whether this machine's processor has what the image needs; ends the process if not. */
void process_check(const struct cw_image_header *header);

/* Goes on in the image. */
void process_go_on(const struct cw_image_header *header, int control_fd, int pmi_fd)
    __attribute__((noreturn));

#endif
