/* What a dispatcher tells the R-device of a rank it starts, over a descriptor that the process
 * inherits (environment variable CAUSEWAY_FD): one SETUP datagram. The device answers on the same
 * socket with REPORT datagrams when it cannot go on. docs/protocol.md, "Setup". */
#ifndef CW_SETUP_H
#define CW_SETUP_H

#include "common/frame.h"

#define CW_SETUP_ENV "CAUSEWAY_FD"
#define CW_SETUP_ADDRESS_MAX 300
#define CW_SETUP_MAX 512
#define CW_EXIT_DEVICE 113 /* exit code of a process whose device gave up; the report says why */

struct cw_setup {
    uint8_t job[CW_ID_SIZE];
    uint32_t rank;
    uint32_t ranks;
    uint32_t incarnation;
    uint8_t key[CW_KEY_SIZE];           /* of this rank and incarnation */
    uint64_t spin_ns;                   /* how long to look again before sleeping */
    char address[CW_SETUP_ADDRESS_MAX]; /* of the home relay */
};

enum cw_report_kind {
    CW_REPORT_RELAY_LOST = 1, /* the connection to the relay broke */
    CW_REPORT_FATAL = 2,
};

struct cw_report {
    uint32_t kind;
    char text[CW_TEXT_MAX + 1]; /* terminated, printable */
};

/* Encode into CW_SETUP_MAX bytes; return the size used. */
size_t cw_setup_put(uint8_t *to, const struct cw_setup *v);
size_t cw_report_put(uint8_t *to, uint32_t kind, const char *text);

/* False when the bytes are not what they should be. */
bool cw_setup_get(const uint8_t *from, size_t size, struct cw_setup *v);
bool cw_report_get(const uint8_t *from, size_t size, struct cw_report *v);

#endif
