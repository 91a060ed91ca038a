/* The log of a service: what its program prints, each line with its time, in a file of bounded
 * size; the one before it is kept ("log.1"). */
#ifndef DISPATCHER_SERVICE_LOG_H
#define DISPATCHER_SERVICE_LOG_H

#include "dispatcher/wire/service_format.h"

#include <limits.h>
#include <sys/types.h>

#define SERVICE_LOG_MAX (1 << 20)  /* bytes of a file */
#define SERVICE_LOG_LINE_MAX 2000u /* bytes of a line; cut */

struct service_log {
    char path[PATH_MAX];
    int fd; /* -1: there is none */
    off_t size;
    char line[SERVICE_LOG_LINE_MAX + 1]; /* that comes */
    size_t used;
    char last[SERVICE_LOG_LINE_MAX + 1]; /* that came */
};

/* Begins a log in the directory; what was there becomes the one before. Error: CW_ESYS. */
int service_log_open(struct service_log *log, const char *dir, struct cw_err *err);
void service_log_close(struct service_log *log);

/* One line of our own. Where a disk takes none, it is lost. */
void service_log_say(struct service_log *log, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* What the program prints. Each whole line goes to wanted(ctx), and into the log if that returns
 * true. */
void service_log_take(struct service_log *log, const char *bytes, size_t size,
                      bool (*wanted)(void *ctx, const char *line), void *ctx);

/* Reads the last lines, for an answer. */
void service_log_tail(const char *dir, struct service_answer *answer);

#endif
