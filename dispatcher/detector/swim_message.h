/* The messages of SWIM: written to and read from bounded memory. docs/detectors.md, "Messages". */
#ifndef DISPATCHER_DETECTOR_SWIM_MESSAGE_H
#define DISPATCHER_DETECTOR_SWIM_MESSAGE_H

#include "common/buf.h"
#include "common/err.h"

#define SWIM_UPDATES_MAX 8u                           /* of a message */
#define SWIM_MESSAGE_MAX (5u + SWIM_UPDATES_MAX * 7u) /* bytes */

enum swim_message_kind {
    SWIM_PROBE = 16,
    SWIM_ACK,
    SWIM_REQUEST, /* probe that one for me */
    SWIM_NACK,    /* it has not answered me yet */
};

/* In the order in which they override each other, for one incarnation. */
enum swim_state { SWIM_ALIVE, SWIM_SUSPECT, SWIM_DEAD };

struct swim_update {
    uint16_t member, incarnation;
    uint16_t accuser; /* of SUSPECT and DEAD: who found out */
    uint8_t state;    /* enum swim_state */
};

struct swim_message {
    enum swim_message_kind kind;
    uint16_t seq;
    uint16_t target; /* of REQUEST */
    uint32_t count;
    struct swim_update updates[SWIM_UPDATES_MAX];
};

/* Reads one of a group of n. Errors: CW_EPROTO. */
int swim_message_read(struct swim_message *m, const void *bytes, size_t size, uint32_t n,
                      struct cw_err *err);
void swim_message_write(struct cw_writer *w, const struct swim_message *m);

#endif
