/* The stream of an image, read record by record; every record and block is checked. What is wrong
 * ends the process with a report. */
#ifndef RESTORER_INPUT_H
#define RESTORER_INPUT_H

#include "common/image.h"

#include <stdint.h>

void input_open(int fd);

/* The first record. Owned here. */
const struct cw_image_header *input_header(void);

/* What comes next: REGION, a BLOCK but not SAME, or END, whose checksum was right. */
struct input_record {
    uint32_t type;
    uint32_t length;
    union {
        struct cw_image_region region;
        struct cw_image_block block;
        struct cw_image_end end;
    };
};
void input_next(struct input_record *record);

/* Of a BLOCK with DATA or LZ4, which follows input_next() at once: the bytes to where they belong.
 */
void input_payload(const struct input_record *record, void *to);

#endif
