/* The ring of the engine `uring`: whether there can be one, asking, waiting, shared buffers. */
#include "relay/engine/uring.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SQES 256u         /* operations asked for at once; more wait for the next system call */
#define CQES 4096u        /* completions; the kernel keeps what exceeds them, in its own memory */
#define REFUSED_MAX 1000u /* system calls in a row that take nothing in ... */
#define REFUSED_WAIT_US 1000 /* ... each this long after the one before */
#define SHARED_COUNT 64u     /* buffers, a power of two */
#define SHARED_BYTES 16384u  /* of each */
#define SHARED_GROUP 0
#define PAGE 4096u

/* One thread asks, and completions wait for it instead of interrupting it; the flag says, without a
 * system call, that some do. Disabled at first: whoever enables the ring is that thread. */
#define FLAGS                                                                                      \
    (IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_R_DISABLED |                     \
     IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |          \
     IORING_SETUP_DEFER_TASKRUN)

static const uint8_t operations[] = {IORING_OP_NOP,         IORING_OP_READ, IORING_OP_ACCEPT,
                                     IORING_OP_RECV,        IORING_OP_SEND, IORING_OP_SENDMSG,
                                     IORING_OP_ASYNC_CANCEL};

/* --- whether it can be used ------------------------------------------------------------------- */
#define OTHER "; or use another engine, like --engine poll"

/* kernel.io_uring_disabled; 0 also where there is no such switch. */
static int disabled_by_system(void)
{
    FILE *f = fopen("/proc/sys/kernel/io_uring_disabled", "re");
    int value = 0;

    if (!f)
        return 0;
    if (fscanf(f, "%d", &value) != 1)
        value = 0;
    fclose(f);
    return value;
}

static int explain(struct cw_err *err, const char *doing, int failure)
{
    int disabled = failure == EPERM ? disabled_by_system() : 0;

    if (disabled)
        return cw_err_set(err, CW_ENOTFOUND,
                          "io_uring is switched off on this system (kernel.io_uring_disabled is "
                          "%d); have it set to 0 with sysctl" OTHER,
                          disabled);
    if (failure == ENOSYS || failure == EPERM || failure == EACCES)
        return cw_err_set(err, CW_ENOTFOUND,
                          "%s: %s: this kernel has no io_uring, or a filter of system calls "
                          "(seccomp, as containers have) keeps it away; allow it there" OTHER,
                          doing, strerror(failure));
    if (failure == EINVAL)
        return cw_err_set(err, CW_ENOTFOUND,
                          "%s: %s: this kernel's io_uring is too old; Linux 6.1 or later is "
                          "needed" OTHER,
                          doing, strerror(failure));
    if (failure == ENOMEM)
        return cw_err_set(err, CW_ENOTFOUND,
                          "%s: %s: raise 'ulimit -l', the memory that may be locked" OTHER, doing,
                          strerror(failure));
    return cw_err_set(err, CW_ENOTFOUND, "%s: %s" OTHER, doing, strerror(failure));
}

static int probe_operations(struct io_uring *io, struct cw_err *err)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(io);
    int missing = -1;

    if (!probe)
        return explain(err, "io_uring_register", errno);
    for (size_t i = 0; i < sizeof(operations); i++)
        if (!io_uring_opcode_supported(probe, operations[i]))
            missing = operations[i];
    io_uring_free_probe(probe);
    if (missing < 0)
        return CW_OK;
    return cw_err_set(err, CW_ENOTFOUND,
                      "this kernel's io_uring has no operation %d; Linux 6.1 or later is "
                      "needed" OTHER,
                      missing);
}

/* A filter may let rings be made and refuse to use them. */
static int try_nothing(struct io_uring *io, struct cw_err *err)
{
    struct io_uring_cqe *cqe;
    int result;

    io_uring_prep_nop(io_uring_get_sqe(io));
    result = io_uring_submit_and_wait(io, 1);
    if (result < 0)
        return explain(err, "io_uring_enter", -result);
    if (io_uring_peek_cqe(io, &cqe) == 0)
        io_uring_cqe_seen(io, cqe);
    return CW_OK;
}

int uring_ring_check(struct cw_err *err)
{
    struct cw_relay_stats stats;
    struct uring_ring r;
    int failed = uring_ring_open(&r, &stats, err);

    if (failed)
        return failed;
    failed = uring_ring_start(&r, err);
    if (!failed) {
        failed = try_nothing(&r.io, err);
        uring_ring_finish(&r);
    }
    uring_ring_close(&r);
    return failed;
}

/* --- beginning and end ------------------------------------------------------------------------ */
static void shared_add(struct uring_ring *r, unsigned buffer)
{
    io_uring_buf_ring_add(r->shared, r->bytes + (size_t)buffer * SHARED_BYTES, SHARED_BYTES,
                          (unsigned short)buffer, io_uring_buf_ring_mask(SHARED_COUNT), 0);
    io_uring_buf_ring_advance(r->shared, 1);
}

static int shared_open(struct uring_ring *r, struct cw_err *err)
{
    struct io_uring_buf_reg reg = {.ring_entries = SHARED_COUNT, .bgid = SHARED_GROUP};
    int result;

    r->shared = aligned_alloc(PAGE, PAGE); /* SHARED_COUNT entries of 16 bytes fit */
    r->bytes = aligned_alloc(PAGE, (size_t)SHARED_COUNT * SHARED_BYTES);
    if (!r->shared || !r->bytes)
        return cw_err_set(err, CW_ENOMEM, "no memory for the buffers of io_uring");
    memset(r->shared, 0, PAGE);
    reg.ring_addr = (uintptr_t)r->shared;
    result = io_uring_register_buf_ring(&r->io, &reg, 0);
    if (result < 0)
        return explain(err, "io_uring_register of a ring of buffers", -result);
    for (unsigned i = 0; i < SHARED_COUNT; i++)
        shared_add(r, i);
    return CW_OK;
}

int uring_ring_open(struct uring_ring *r, struct cw_relay_stats *stats, struct cw_err *err)
{
    struct io_uring_params params = {.flags = FLAGS, .cq_entries = CQES};
    int failed;

    *r = (struct uring_ring){.stats = stats};
    failed = io_uring_queue_init_params(SQES, &r->io, &params);
    if (failed)
        return explain(err, "io_uring_setup", -failed);
    failed = probe_operations(&r->io, err);
    if (!failed)
        failed = shared_open(r, err);
    if (failed)
        uring_ring_close(r);
    return failed;
}

int uring_ring_start(struct uring_ring *r, struct cw_err *err)
{
    /* liburing.so has forgotten to export io_uring_enable_rings() */
    int failed = io_uring_register((unsigned)r->io.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);

    if (failed < 0)
        return explain(err, "io_uring_register to enable a ring", -failed);
    io_uring_register_ring_fd(&r->io); /* without it each system call looks the descriptor up */
    return CW_OK;
}

void uring_ring_finish(struct uring_ring *r)
{
    /* it is registered with this thread, not with the one that closes */
    if (r->io.enter_ring_fd != r->io.ring_fd)
        io_uring_unregister_ring_fd(&r->io);
}

void uring_ring_close(struct uring_ring *r)
{
    assert(r->outstanding == 0);
    io_uring_queue_exit(&r->io);
    free(r->shared);
    free(r->bytes);
}

/* --- asking and waiting ----------------------------------------------------------------------- */
static void note(struct uring_ring *r, int result)
{
    r->stats->syscalls++;
    if (result >= 0 || result == -ETIME || result == -EINTR) {
        r->refused = 0;
        return;
    }
    /* what is short now may come back, and completions may have to be taken first */
    if ((result == -EAGAIN || result == -EBUSY) && ++r->refused < REFUSED_MAX)
        usleep(REFUSED_WAIT_US);
    else
        r->failed = -result;
}

bool uring_ring_room(struct uring_ring *r)
{
    if (io_uring_sq_space_left(&r->io) >= URING_STEP_SQES)
        return true;
    note(r, io_uring_submit(&r->io));
    return io_uring_sq_space_left(&r->io) >= URING_STEP_SQES;
}

struct io_uring_sqe *uring_ring_ask(struct uring_ring *r)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->io);

    if (!sqe)
        abort(); /* uring_ring_room was not asked */
    return sqe;
}

static uint64_t name_of(void *of, enum uring_op op)
{
    assert(((uintptr_t)of & URING_OP_MASK) == 0);
    return (uintptr_t)of | op;
}

void uring_ring_name(struct uring_ring *r, struct io_uring_sqe *sqe, void *of, enum uring_op op)
{
    io_uring_sqe_set_data64(sqe, name_of(of, op));
    r->outstanding += op != URING_CANCEL;
}

void uring_ring_cancel(struct uring_ring *r, void *of, enum uring_op op)
{
    struct io_uring_sqe *sqe = uring_ring_ask(r);

    io_uring_prep_cancel64(sqe, name_of(of, op), 0);
    uring_ring_name(r, sqe, NULL, URING_CANCEL);
}

bool uring_ring_due(const struct uring_ring *r)
{
    return io_uring_sq_ready(&r->io) > 0 ||
           (IO_URING_READ_ONCE(*r->io.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW));
}

bool uring_ring_quiet(const struct uring_ring *r)
{
    return !uring_ring_due(r) && io_uring_cq_ready(&r->io) == 0;
}

void uring_ring_enter(struct uring_ring *r)
{
    note(r, io_uring_submit_and_get_events(&r->io));
}

void uring_ring_wait(struct uring_ring *r, int ms)
{
    struct __kernel_timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000ll};
    struct io_uring_cqe *cqe;

    note(r, io_uring_submit_and_wait_timeout(&r->io, &cqe, 1, &time, NULL));
}

bool uring_ring_next(struct uring_ring *r, struct io_uring_cqe *cqe)
{
    struct io_uring_cqe *at;
    unsigned head;

    io_uring_for_each_cqe(&r->io, head, at)
    {
        cqe->user_data = at->user_data;
        cqe->res = at->res;
        cqe->flags = at->flags;
        io_uring_cq_advance(&r->io, 1);
        if ((cqe->user_data & URING_OP_MASK) != URING_CANCEL && !(cqe->flags & IORING_CQE_F_MORE))
            r->outstanding--;
        return true;
    }
    return false;
}

/* --- shared buffers --------------------------------------------------------------------------- */
const uint8_t *uring_ring_buffer(const struct uring_ring *r, const struct io_uring_cqe *cqe)
{
    return r->bytes + (size_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT) * SHARED_BYTES;
}

void uring_ring_give(struct uring_ring *r, const struct io_uring_cqe *cqe)
{
    if (cqe->flags & IORING_CQE_F_BUFFER)
        shared_add(r, cqe->flags >> IORING_CQE_BUFFER_SHIFT);
}

void uring_ring_receive(struct uring_ring *r, struct io_uring_sqe *sqe, int fd)
{
    (void)r;
    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = SHARED_GROUP;
}
