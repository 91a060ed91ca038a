/* What a dispatcher tells the R-device of a rank it starts, over a descriptor that the process
 * inherits (environment variable CAUSEWAY_FD): one SETUP datagram. The device answers on the same
 * socket with REPORT datagrams when it cannot go on. docs/protocol.md, "Setup". */
#ifndef CW_SETUP_H
#define CW_SETUP_H

#include "common/frame.h"

#define CW_SETUP_ENV "CAUSEWAY_FD"
#define CW_SETUP_ADDRESS_MAX 300
#define CW_EARLY_MAX                                                                               \
    (64u << 10) /* bytes of readings before MPI_Init; docs/protocol.md, "Readings" */
#define CW_SETUP_MAX (512u + CW_EARLY_MAX)
#define CW_EXIT_DEVICE 113 /* exit code of a process whose device gave up; the report says why */

struct cw_setup {
    uint8_t job[CW_ID_SIZE];
    uint32_t rank;
    uint32_t ranks;
    uint32_t incarnation;
    uint8_t key[CW_KEY_SIZE]; /* of this rank and incarnation */
    uint64_t spin_ns;         /* how long to look again before sleeping */
    uint64_t fault_event; /* a drill: the process kills itself when it takes this event; 0: none */
    char address[CW_SETUP_ADDRESS_MAX]; /* of the home relay */
    const uint8_t *early; /* what an earlier incarnation read before MPI_Init; borrowed */
    uint32_t early_size;
};

enum cw_report_kind {
    CW_REPORT_RELAY_LOST = 1, /* the connection to the relay broke */
    CW_REPORT_FATAL = 2,
    CW_REPORT_EARLY = 3, /* the bytes are what was read before MPI_Init, not text */
    CW_REPORT_DRILL = 4, /* it kills itself now, as fault_event says */
};

struct cw_report {
    uint32_t kind;
    char text[CW_TEXT_MAX + 1]; /* terminated, printable; but for EARLY */
    const uint8_t *early;       /* for EARLY: points into what was read */
    size_t early_size;
};
#define CW_REPORT_HEADER 8u

/* Encode into CW_SETUP_MAX bytes; return the size used. `size` bytes at most CW_EARLY_MAX for
 * EARLY, else CW_TEXT_MAX. */
size_t cw_setup_put(uint8_t *to, const struct cw_setup *v);
size_t cw_report_put(uint8_t *to, uint32_t kind, const void *bytes, size_t size);

/* False when the bytes are not what they should be. What `early` points to is in `from`. */
bool cw_setup_get(const uint8_t *from, size_t size, struct cw_setup *v);
bool cw_report_get(const uint8_t *from, size_t size, struct cw_report *v);

#endif
