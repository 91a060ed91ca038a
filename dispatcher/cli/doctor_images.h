/* The checks of what images of ranks need, which no job does that takes none: none is an error. */
#ifndef DISPATCHER_DOCTOR_IMAGES_H
#define DISPATCHER_DOCTOR_IMAGES_H

#include "dispatcher/cli/doctor.h"

/* After doctor_check_library. */
void doctor_check_images(struct doctor *d);

#endif
