/* What the kernel keeps of the process beside memory; and the jump into it. */
#ifndef RESTORER_PROCESS_H
#define RESTORER_PROCESS_H

#include "common/image.h"
#include "rdevice/image/handoff.h"

/* Whether this machine's processor has what the image needs; ends the process if not. */
void process_check(const struct cw_image_header *header);

/* Goes on in the image, which finds the handoff. */
void process_go_on(const struct cw_image_header *header, const struct handoff *handoff)
    __attribute__((noreturn));

#endif
