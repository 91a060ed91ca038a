/* What the store of a core's logs asks its caller to write and read, and what becomes of it. */
#ifndef RELAY_STORE_IO_H
#define RELAY_STORE_IO_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_ALIGN 4096u /* of memory, offset and size */

struct log_segment;

enum store_file { STORE_SEGMENTS, STORE_JOURNAL_0, STORE_JOURNAL_1, STORE_FILES };

struct relay_log_io {
    enum store_file file;
    bool write;
    bool sync; /* it has been carried out once it outlives the loss of power */
    uint64_t offset;
    uint8_t *at; /* stays until the request has been carried out */
    uint32_t size;
    struct log_segment *segment; /* comes back with the result; NULL: of a journal */
};

struct relay_log_done {
    struct log_segment *segment;
    int error; /* 0, or an errno */
};

#endif
