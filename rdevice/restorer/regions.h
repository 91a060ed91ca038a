/* Maps the regions of an image, and fills them. */
#ifndef RESTORER_REGIONS_H
#define RESTORER_REGIONS_H

#include "common/image.h"

#include <stdbool.h>
#include <stdint.h>

/* From the input's next record to its END; then all is as it was. Ends the process with a report
 * when that is not possible. */
void regions_restore(void);

/* Whether the program may write there. */
bool regions_writable(uint64_t start, uint64_t size);

#endif
