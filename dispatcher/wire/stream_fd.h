/* A descriptor at one end of a stream (dispatcher/wire/mux.h), in a loop: what is read there is
 * sent, and what comes is written there. Never waits. */
#ifndef DISPATCHER_STREAM_FD_H
#define DISPATCHER_STREAM_FD_H

#include "common/loop.h"
#include "dispatcher/wire/mux.h"

struct stream_fd;

/* Each may be NULL. */
struct stream_fd_ops {
    /* Asked before something is read that is there, at a socket: a record, or some bytes, then
     * `record` is NULL. False: it is to wait; stream_fd_pull asks again. */
    bool (*may_pass)(void *ctx, const uint8_t *record, size_t size);
    /* A record that was read, which can be changed. */
    void (*pass)(void *ctx, uint8_t *record, size_t size);
    /* Something was read, written, or came to its end. */
    void (*moved)(void *ctx);
    /* So many bytes were written, between these times of the monotonic clock. */
    void (*wrote)(void *ctx, size_t size, uint64_t from_ns, uint64_t until_ns);
    /* Both directions are over, and the descriptor is closed. The memory is to be freed later, not
     * from inside. */
    void (*closed)(void *ctx);
};

struct stream_fd_config {
    struct loop *loop; /* borrowed, as all here but fd */
    struct mux *mux;
    uint32_t id;
    int fd; /* taken over: non-blocking; a pipe or a socket */
    bool reads;
    bool writes;
    bool records; /* it is a SOCK_SEQPACKET, to be read: of at most `record_max` bytes */
    uint32_t record_max;
    const struct stream_fd_ops *ops;
    void *ctx;
};

/* Bytes that came and could not be written yet. */
struct stream_fd_held {
    uint8_t *bytes;
    size_t at;
    size_t end;
    size_t room;
};

/* In the owner's memory, at one place from stream_fd_open to closed() or stream_fd_drop(). */
struct stream_fd {
    struct stream_fd_config config;
    struct mux_stream stream;
    struct loop_watch watch;
    struct stream_fd_held held;
    int fd; /* -1: it is closed */
    bool is_socket;
    bool over;      /* closed() was called */
    bool reads;     /* more is to be read */
    bool writes;    /* more is to be written */
    bool last_came; /* ... but no more will come */
    bool waits;     /* may_pass() refused what is to be read */
    uint64_t read;  /* bytes, until now */
};

/* It is closed. */
void stream_fd_init(struct stream_fd *s);

/* Errors: CW_ESYS: the descriptor cannot be watched; it is closed. */
int stream_fd_open(struct stream_fd *s, const struct stream_fd_config *config, struct cw_err *err);
bool stream_fd_is_open(const struct stream_fd *s);

/* Reads what there is room for. Returns whether all is read that is there now. */
bool stream_fd_pull(struct stream_fd *s);

/* Writes what has come. Returns whether all is written. */
bool stream_fd_push(struct stream_fd *s);

/* How many bytes have come and are not written yet. */
size_t stream_fd_unwritten(const struct stream_fd *s);

/* How many bytes were ever written into the socket or pipe that is read here. */
uint64_t stream_fd_given(const struct stream_fd *s);

/* The descriptor is closed, whatever was to be done with it; the stream ends by itself. */
void stream_fd_close(struct stream_fd *s);

/* ... and the other side does not know of the stream, or there is no other side any more: closed()
 * is not called. */
void stream_fd_drop(struct stream_fd *s);

#endif
