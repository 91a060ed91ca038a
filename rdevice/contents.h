/* A hash of what each message carries. The relay keeps it with the rest of what it keeps of a send,
 * and compares: a re-execution that sends other bytes is found out, docs/protocol.md, "Repeating".
 *
 * Depends on the messages alone, so that each incarnation has the same. For the thread that calls
 * MPI. */
#ifndef RDEVICE_CONTENTS_H
#define RDEVICE_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define CONTENTS_UNLIKE UINT64_MAX /* as `header`: nothing is compared */

/* Others use the functions below alone. All zeros: some of each message. */
struct contents {
    bool none;
    bool all;      /* else samples of what is large */
    bool end;      /* the job ends where they differ */
    bool threads;  /* the process has, or had, other threads */
    uint64_t rest; /* hash of what followed the first piece of a message, which no hash has yet */
};

/* `flags`: enum cw_setup_flag. What followed is kept. */
void contents_begin(struct contents *contents, uint32_t flags);

/* Of the bytes that `pieces` hold but the first `header`, which an incarnation may have otherwise,
 * and of what contents_more() had since the last one; 0: of none. */
uint64_t contents_of(struct contents *contents, const struct iovec *pieces, int count,
                     uint64_t header);

/* The next bytes of a message that is packed in steps. */
void contents_more(struct contents *contents, const void *bytes, size_t size);

/* Whether the rank goes on where they differ: where nobody wants the job to end, or they may depend
 * on what other threads do. */
bool contents_are_borne(struct contents *contents);

#endif
