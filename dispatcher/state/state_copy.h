/* What passes to the keeper of a copy of a job's state (dispatcher/node/state_keeper.h): the bytes
 * of the journal and the words of the counts, as they change, and questions whether all of them are
 * there. docs/job-state.md. Pure. */
#ifndef DISPATCHER_STATE_COPY_H
#define DISPATCHER_STATE_COPY_H

#include "common/err.h"
#include "dispatcher/state/job_state.h"

#include <stddef.h>
#include <stdint.h>

#define STATE_COPY_MAGIC "\nCAUSEWAY-STATE:7b30\n" /* of the keeper, before its first answer */
#define STATE_COPY_DIR "job"                       /* in the directory of the keeper's node */
#define STATE_COPY_HEADER 16u                      /* type, size, at */
#define STATE_COPY_BODY_MAX (JOB_STATE_RECORD + JOB_STATE_BODY_MAX)
#define STATE_COPY_COUNT_SIZE 8u

enum state_copy_type {
    STATE_COPY_JOURNAL = 1, /* `at`: where its bytes go, which is the end; 0: all begins anew */
    STATE_COPY_COUNT,       /* `at`: the word that changes; its value */
    STATE_COPY_SYNC,        /* answered by `at`, 8 bytes, once all before it is there */
    STATE_COPY_OVER,        /* the job has ended: nobody is to go on with it */
    STATE_COPY_TYPES
};

struct state_copy_message {
    uint32_t type;
    uint32_t size; /* of what follows the header */
    uint64_t at;
    const uint8_t *bytes; /* decoded: in what was read */
};

void state_copy_put(uint8_t to[STATE_COPY_HEADER], const struct state_copy_message *message);

/* Reads one message. Returns its size, or 0: it has not come whole. Errors: CW_EPROTO. */
long state_copy_get(const uint8_t *bytes, size_t size, struct state_copy_message *message,
                    struct cw_err *err);

#endif
