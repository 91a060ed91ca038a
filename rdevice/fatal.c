#include "rdevice/fatal.h"
#include "rdevice/next.h"
#include "rdevice/trace.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPORT_WAIT_MS 2000 /* how long the dispatcher has to end us after a report */

static int control_fd = -1;
static uint32_t rank;

void fatal_begin(int fd, uint32_t of_rank)
{
    control_fd = fd;
    rank = of_rank;
}

/* Returns false when the dispatcher cannot be told. */
static bool report(uint32_t kind, const char *text)
{
    uint8_t bytes[CW_REPORT_HEADER + CW_TEXT_MAX];
    size_t size = cw_report_put(bytes, kind, text, strnlen(text, CW_TEXT_MAX));

    return control_fd >= 0 &&
           send(control_fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

void fatal_exit(uint32_t kind, const char *fmt, ...)
{
    char text[CW_TEXT_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    trace_end(text);
    if (report(kind, text))
        NEXT(poll)(NULL, 0, REPORT_WAIT_MS);
    else
        dprintf(STDERR_FILENO, "causeway: rank %u: %s\n", rank, text);
    _exit(CW_EXIT_DEVICE);
}

void fatal_tell(uint32_t kind, const char *text)
{
    report(kind, text);
}

void fatal_drill(void)
{
    report(CW_REPORT_DRILL, "");
    raise(SIGKILL);
    abort(); /* no process survives SIGKILL */
}
