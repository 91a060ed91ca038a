/* A stream of a rank's process (dispatcher/wire/mux.h) for who reads it: what has come waits here,
 * at most the stream's window, and is read as from a socket; what is written goes at once, or not
 * at all. Two have it, which let go of it separately: who opened it, and who reads it.
 *
 * Thread rule: that of its loop. */
#ifndef DISPATCHER_CHANNEL_H
#define DISPATCHER_CHANNEL_H

#include "common/loop.h"
#include "dispatcher/wire/gate.h"
#include "dispatcher/wire/mux.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

struct channel;
TAILQ_HEAD(channel_list, channel);

/* Those of a loop that have something for their readers. */
struct channels {
    struct loop *loop; /* borrowed; NULL: they are not open */
    struct loop_timer timer;
    struct channel_list waiting;
    struct channel_list turn; /* those that are told in this turn, and were not yet */
};

void channels_init(struct channels *channels, struct loop *loop);
/* There are no channels any more. */
void channels_end(struct channels *channels);

/* --- who opens it --- */

/* `records`: what comes in one frame is read at once. Without `channels` readers are not told.
 * NULL: no memory. */
struct channel *channel_new(struct channels *channels, bool records);
/* From now on it is this stream; `sends`: its reader writes, too. */
void channel_open(struct channel *c, struct mux *mux, uint32_t id, bool sends);
/* pass(ctx, ...) may change each record that comes over the stream. */
void channel_on_record(struct channel *c, void (*pass)(void *ctx, uint8_t *record, size_t size),
                       void *ctx);
/* Before anything comes: what comes, and its end, is not read before it may pass this gate, which
 * is borrowed until channel_drop or channel_close. It stays in the stream's window. */
void channel_hold(struct channel *c, struct gate *gate);
/* Something may pass the gate: the reader is told of what there is. */
void channel_look(struct channel *c);
/* What has come, and its end, without a stream. Errors: CW_ENOMEM. */
int channel_put(struct channel *c, const void *bytes, size_t size, struct cw_err *err);
void channel_end(struct channel *c);
/* The other side does not know of it any more: this is its end. What waits at a gate is dropped. */
void channel_drop(struct channel *c);
/* Nothing comes any more, and nothing waits at a gate. */
bool channel_is_over(const struct channel *c);
/* Nothing more is opened or put. NULL is allowed, as below. */
void channel_leave(struct channel *c);

/* --- who reads it --- */

/* As of recv(2) without waiting: 0 at its end; -1: there is nothing now. A record has to fit. */
ssize_t channel_read(struct channel *c, void *bytes, size_t size);
/* False: there is no room for it, or nobody takes it any more. */
bool channel_write(struct channel *c, const void *bytes, size_t size);
/* No more will come than waits here. */
bool channel_has_ended(const struct channel *c);
/* ready(ctx) is called in each turn in which there is something to be read, or its end. NULL: not
 * any more. */
void channel_watch(struct channel *c, loop_handler *ready, void *ctx);
/* It is of no use any more, to whoever else has it either. */
void channel_close(struct channel *c);

#endif
