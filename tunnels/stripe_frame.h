/* What the two ends of a striped tunnel say to each other (docs/protocol.md, "Striped tunnels"):
 * the greeting of each connection, its answer, and the headers of chunks. Pure. */
#ifndef TUNNELS_STRIPE_FRAME_H
#define TUNNELS_STRIPE_FRAME_H

#include "common/buf.h"
#include "tunnels/ssh_address.h"

#define STRIPE_VERSION 2u
#define STRIPE_NAME_BYTES 16u  /* of a tunnel: random */
#define STRIPE_TOKEN_BYTES 32u /* who has it may join the tunnel: random */
#define STRIPE_HOST_BYTES 256u
#define STRIPE_GREETING_BYTES 324u
#define STRIPE_ANSWER_MARK "\nCWMERGE\n" /* what comes before it, as from start files, is noise */
#define STRIPE_ANSWER_TEXT_BYTES 256u
#define STRIPE_ANSWER_BYTES 264u /* after the mark */
#define STRIPE_HEADER_BYTES 16u
#define STRIPE_CHUNK_BYTES_MAX 65536u
#define STRIPE_SIGN UINT64_MAX /* the number of a sign of life, which has size 0: no chunk */

enum stripe_kind { STRIPE_FIRST = 1, STRIPE_JOIN = 2 };

/* This and the next ones are sent as they stand. */
struct stripe_greeting {
    char magic[8]; /* which is put, as the version is */
    uint32_t version;
    uint32_t kind; /* enum stripe_kind */
    uint8_t name[STRIPE_NAME_BYTES];
    uint8_t token[STRIPE_TOKEN_BYTES];
    uint16_t port;
    uint16_t reserved;
    char host[STRIPE_HOST_BYTES]; /* of the first one: where the tunnel leads, else "" */
};

struct stripe_answer {
    uint32_t version;                    /* of who answers */
    uint32_t joined;                     /* 1: it has; else: */
    char text[STRIPE_ANSWER_TEXT_BYTES]; /* why not */
};

/* A piece of one direction of the tunnel. Of those of a direction the n-th has number n, from 0. */
struct stripe_header {
    uint64_t number; /* of the end (size 0): how many chunks there were */
    uint32_t size;   /* bytes; 0: the end, the last chunk of each connection, or a sign of life */
    uint32_t stored; /* that follow: `size`, or less: packed by LZ4 */
};

void stripe_greeting_put(uint8_t bytes[STRIPE_GREETING_BYTES],
                         const struct stripe_greeting *greeting);
/* Errors: CW_EPROTO: it is no greeting, of another version, or has a bad field. */
int stripe_greeting_get(const uint8_t bytes[STRIPE_GREETING_BYTES],
                        struct stripe_greeting *greeting, struct cw_err *err);

/* With the mark. Returns how many bytes. */
size_t stripe_answer_put(uint8_t bytes[sizeof(STRIPE_ANSWER_MARK) + STRIPE_ANSWER_BYTES],
                         const struct stripe_answer *answer);
/* What follows the mark. The text is printable whatever came. */
void stripe_answer_get(const uint8_t bytes[STRIPE_ANSWER_BYTES], struct stripe_answer *answer);

static inline void stripe_header_put(uint8_t bytes[STRIPE_HEADER_BYTES],
                                     const struct stripe_header *header)
{
    memcpy(bytes, header, STRIPE_HEADER_BYTES);
}
/* False: there is no such chunk. */
bool stripe_header_get(const uint8_t bytes[STRIPE_HEADER_BYTES], struct stripe_header *header);

#endif
