#include "rdevice/restorer/report.h"

#include "rdevice/image/handoff.h"
#include "rdevice/image/system.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

static int control = -1;
static bool named;
static uint32_t name_rank, name_number;

static struct {
    uint32_t kind, reserved;
    char text[HANDOFF_TEXT_MAX];
} report;
static size_t used;

void report_to(int control_fd)
{
    control = control_fd;
}

void report_name(uint32_t rank, uint32_t number)
{
    named = true;
    name_rank = rank;
    name_number = number;
}

static void put_text(const char *text)
{
    for (; *text && used < sizeof(report.text); text++)
        report.text[used++] = *text;
}

static void put_number(uint64_t value, unsigned base)
{
    char digits[24];
    int n = sizeof(digits) - 1;

    digits[n] = '\0';
    do
        digits[--n] = "0123456789abcdef"[value % base];
    while ((value /= base) > 0);
    put_text(digits + n);
}

static void put_error(long error)
{
    static const struct {
        int number;
        const char *text;
    } known[] = {
        {ENOENT, "it does not exist"},     {EACCES, "permission denied"},
        {EPERM, "not permitted"},          {ENOMEM, "out of memory"},
        {EEXIST, "the place is taken"},    {EMFILE, "too many open files"},
        {EIO, "input/output error"},       {EINVAL, "invalid argument"},
        {ECONNRESET, "connection reset"},  {ENOSYS, "this kernel does not know it"},
        {ETXTBSY, "it is being executed"}, {EAGAIN, "nothing came in time"},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].number == -error) {
            put_text(known[i].text);
            return;
        }
    put_text("error ");
    put_number((uint64_t)-error, 10);
}

static void put_signed(int64_t value)
{
    if (value < 0)
        put_text("-");
    put_number(value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

static void put_formatted(const char *what, va_list ap)
{
    for (; *what; what++) {
        if (*what != '%' || what[1] == '\0') {
            char c[2] = {*what, '\0'};

            put_text(c);
            continue;
        }
        switch (*++what) {
        case 's':
            put_text(va_arg(ap, const char *));
            break;
        case 'd':
            put_signed(va_arg(ap, int64_t));
            break;
        case 'x':
            put_number(va_arg(ap, uint64_t), 16);
            break;
        case 'e':
            put_error(va_arg(ap, long));
            break;
        }
    }
}

static void __attribute__((noreturn)) end(uint32_t kind, const char *what, va_list ap)
{
    report.kind = kind;
    put_text("cannot restore ");
    if (named) {
        put_text("rank ");
        put_number(name_rank, 10);
        put_text(" from image ");
        put_number(name_number, 10);
    } else {
        put_text("a rank from an image");
    }
    put_text(": ");
    put_formatted(what, ap);
    if (control < 0)
        system_call(SYS_write, 2, report.text, used);
    system_call(SYS_sendto, control, &report, offsetof(typeof(report), text) + used, MSG_NOSIGNAL,
                0, 0);
    for (;;)
        system_call(SYS_exit_group, HANDOFF_EXIT);
}

void report_end(const char *what, ...)
{
    va_list ap;

    va_start(ap, what);
    end(HANDOFF_REPORT, what, ap);
}

void report_break(const char *what, ...)
{
    va_list ap;

    va_start(ap, what);
    end(HANDOFF_BROKE_OFF, what, ap);
}
