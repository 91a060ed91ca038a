/* Images of this process: copied at a call for progress, while the program goes on, and gone on
 * with by another process (docs/image-format.md). It knows nothing of MPI, relays or rings; the
 * device says when, where to, and what stays out.
 *
 * For the thread that calls MPI; one image at a time. No memory of the program's heap is used. */
#ifndef RDEVICE_IMAGE_H
#define RDEVICE_IMAGE_H

#include "common/err.h"
#include "common/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_GIVEN_MAX 8
#define IMAGE_LEFT_OUT_MAX 8

/* What an image is of. */
struct image_order {
    uint8_t job[16];
    uint32_t rank, ranks, incarnation;
    uint32_t number;
    uint32_t base; /* blocks that did not change since that image may be SAME; 0: none may */
    uint64_t event, clock, acts;
};

struct image_range {
    uint64_t start, size;
};

struct image_setting {
    /* Descriptors that a process which goes on brings along under these numbers, beside 0 to 2, and
     * of which nothing is kept. */
    int given[IMAGE_GIVEN_MAX];
    uint32_t given_count;
    /* ... and the pipes that it has as 0 to 2, here: inodes; 0: none. What the program has there
     * instead is restored as its other descriptors are. */
    uint64_t standard[3];
    /* ... that it does not have at all. */
    int closed[IMAGE_GIVEN_MAX];
    uint32_t closed_count;
    /* Memory that it does not have. */
    struct image_range left_out[IMAGE_LEFT_OUT_MAX];
    uint32_t left_out_count;
    bool cut_appended; /* a file that is written by appending is cut to its length of then ... */
    /* ... if this too says so, in the restored process, whose given[0] is this; NULL: it does */
    bool (*may_cut)(int given);
    /* In the copy: opens where the stream goes to, to be written with write(2). `base`: in: as
     * ordered; out: what may be referred to. Returns a descriptor, or -1 with *err set. The copy is
     * a process of its own with one thread; no function here may use the heap, or descriptors of
     * the program. */
    int (*open)(void *ctx, uint64_t bytes, uint32_t *base, struct cw_err *err);
    /* In the copy, once that is open: a second descriptor to which the same bytes go; -1: there is
     * none. NULL: likewise. */
    int (*also)(void *ctx);
    /* In the copy: the stream is written. Returns 0 when it is safe, or -1 with *err set. */
    int (*finish)(void *ctx, int fd, struct cw_err *err);
    void *ctx;
};

enum image_result {
    IMAGE_BEGUN,    /* the copy is on its way: image_poll() tells what becomes of it */
    IMAGE_RESTORED, /* this is another process, which goes on from an image */
    IMAGE_REFUSED,  /* *err says why; nothing has changed */
};

/* The other threads of the program stand still, and signals are blocked, until image_let_go().
 * Nobody may take a lock meanwhile that another thread can have: that of the heap is one. Returns
 * 0, or CW_ESYS, CW_EINVAL or CW_ELIMIT with *err saying which thread does not stop, or cannot be
 * restored. `unfit`: called in each of them, in a signal handler: whether it cannot stand where it
 * is; it does not ask where it sleeps in futex(2). Such a thread calls image_stand() as soon as it
 * can. NULL: anywhere will do. */
int image_hold(bool (*unfit)(void), struct cw_err *err);
void image_stand(void);
/* After IMAGE_RESTORED too, where they stand still again. */
void image_let_go(void);

/* Holds the other threads and lets them go by itself where the caller does not. */
enum image_result image_take(const struct image_order *order, const struct image_setting *setting,
                             struct cw_err *err);

enum image_state { IMAGE_NONE, IMAGE_ON_ITS_WAY, IMAGE_STORED, IMAGE_FAILED };

struct image_outcome {
    uint32_t number;
    uint64_t stall_ns; /* that the program stood still */
    uint64_t sent;     /* bytes of the stream */
    uint64_t bytes;    /* of memory */
    struct cw_err err; /* of IMAGE_FAILED */
};

/* What became of the image; STORED and FAILED are said once. One system call where an image is on
 * its way, else none. */
enum image_state image_poll(struct image_outcome *outcome);

/* Gives the copy up, and waits for its end. */
void image_cancel(void);

/* After IMAGE_RESTORED: what could not be restored as it was, one line each, for a person; NULL: no
 * more. Forgotten by the next image. */
const char *image_remark(uint32_t index);

/* ... and the numbers that threads had before, and have now; index 0 is the calling thread. False:
 * there is no such thread. */
bool image_thread(uint32_t index, int32_t *former, int32_t *now);

/* ... and where that thread has the thread-local variable, of this library, that the calling thread
 * has at `mine`. NULL: there is no such thread. */
void *image_thread_local(uint32_t index, void *mine);

/* ... and whether it goes on in the boot of the machine in which the image was taken. */
bool image_is_here(void);

#endif
