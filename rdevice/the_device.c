/* The one device of a process. In a file of its own: tests/sim plays many ranks in one process,
 * each with a device. */
#include "rdevice/device.h"

struct device device = DEVICE_BEFORE;
