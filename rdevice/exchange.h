/* The exchange of frames with the relay, over the types that know a part of it each: writes wait
 * for room, and take in what comes meanwhile; what comes is handed to the type that it concerns.
 * Nothing is told to the program: what has happened waits in the inbox. Ends the process when the
 * relay breaks the protocol. For the thread that calls MPI. */
#ifndef RDEVICE_EXCHANGE_H
#define RDEVICE_EXCHANGE_H

#include "common/setup.h"
#include "rdevice/channel.h"
#include "rdevice/contents.h"
#include "rdevice/cursor.h"
#include "rdevice/inbox.h"
#include "rdevice/probes.h"
#include "rdevice/session.h"
#include "rdevice/wait.h"

/* Files above use the parts by the functions of their headers. */
struct exchange {
    struct session session;
    struct waiter waiter;
    struct cursor cursor;
    struct inbox inbox;
    struct probes probes;
    struct request_table requests; /* set up apart */
    struct contents contents;
    struct channel channel; /* set up apart; the message that goes there: */
    struct cw_piece piece;
    uint32_t to;                /* place of its receiver; CHANNEL_FAR: it goes through the relay */
    uint32_t reads;             /* of the channel */
    bool came;                  /* the last one found something */
    uint64_t next_count_ns;     /* when the relay hears again what was counted */
    uint64_t skip;              /* bytes of the message at hand that the relay has already */
    bool farewell;              /* has come */
    bool decided;               /* all is here that was decided in a memory that was lost */
    struct cw_checkpoint asked; /* for an image; its number is 0: for none */
};

/* After WELCOME, over the session, which is open: of a process that begins, or, `restored`, goes on
 * from an image. The request table is set up apart. */
void exchange_begin(struct exchange *x, const struct cw_setup *setup,
                    const struct cw_welcome *welcome, bool restored);

/* What the program does is not what the log has: ends the process. */
void exchange_diverged(const struct exchange *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn, cold));

/* Room in the buffer for a frame with `size` bytes of body there: flushes when there is none. */
void exchange_make_room(struct exchange *x, size_t size);

/* Queues a small frame; it goes out with the next flush. Returns where its body goes. */
uint8_t *exchange_frame(struct exchange *x, uint8_t type, size_t size);

/* ... one that need not go out soon. */
uint8_t *exchange_lazy_frame(struct exchange *x, uint8_t type, size_t size);

/* What this rank has counted; and COUNTED, for the relay of a rank with channel memory. */
struct cw_rank_stats exchange_count(struct exchange *x);
void exchange_tell_counts(struct exchange *x);

/* Queues what the relay is told of what has come of messages from elsewhere (MATCHED, MRECV, ROOM),
 * but for what an earlier incarnation has told. */
void exchange_tell_news(struct exchange *x);
/* Queues an ACK if one is owed. */
void exchange_acknowledge(struct exchange *x);

/* Writes what is queued, then `pieces` (EXCHANGE_PIECES_MAX at most); returns when all is written.
 */
#define EXCHANGE_PIECES_MAX 8
void exchange_flush_with(struct exchange *x, const struct iovec *pieces, int count);
void exchange_flush(struct exchange *x);

/* Takes what the relay has said, without waiting, and without a log what the channel memory has.
 * Returns true when something came. */
bool exchange_read(struct exchange *x);

/* The same at a poll, once for each, when it is no repeated one: what the channel memory has is
 * taken with a log, too. Also while a send waits for room there, which one with a log never does.
 */
bool exchange_poll(struct exchange *x);

/* Waits for the relay; `since_ns` is when the waiting began. */
void exchange_wait(struct exchange *x, uint64_t since_ns);

/* Waits until `fd` can be read, and resumes the session meanwhile when its connection breaks.
 * `reads`: the relay is read as well, and gets again what it had not received; else what it says
 * stays where it is. */
void exchange_beside(struct exchange *x, int fd, bool reads);

/* While repeating: whether the relay's next frame is READINGS, and up to which poll clock they were
 * made; and acting on that frame with all its payload. Both wait for it. */
bool exchange_next_readings(struct exchange *x, uint64_t *clock);
void exchange_take_frame(struct exchange *x);

#endif
