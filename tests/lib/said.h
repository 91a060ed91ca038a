/* What a rank says, for tests of who reads it: a channel whose stream has its other end here. */
#ifndef TESTS_SAID_H
#define TESTS_SAID_H

#include "dispatcher/wire/channel.h"

#define SAID_GOT_MAX 1024

struct said {
    struct channel *channel; /* its reader's */
    struct mux *mux[2];      /* the reader's, and ours */
    struct mux_stream stream;
    size_t got_size; /* of what the reader has written */
    char got[SAID_GOT_MAX];
};

void said_open(struct said *said, struct channels *channels, bool records);
/* Returns how many bytes there was room for; as of a pipe, up to PIPE_BUF all or none. */
size_t said_put(struct said *said, const void *bytes, size_t size);
void said_end(struct said *said); /* nothing more is said */
/* What the reader has written since the last call; terminated. */
const char *said_answers(struct said *said);
/* With what has not been read. The channel is the reader's still. May be called again. */
void said_close(struct said *said);

#endif
