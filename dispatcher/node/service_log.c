#include "dispatcher/node/service_log.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIME_BYTES 32

static int begin(struct service_log *log, struct cw_err *err)
{
    char before[PATH_MAX];

    if (snprintf(before, sizeof(before), "%s.1", log->path) < (int)sizeof(before))
        rename(log->path, before);
    log->size = 0;
    log->fd = open(log->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return log->fd >= 0 ? CW_OK
                        : cw_err_set(err, CW_ESYS, "the log %s: %s", log->path, strerror(errno));
}

int service_log_open(struct service_log *log, const char *dir, struct cw_err *err)
{
    log->fd = -1;
    log->used = 0;
    log->last[0] = '\0';
    if (snprintf(log->path, sizeof(log->path), "%s/log", dir) >= (int)sizeof(log->path))
        return cw_err_set(err, CW_EINVAL, "the log %s: the name is too long", dir);
    return begin(log, err);
}

void service_log_close(struct service_log *log)
{
    cw_close(&log->fd);
}

static void put(struct service_log *log, const char *text)
{
    char moment[TIME_BYTES];
    time_t now = time(NULL);
    struct cw_err ignored;
    struct tm utc;
    int size;

    if (log->size + TIME_BYTES + SERVICE_LOG_LINE_MAX > SERVICE_LOG_MAX) {
        service_log_close(log);
        begin(log, &ignored);
    }
    strftime(moment, sizeof(moment), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    size = dprintf(log->fd, "%s %.*s\n", moment, (int)SERVICE_LOG_LINE_MAX, text);
    log->size += size > 0 ? size : 0;
}

void service_log_say(struct service_log *log, const char *fmt, ...)
{
    char text[SERVICE_LOG_LINE_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    put(log, text);
}

static void end_line(struct service_log *log, bool (*wanted)(void *ctx, const char *line),
                     void *ctx)
{
    log->line[log->used] = '\0';
    log->used = 0;
    if (!log->line[0] || !wanted(ctx, log->line))
        return;
    strcpy(log->last, log->line);
    put(log, log->line);
}

void service_log_take(struct service_log *log, const char *bytes, size_t size,
                      bool (*wanted)(void *ctx, const char *line), void *ctx)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == '\n')
            end_line(log, wanted, ctx);
        else if (bytes[i] != '\r' && bytes[i] && log->used < SERVICE_LOG_LINE_MAX)
            log->line[log->used++] = bytes[i];
}

void service_log_tail(const char *dir, struct service_answer *a)
{
    char path[PATH_MAX], line[TIME_BYTES + SERVICE_LOG_LINE_MAX + 2];
    FILE *from = NULL;

    if (snprintf(path, sizeof(path), "%s/log", dir) < (int)sizeof(path))
        from = fopen(path, "re");
    while (from && fgets(line, sizeof(line), from)) {
        if (a->log_lines == SERVICE_LOG_LINES_MAX) {
            a->log_lines--;
            memmove(a->log[0], a->log[1], a->log_lines * sizeof(a->log[0]));
        }
        line[strcspn(line, "\n")] = '\0';
        service_text_copy(a->log[a->log_lines++], line);
    }
    if (from)
        fclose(from);
}
