/* The dispatcher's session with a relay or a checkpoint server: what that says, and what it is
 * told. docs/protocol.md, "Sessions" and "Checkpoint servers". In a loop; never blocks. */
#ifndef DISPATCHER_PARTY_H
#define DISPATCHER_PARTY_H

#include "common/kept.h"
#include "common/loop.h"
#include "common/transport.h"
#include "dispatcher/servers/opener.h"

#include <stdbool.h>

#define PARTY_BUFFER 65536

/* Whom it is with. */
struct party_kind {
    const char *name;       /* "relay" */
    const char *option;     /* which gives its address: "--relay" */
    const char *key_option; /* ... and its key */
    const char *subject;    /* in messages: "the relay", "it" */
    const char *refusal;    /* ... before what it says */
    bool resumes; /* over another connection; what is sent is kept until it is acknowledged */
    /* It has said something. False: that is not expected. */
    bool (*frame)(void *ctx, const struct cw_header *header, const uint8_t *body);
    /* CW_ECLOSED: the connection broke; CW_EAUTH (refused), CW_EPROTO: the session is over. The
     * connection is closed. */
    void (*broke)(void *ctx, struct cw_err *err);
};

struct party {
    const struct party_kind *kind;
    struct loop *loop;
    void *ctx;
    int fd; /* non-blocking; -1: there is no connection */
    struct loop_watch watch;
    struct cw_session session;
    struct cw_kept kept;          /* what it is told; its bytes are owned */
    bool exactly;                 /* no byte after a frame is read: it may be another's */
    uint8_t *key;                 /* of the job there; borrowed */
    char address[CW_ADDRESS_MAX]; /* where we reach it */
    char near[CW_ADDRESS_MAX];    /* where processes of its machine do, ... */
    char far[CW_ADDRESS_MAX];     /* ... and others; "": at `address` */
    size_t used;
    uint8_t buffer[PARTY_BUFFER];
};

/* Without a connection; `room`: bytes that can be told before any is taken (of one that resumes,
 * acknowledged). Errors: CW_ENOMEM. */
int party_init(struct party *session, struct loop *loop, const struct party_kind *kind, void *ctx,
               size_t room, struct cw_err *err);
/* Also of one that is all zero. */
void party_free(struct party *session);

/* One that runs already, whose key is in `file`; NULL: in the file beside its socket. Errors: as
 * cw_key_load; CW_EINVAL, CW_ENOTFOUND. */
int party_find(struct party *session, const char *address, const char *file,
               const uint8_t job[CW_ID_SIZE], struct cw_err *err);

/* One of our own listens, over a Unix socket and over TCP ("": not), and is reached over the former
 * if it is `here`. */
void party_listens(struct party *session, const char *local, const char *tcp, bool here);

/* Where a process on its machine reaches it, or one elsewhere. */
const char *party_address_for(const struct party *session, bool is_near);

/* A session with the same one as `at` is to be opened, as the rest of `request` says. False: there
 * is no room for that. */
bool party_dial(const struct party *at, struct opener *opener, struct cw_dial_request *request,
                const uint8_t job[CW_ID_SIZE]);

/* It is open on this connection, which is the session's from now on: what comes is told. */
void party_begin(struct party *session, int fd, const struct cw_session *state);

/* It goes on over another connection, likewise: the other side has received all before this
 * position. Errors: CW_EPROTO: it cannot have; the connection is closed. */
int party_resume(struct party *session, int fd, uint64_t received, struct cw_err *err);

/* Takes what has come. */
void party_hear(struct party *session);

/* Tells it something, now or as soon as it can take it. Errors: CW_ELIMIT: there is no room, and it
 * is not told. */
int party_tell(struct party *session, uint8_t type, const void *body, uint32_t size,
               struct cw_err *err);

/* Closes the connection; the session can be resumed. */
void party_break(struct party *session);
/* Gives it away. */
int party_release(struct party *session);

#endif
