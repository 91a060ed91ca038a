/* What `causeway doctor --report` tells of its host: lines, after a text behind which they are
 * found. First facts and findings, up to "ready"; then an answer to each request. Whoever wrote
 * the bytes, no more than a bounded number of them is taken, and what is kept is printable.
 * docs/protocol.md, "Reports of hosts". Pure. */
#ifndef DISPATCHER_REPORT_H
#define DISPATCHER_REPORT_H

#include "common/err.h"
#include "common/marker.h"
#include "dispatcher/doctor/findings.h"

#define REPORT_MARKER "\nCAUSEWAY-REPORT:58d3\n"
#define REPORT_LINE_MAX 2048u    /* bytes of a line; more of it is cut */
#define REPORT_BYTES_MAX 262144u /* of a report, with all answers */
#define REPORT_TEXT_MAX 512u     /* bytes of a fact; cut */
#define REPORT_FEATURE_WORDS 8   /* as of struct cw_image_header */

/* What a processor can do, as images record it. */
struct report_features {
    bool known;
    uint32_t word[REPORT_FEATURE_WORDS];
    uint64_t xcr0;
};

/* "done NUMBER", or "failed TEXT" */
struct report_answer {
    bool well;
    uint64_t value; /* 0: none came */
    char text[REPORT_TEXT_MAX + 1];
};

struct report {
    struct marker marker;
    bool begun; /* the text has come */
    bool ready; /* all facts and findings have */
    size_t bytes;
    size_t used; /* of the line that comes */
    char line[REPORT_LINE_MAX + 1];
    /* facts; "" and 0 until they come */
    char version[REPORT_TEXT_MAX + 1];
    char path[REPORT_TEXT_MAX + 1]; /* of causeway */
    char name[REPORT_TEXT_MAX + 1]; /* of the host, as it says itself */
    char machine[REPORT_TEXT_MAX + 1];
    char mpich[REPORT_TEXT_MAX + 1];  /* version */
    char peer[REPORT_TEXT_MAX + 1];   /* from where it was reached, as of SSH_CONNECTION ... */
    char own[REPORT_TEXT_MAX + 1];    /* ... and where */
    char system[REPORT_TEXT_MAX + 1]; /* as of cw_machine_read */
    uint64_t cores;
    uint64_t memory_mb; /* that is free */
    struct report_features features;
    struct findings findings;    /* those that are not well */
    uint32_t answers;            /* that have come */
    struct report_answer answer; /* the last of them */
};

void report_init(struct report *report);
void report_free(struct report *report);

/* Takes what comes. Error: CW_EPROTO: it is too much, or no report. */
int report_take(struct report *report, const void *bytes, size_t size, struct cw_err *err);

#endif
