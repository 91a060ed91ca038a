/* A failure detector: one process's part in finding out which of n processes have failed. Pure: no
 * I/O, no clock, no thread, and no allocation after detector_new. Time and messages come in,
 * messages and verdicts go out. Five protocols: heartbeats by the four routings of [FM]
 * (dispatcher/detector/routing.h), and SWIM. docs/detectors.md.
 *
 * Times are in ns of one clock of the caller that goes on while the machine is suspended
 * (CLOCK_BOOTTIME), so that a process that was away finds out. Thread rule: one caller at a time.
 */
#ifndef DISPATCHER_DETECTOR_DETECTOR_H
#define DISPATCHER_DETECTOR_DETECTOR_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DETECTOR_PROCESSES_MAX 4096u      /* of a group */
#define DETECTOR_HEARTBEAT_MAX 0x7fffffff /* a message with a higher one is refused */
#define DETECTOR_MESSAGE_MAX (8u + DETECTOR_PROCESSES_MAX) /* bytes of a message */

enum detector_kind {
    DETECTOR_RANDOM,
    DETECTOR_RR,
    DETECTOR_BRR,
    DETECTOR_DBRR,
    DETECTOR_SWIM,
    DETECTOR_KINDS
};

/* What a detector says of a process, of itself never. */
enum detector_verdict {
    DETECTOR_FAILED, /* it was silent, and did not answer */
    DETECTOR_BACK,   /* it lives, after all, or again */
};

struct detector_config {
    enum detector_kind kind;
    uint32_t self, n;    /* n: 2 to DETECTOR_PROCESSES_MAX */
    uint64_t gossip_ns;  /* T_gossip; the protocol period of SWIM */
    uint64_t hangup_ns;  /* T_max_hangup: how long the network may hang; added to T_cleanup */
    uint64_t ping_ns;    /* for the answer to a ping; without T_max_hangup */
    uint64_t seed;       /* of random choices */
    uint32_t heartbeat;  /* the initial one, detector_initial_heartbeat; at least 1 */
    uint32_t health_max; /* SWIM: Lifeguard's local health has so many steps; 0: it is not used */
};

/* Where a detector's output goes; neither function may call the detector. */
struct detector_out {
    void *ctx;
    /* `bytes` are the detector's, until it returns. */
    void (*send)(void *ctx, uint32_t to, const uint8_t *bytes, size_t size);
    void (*verdict)(void *ctx, uint32_t process, enum detector_verdict verdict);
};

struct detector;

/* Returns NULL without memory. */
struct detector *detector_new(const struct detector_config *config, const struct detector_out *out,
                              uint64_t now_ns);
void detector_free(struct detector *d);

/* When detector_advance has something to do next. */
uint64_t detector_due_ns(const struct detector *d);
/* Sends what is to be sent, and judges. */
void detector_advance(struct detector *d, uint64_t now_ns);
/* Takes a message that process `from` sent. Errors: CW_EPROTO, and nothing is changed: `from` does
 * not keep to the protocol. */
int detector_receive(struct detector *d, uint32_t from, const void *bytes, size_t size,
                     uint64_t now_ns, struct cw_err *err);

const char *detector_name(enum detector_kind kind);

/* How long a process may be silent before it is asked directly, without T_max_hangup; 0 of SWIM,
 * which asks all the time. In units of T_gossip. */
uint32_t detector_cleanup_rounds(enum detector_kind kind, uint32_t n);

/* The heartbeat that process i begins with, so that those who began before it are not ahead.
 * `registered_ns`: T_i, when it registers with its detector, `received_ns`: t_ri, when it received
 * the table of processes, both by its clock; `sent_ns`: Δt_i = t_si - t_s1, how much later than to
 * the first process the submitter sent it that table. The submitter itself gives t_s1 and 0. */
uint32_t detector_initial_heartbeat(uint64_t registered_ns, uint64_t received_ns, uint64_t sent_ns,
                                    uint64_t gossip_ns);

#endif
