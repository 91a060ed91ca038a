/* The messages of heartbeat detectors: written to and read from bounded memory.
 * docs/detectors.md, "Messages". */
#ifndef DISPATCHER_DETECTOR_TABLE_MESSAGE_H
#define DISPATCHER_DETECTOR_TABLE_MESSAGE_H

#include "common/buf.h"
#include "common/err.h"

/* An entry of a table: how many rounds the heartbeat of a process is behind that of the sender, and
 * one more. Distance d of a table is process (sender + d) mod n, 1 <= d < n. */
#define TABLE_UNKNOWN 255u /* it is more, or was never heard */

enum table_message_kind {
    TABLE_WHOLE = 1,
    TABLE_DIFFERENCE, /* to the table before it on this lane */
    TABLE_WANTED,     /* a difference could not be read: send all */
    TABLE_PING,
    TABLE_PONG,
};

struct table_message {
    enum table_message_kind kind;
    uint8_t lane;       /* WHOLE, DIFFERENCE, WANTED: the round of the cycle, from 0 */
    uint16_t number;    /* WHOLE, DIFFERENCE: of the table, on its lane */
    uint32_t heartbeat; /* WHOLE, DIFFERENCE, PONG: the sender's */
    struct cw_reader entries;
};

/* Reads one of a group of n processes; `m` refers to `bytes`. Errors: CW_EPROTO. */
int table_message_read(struct table_message *m, const void *bytes, size_t size, uint32_t n,
                       struct cw_err *err);

/* The next entry of DIFFERENCE that has changed; false: there is none. `*distance` is 0 at first.
 */
bool table_next_change(struct cw_reader *entries, uint32_t *distance, uint8_t *code);

/* Writes WHOLE, or DIFFERENCE where `before` is given and that is shorter. `codes`, `before`: of n
 * entries, that of distance 0 unused. */
void table_message_write(struct cw_writer *w, const struct table_message *m, const uint8_t *codes,
                         const uint8_t *before, uint32_t n);
/* Writes one of the others. */
void table_message_write_short(struct cw_writer *w, const struct table_message *m);

#endif
