/* What a core asks of the engine that drives it, and what the engine answers. */
#ifndef RELAY_REQUESTS_H
#define RELAY_REQUESTS_H

#include "common/follow.h"
#include "common/frame.h"
#include "relay/memory/block.h"

#include <string.h>

/* A link that a core wants: to relay `peer` of a job, as relay `self`; or a session for copies. */
struct relay_dial {
    uint8_t job[CW_ID_SIZE];
    bool copies;
    uint32_t incarnation; /* of relay `self` */
    uint32_t asked;       /* how often this one was asked for; comes back with what came of it */
    uint64_t number;      /* of the COPY, for copies */
    bool cancelled;     /* the job has ended: nothing is wanted any more of what was asked for it */
    bool resumes;       /* the link's session, which is suspended */
    uint64_t received;  /* of it: bytes of the other relay's stream so far */
    uint64_t resume_ns; /* how long it may be tried */
    uint32_t self;
    uint32_t peer;
    uint8_t key[CW_KEY_SIZE];
    char address[CW_LINK_ADDRESS_MAX + 1];
};

/* A link that was opened, or why there is none. */
struct relay_dialled {
    uint8_t job[CW_ID_SIZE];
    uint32_t peer;
    bool copies;
    uint32_t asked;
    bool resumed;
    uint64_t received; /* by the other relay, of our stream; of a session that is resumed */
    struct cw_session session;
    char failure[CW_TEXT_MAX + 1]; /* empty: there is a connection */
};

/* What comes of a request, so far: that a session was opened. */
static inline struct relay_dialled relay_dialled_of(const struct relay_dial *dial)
{
    struct relay_dialled dialled = {
        .peer = dial->peer, .copies = dial->copies, .asked = dial->asked, .resumed = dial->resumes};

    memcpy(dialled.job, dial->job, CW_ID_SIZE);
    return dialled;
}

/* A piece of payload that is to go from connection to connection. */
struct relay_cut {
    uint32_t size;             /* bytes that are to go; 0: none can */
    struct relay_conn *to;     /* to where; NULL: not to the receiver any more */
    uint8_t *log;              /* where a log wants them too; NULL: nowhere */
    struct relay_block *block; /* of the log; its reference is the caller's */
};

/* The channel memory of the ranks of this host, read and not mapped. All zero: what they decide is
 * not copied. */
struct relay_channel {
    uint64_t (*size)(void *ctx); /* bytes, with the file behind it; 0: it is not made yet */
    cw_follow_read *read;
    void *ctx;
};

/* Copies `size` bytes that have arrived, `skip` bytes from the first one. */
typedef void relay_peek(void *ctx, size_t skip, void *to, size_t size);

#endif
