/* Opens sessions with relays, or resumes them: connects, and shakes hands as the opener. Each in a
 * thread of its own, for all of that blocks; so a relay that does not answer delays no other
 * session, and not the caller. */
#ifndef CW_DIAL_H
#define CW_DIAL_H

#include "common/frame.h"

#define CW_DIALS_MAX 128 /* sessions that are being opened at a time */

struct cw_dial;

struct cw_dial_request {
    char address[CW_LINK_ADDRESS_MAX + 1];
    uint8_t key[CW_KEY_SIZE];
    struct cw_hello hello; /* as for cw_hello_open; with CW_HELLO_RESUME, as for cw_hello_resume */
    uint64_t tag;          /* the caller's: which session it is */
    uint32_t time_ms;      /* for all of it ... */
    uint32_t session_ms;   /* ... and for an answer of the relay */
    uint32_t tries;        /* until a session is open; 0: any number, and final errors end them */
    uint32_t pause_ms;     /* between the first two; doubled each time ... */
    uint32_t pause_max_ms; /* ... up to this */
};

struct cw_dial_result {
    const struct cw_dial_request *request;
    int fd; /* of the connection, the callee's from now on; negative: there is none, see `err` */
    struct cw_session session;
    struct cw_welcome welcome;
    struct cw_err err; /* as of cw_address_parse, cw_connect_begin and _end, or cw_hello_open */
};

/* Called in the thread that opened the session, or failed to; not after cw_dial_cancel or
 * cw_dial_close. It may block until cw_dial_close. */
typedef void cw_dial_done(void *ctx, const struct cw_dial_result *result);

/* Returns NULL when there is no memory. `ctx` is borrowed. */
struct cw_dial *cw_dial_open(cw_dial_done *done, void *ctx);

/* Cancels all. Waits for their threads, except one that resolves a name: that one ends by itself,
 * and touches nothing of the caller's. */
void cw_dial_close(struct cw_dial *dial);

/* Begins to open a session. Does not block; any thread. False: there is no room for it. */
bool cw_dial_add(struct cw_dial *dial, const struct cw_dial_request *request);

/* Those of this job are no longer wanted. Does not block; any thread. */
void cw_dial_cancel(struct cw_dial *dial, const uint8_t job[CW_ID_SIZE]);

#endif
