/* What the store of a core's logs asks its caller to write and read, and what becomes of it. */
#ifndef RELAY_STORE_IO_H
#define RELAY_STORE_IO_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_ALIGN 4096u /* of memory, offset and size */

struct log_segment;

struct relay_log_io {
    bool write;
    uint64_t offset;
    uint8_t *at; /* stays until the request has been carried out */
    uint32_t size;
    struct log_segment *segment; /* comes back with the result */
};

struct relay_log_done {
    struct log_segment *segment;
    int error; /* 0, or an errno */
};

#endif
