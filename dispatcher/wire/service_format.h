/* What is said about a service of a grid: requests to a host (NODE_ASK), and its answers;
 * docs/protocol.md, "Questions to hosts". Pure: no I/O. */
#ifndef DISPATCHER_SERVICE_FORMAT_H
#define DISPATCHER_SERVICE_FORMAT_H

#include "common/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVICE_TEXT_MAX 300u     /* bytes of a text of an answer; cut */
#define SERVICE_ADDRESS_MAX 1000u /* bytes of where it listens */
#define SERVICE_NAME_MAX 63u      /* bytes of the name of a service, site, grid or file */
#define SERVICE_WORDS_MAX 128u    /* of its command */
#define SERVICE_WORD_MAX 4000u    /* bytes of one of them */
#define SERVICE_FILES_MAX 4u      /* that it is given */
#define SERVICE_LOG_LINES_MAX 5u  /* of its log, that are shown */

/* --- requests ---
 * "op": "start", "stop" or "look"; "grid", "site", "service". To start it also:
 * "program": "causeway" or "ssh"; "argv": what follows that; "env": an object of texts; "files": an
 * object of texts, which are written into the service's directory, where the program begins;
 * "address": where it can be reached, for people;
 * "ready": "descriptor": the program gets --ready-fd and says there that it is ready; "forward":
 * it is ssh, and forwards a port of the other side;
 * "again": true: it is started again when it ends. */

/* Error: CW_EPROTO: the object is none, naming what was expected. */
int service_request_check(const json_t *request, struct cw_err *err);

/* Text of a key that was checked so. */
const char *service_text(const json_t *request, const char *key);

/* --- answers --- */

enum service_state {
    SERVICE_STOPPED, /* and nothing is left of it */
    SERVICE_RUNS,
    SERVICE_WAITS,  /* it ended, and is started again */
    SERVICE_FAILED, /* it ended by itself, or was killed */
    SERVICE_STATES
};

extern const char *const service_state_words[SERVICE_STATES];

struct service_answer {
    enum service_state state;
    bool well;      /* what was asked for is so now */
    uint64_t pid;   /* of who keeps it; 0: nobody */
    uint64_t since; /* when it was started, in seconds of CLOCK_REALTIME; 0: not known */
    char version[SERVICE_TEXT_MAX + 1]; /* of Causeway, by which it was started */
    char address[SERVICE_ADDRESS_MAX + 1];
    char why[SERVICE_TEXT_MAX + 1];                        /* it waits or failed */
    char note[SERVICE_TEXT_MAX + 1];                       /* what was done, or why not */
    char log[SERVICE_LOG_LINES_MAX][SERVICE_TEXT_MAX + 1]; /* the last lines; `log_lines` of them */
    uint32_t log_lines;
};

/* The caller's; NULL: no memory. */
json_t *service_answer_put(const struct service_answer *answer);

/* Whatever the object is, texts that are kept are printable and terminated. Error: CW_EPROTO. */
int service_answer_get(struct service_answer *answer, const json_t *object, struct cw_err *err);

/* Copies as much as fits into SERVICE_TEXT_MAX, and '?' for what is not printable ASCII. */
void service_text_copy(char to[SERVICE_TEXT_MAX + 1], const char *from);

#endif
