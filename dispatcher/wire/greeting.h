/* The beginning of a connection with a node, before any segment: a magic text of the node,
 * behind whatever else the way to it has printed, and one frame of each side. docs/protocol.md,
 * "Nodes". Pure. */
#ifndef DISPATCHER_GREETING_H
#define DISPATCHER_GREETING_H

#include "common/frame.h"
#include "common/marker.h"

#define GREETING_MAGIC "\nCAUSEWAY-NODE:2f1c\n"
#define GREETING_PROTOCOL 13u    /* of nodes; its first fields are the same in each */
#define GREETING_FRAME_MAX 4096u /* bytes of a frame after its header */
#define GREETING_TEXT_MAX 255u   /* bytes of a text in a frame */
#define GREETING_ORPHAN_MAX_NS 3600000000000ull /* that a node may be left alone */
#define GREETING_HEADER 8u                      /* length, type */

enum greeting_type {
    GREETING_NONE,
    GREETING_OPEN = 1,   /* from the dispatcher: a new node is to serve a job */
    GREETING_ATTACH = 2, /* ... the session with this one goes on */
    GREETING_HELLO = 3,  /* from the node: the answer to OPEN */
    GREETING_ATTACHED = 4,
    GREETING_REFUSED = 5, /* text: why */
    GREETING_TAKE = 6,    /* from another dispatcher of its job: this node goes on with it */
    GREETING_LOOK = 7, /* from who would be one: HELLO where the node hears of none, else REFUSED */
};

/* OPEN, and TAKE, which `node_key` opens. */
struct greeting_open {
    uint32_t protocol;
    char version[GREETING_TEXT_MAX + 1];
    uint8_t job[CW_ID_SIZE];
    uint8_t key[CW_KEY_SIZE];      /* of the session, for ATTACH */
    uint8_t node_key[CW_KEY_SIZE]; /* as of cw_cred_node_key, for TAKE; zero: nobody may */
    uint32_t ranks;                /* 0: no job; the host is asked */
    uint64_t timeout_ns;           /* of silence, after which the node is left alone ... */
    uint64_t orphan_ns;            /* ... and after this time more it ends */
    uint64_t alive_period_ns;
    uint64_t stack_bytes; /* limit of a stack, which decides where a process has its memory */
};

struct greeting_attach {
    uint32_t protocol;
    uint8_t key[CW_KEY_SIZE];
    uint64_t received; /* as of mux_received */
};

struct greeting_attached {
    uint64_t received; /* as of mux_received */
    uint64_t from; /* ... of mux_expect: later than ATTACH says, where more was received since */
};

struct greeting_hello {
    uint32_t protocol;
    char version[GREETING_TEXT_MAX + 1];
    char dir[GREETING_TEXT_MAX + 1]; /* for --attach */
    char host[GREETING_TEXT_MAX + 1];
    uint32_t pid;
    uint32_t cores;
    uint32_t limited; /* 1: as of cw_machine_limits_memory; 0: not */
    uint64_t memory_bytes;
    char peer[GREETING_TEXT_MAX + 1];   /* from where it was reached, as of SSH_CONNECTION; "" */
    char own[GREETING_TEXT_MAX + 1];    /* ... and where; "" */
    char system[GREETING_TEXT_MAX + 1]; /* as of cw_machine_read */
};

/* Encode a whole frame into GREETING_HEADER + GREETING_FRAME_MAX bytes; return its size. */
size_t greeting_put_open(uint8_t *to, const struct greeting_open *v);
size_t greeting_put_take(uint8_t *to, const struct greeting_open *v);
size_t greeting_put_look(uint8_t *to);
size_t greeting_put_attach(uint8_t *to, const struct greeting_attach *v);
size_t greeting_put_hello(uint8_t *to, const struct greeting_hello *v);
size_t greeting_put_attached(uint8_t *to, const struct greeting_attached *v);
size_t greeting_put_refused(uint8_t *to, const char *why);

/* Decode a body. Return false if a size or a value is wrong. Of another protocol only `protocol`
 * and `version` are got. */
bool greeting_get_open(const uint8_t *body, size_t size, struct greeting_open *v);
bool greeting_get_attach(const uint8_t *body, size_t size, struct greeting_attach *v);
bool greeting_get_hello(const uint8_t *body, size_t size, struct greeting_hello *v);
bool greeting_get_attached(const uint8_t *body, size_t size, struct greeting_attached *v);
bool greeting_get_refused(const uint8_t *body, size_t size, char why[GREETING_TEXT_MAX + 1]);

/* Whether it has our version. Of others nothing can be asked. */
bool greeting_is_ours(const struct greeting_hello *v);

/* What comes, piece by piece. */
struct greeting {
    bool magic; /* is still to come */
    struct marker marker;
    size_t used;
    uint8_t bytes[GREETING_HEADER + GREETING_FRAME_MAX];
};

void greeting_init(struct greeting *g, bool magic);

/* Takes bytes up to the end of the next frame. Returns how many; *type is GREETING_NONE when it has
 * not come whole. Its body is g->bytes + GREETING_HEADER, *size bytes, until the next call. Errors:
 * CW_EPROTO: too much noise, or a frame that is too large. */
long greeting_take(struct greeting *g, const uint8_t *bytes, size_t size, enum greeting_type *type,
                   size_t *body_size, struct cw_err *err);

#endif
