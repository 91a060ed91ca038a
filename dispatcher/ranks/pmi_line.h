/* PMI-1 ("simple PMI"): the lines that MPICH writes to the descriptor named by PMI_FD and reads
 * there, "cmd=put kvsname=... key=... value=...", and what they mean (pmi.h). Pure. */
#ifndef DISPATCHER_PMI_LINE_H
#define DISPATCHER_PMI_LINE_H

#include "common/err.h"
#include "dispatcher/ranks/pmi.h"

#define PMI_LINE_MAX 1024 /* bytes of a line, its newline counted; the client's PMIU_MAXLINE */
#define PMI_KEYLEN_MAX 256
/* What is left of a line for the value of "cmd=put kvsname=... key=... value=...". The client would
 * compute the same from a larger number; a value of that size would not fit its lines. */
#define PMI_VALLEN_MAX (PMI_LINE_MAX - PMI_KVSNAME_MAX - PMI_KEYLEN_MAX - 30)
#define PMI_FIELDS_MAX 8 /* key=value pairs of a line; no command has more than four */
#define PMI_SPAWN_LINES_MAX (64u << 10) /* lines of one mcmd=spawn */

/* What one process of a rank has not yet said to its end. All zeros: it begins. */
struct pmi_lines {
    char text[PMI_LINE_MAX];
    size_t used;
    bool spawning; /* inside mcmd=spawn ... endcmd */
    uint32_t spawn_lines;
    long spawns_total;
    long spawns_sofar;
};

/* Takes bytes as they came from the rank's descriptor, split anywhere, and asks what they mean.
 * Errors: CW_EPROTO (a line that is none, or not allowed now); the text names the rank and quotes
 * the line. What followed the bad line is dropped: end the rank. */
int pmi_lines_take(struct pmi_lines *lines, struct pmi *pmi, struct cw_process process,
                   const char *bytes, size_t size, struct cw_err *err);

/* Whether the process is in the middle of a request. */
static inline bool pmi_lines_are_open(const struct pmi_lines *lines)
{
    return lines->used || lines->spawning;
}

/* Writes the answer as a line, which ends in a newline. Returns its size. */
size_t pmi_line_put(char line[PMI_LINE_MAX], const struct pmi_answer *answer);

#endif
