/* The device of the process at hand, sim_device, for those who look at it from outside. */
#ifndef SIM_DEVICE_VIEW_H
#define SIM_DEVICE_VIEW_H

#define DEVICE_MANY
#include "rdevice/device.h"
#undef device

#endif
