/* What images need of this system: for the library, and for `causeway doctor`. */
#ifndef RDEVICE_IMAGE_PROBE_H
#define RDEVICE_IMAGE_PROBE_H

#include "common/err.h"

/* Of the calling process; makes another one, which ends at once. Returns 0, or CW_ESYS with *err
 * saying what is missing and what to do. */
int image_probe(struct cw_err *err);

#endif
