#include "rdevice/libc_ask.h"
#include "rdevice/device.h"

#include <errno.h>

static bool read_on(void)
{
    sigset_t mask;
    bool more;

    clock_device_enter(&mask);
    more = device_readings_wanted();
    clock_device_leave(&mask);
    return more;
}

/* A program may do nothing for long that the device sees, after it was given the last of its log.
 */
static void tell_used_up(void)
{
    sigset_t mask;

    clock_device_enter(&mask);
    device_readings_used();
    clock_device_leave(&mask);
}

enum clock_answer libc_ask_closely(struct clock_reading *reading, uintptr_t caller)
{
    int error = errno;
    enum clock_answer answer = clock_ask(reading, caller);

    while (answer == CLOCK_MORE)
        answer = clock_ask_again(reading, read_on());
    if ((answer == CLOCK_GIVEN || answer == CLOCK_FAILED) && clock_is_streaming() &&
        clock_unrepeated() == 0)
        tell_used_up();
    errno = answer == CLOCK_FAILED ? (int)reading->number : error;
    return answer;
}

__attribute__((noinline, cold)) void libc_record_when_full(const struct clock_reading *reading)
{
    int error = errno;
    sigset_t mask;

    if (clock_is_full()) {
        clock_device_enter(&mask);
        if (clock_is_recording()) {
            device_send_readings();
            clock_record_rest(reading);
        }
        clock_device_leave(&mask);
        clock_recorded();
    }
    errno = error;
}

void libc_log(void)
{
    int error = errno;
    sigset_t mask;

    if (clock_is_streaming()) {
        clock_device_enter(&mask);
        if (clock_is_recording())
            device_send_readings();
        clock_device_leave(&mask);
    }
    errno = error;
}

void libc_record_failure(void)
{
    struct clock_reading reading = {.kind = READING_FAILED, .number = errno};

    libc_record(&reading);
}
