/* What a host answers to the question of `causeway doctor` (NODE_ASK, "check"): facts and
 * findings. Whoever wrote it, what is kept is bounded and printable. docs/protocol.md, "Questions
 * to hosts". Pure. */
#ifndef DISPATCHER_HOST_REPORT_H
#define DISPATCHER_HOST_REPORT_H

#include "dispatcher/doctor/findings.h"

#include <jansson.h>
#include <stdint.h>

#define HOST_REPORT_TEXT_MAX 512u   /* bytes of a fact; cut */
#define HOST_REPORT_FEATURE_WORDS 8 /* as of struct cw_image_header */

struct host_report {
    char path[HOST_REPORT_TEXT_MAX + 1]; /* of causeway; "" and 0 for what did not come */
    char machine[HOST_REPORT_TEXT_MAX + 1];
    char mpich[HOST_REPORT_TEXT_MAX + 1]; /* version */
    uint64_t memory_mb;                   /* that is free */
    /* what its processor can do, as images record it */
    bool features_known;
    uint32_t features[HOST_REPORT_FEATURE_WORDS];
    uint64_t xcr0;
};

/* The caller's; NULL: no memory. Nobody asks for what is well: there is much of it. */
json_t *host_report_put(const struct host_report *report, const struct findings *findings);

void host_report_get(struct host_report *report, const json_t *object);
void host_report_get_findings(const json_t *object, struct findings *findings);

#endif
