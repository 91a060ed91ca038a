/* The device's life: setup from the dispatcher, session with the relay, farewell. */
#include "rdevice/device.h"
#include "common/clock.h"
#include "common/hello.h"
#include "common/transport.h"
#include "rdevice/arena.h"
#include "rdevice/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HANDSHAKE_MS 20000
#define FAREWELL_NS 20000000000ull
#define REPORT_WAIT_MS 2000 /* how long the dispatcher has to end us after a report */

/* Returns false when the dispatcher cannot be told. */
static bool report(uint32_t kind, const char *text)
{
    uint8_t bytes[CW_REPORT_HEADER + CW_TEXT_MAX];
    size_t size = cw_report_put(bytes, kind, text, strnlen(text, CW_TEXT_MAX));

    return device.control_fd >= 0 &&
           send(device.control_fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

/* The dispatcher speaks for all ranks; only without it does the process speak for itself. */
void device_fatal(uint32_t kind, const char *fmt, ...)
{
    char text[CW_TEXT_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (report(kind, text))
        poll(NULL, 0, REPORT_WAIT_MS);
    else
        dprintf(STDERR_FILENO, "causeway: rank %u: %s\n", device.setup.rank, text);
    _exit(CW_EXIT_DEVICE);
}

void device_drill(void)
{
    report(CW_REPORT_DRILL, "");
    raise(SIGKILL);
    abort(); /* nobody survives SIGKILL */
}

void *device_alloc(size_t size)
{
    void *at = arena_alloc(size);

    if (!at)
        device_fatal(CW_REPORT_FATAL, "the device's memory is spent, while %zu bytes were needed",
                     size);
    return at;
}

static void read_setup(void)
{
    const char *text = getenv(CW_SETUP_ENV);
    uint8_t *record = device.setup_record;
    ssize_t n;

    if (!text)
        device_fatal(CW_REPORT_FATAL,
                     "librdevice.so is loaded, but this process was not started by "
                     "causeway run (" CW_SETUP_ENV " is not set)");
    device.control_fd = atoi(text);
    n = recv(device.control_fd, record, sizeof(device.setup_record), MSG_DONTWAIT);
    if (n < 0 || !cw_setup_get(record, (size_t)n, &device.setup))
        device_fatal(CW_REPORT_FATAL, "reading the setup of this rank from descriptor %d: %s",
                     device.control_fd,
                     n < 0 ? strerror(errno)
                           : "not a setup record (MPI_Init was called by another process before?)");
    sodium_memzero(record, sizeof(device.setup_record));
}

static void open_session(void)
{
    struct cw_hello hello = {
        .role = CW_ROLE_RANK, .rank = device.setup.rank, .incarnation = device.setup.incarnation};
    struct cw_welcome welcome;
    struct cw_err err = {0};

    memcpy(hello.job, device.setup.job, sizeof(hello.job));
    if (cw_hello_open(&device.wire, &device.session, &hello, device.setup.key, HANDSHAKE_MS,
                      &welcome, &err) < 0)
        device_fatal(err.code == CW_ECLOSED ? CW_REPORT_RELAY_LOST : CW_REPORT_FATAL,
                     "relay %s: %s", device.setup.address, err.text);
    sodium_memzero(device.setup.key, sizeof(device.setup.key));
    device.logged = welcome.flags & CW_WELCOME_LOG;
    replay_begin(&welcome);
}

static void unlogged(uint32_t why)
{
    if (!device.logged)
        return;
    device.logged = false;
    cw_unlogged_put(output_frame(CW_FRAME_UNLOGGED, CW_UNLOGGED_SIZE), why);
    output_flush();
}

void device_second_thread(void)
{
    device.threads = true;
    clock_attach(false);
    unlogged(CW_UNLOGGED_THREADS);
}

/* What the program's clocks said before there was a relay to log it: the dispatcher keeps it for
 * the next incarnation. */
static void report_early(void)
{
    uint8_t *report = device_alloc(CW_SETUP_MAX);
    size_t size;
    bool overflow;
    const uint8_t *early = clock_early(&size, &overflow);

    if (overflow) {
        unlogged(CW_UNLOGGED_READINGS);
    } else if (device.logged && size > device.setup.early_size) {
        size = cw_report_put(report, CW_REPORT_EARLY, early, size);
        if (send(device.control_fd, report, size, MSG_NOSIGNAL) != (ssize_t)size)
            device_fatal(CW_REPORT_FATAL, "telling the dispatcher what the clocks said: %s",
                         strerror(errno));
    }
    arena_free(report, CW_SETUP_MAX);
}

void device_open(void)
{
    struct cw_address address;
    struct cw_err err;

    clock_pause();
    read_setup();
    if (arena_init() < 0)
        device_fatal(CW_REPORT_FATAL, "no address space for the device; is 'ulimit -v' set?");
    device.in = device_alloc(DEVICE_IN_BYTES);
    device.out = device_alloc(DEVICE_OUT_BYTES);
    device.happened_tail = &device.happened;
    device.thread = pthread_self();
    if (cw_address_parse(&address, device.setup.address, &err) < 0)
        device_fatal(CW_REPORT_FATAL, "%s", err.text);
    device.wire.fd = cw_connect(&address, &err);
    if (device.wire.fd < 0)
        device_fatal(CW_REPORT_RELAY_LOST, "%s", err.text);
    device.wire.calls = &device.stats.syscalls;
    cw_wire_want(&device.wire, ARENA_RINGS);
    open_session();
    if (!clock_is_mine())
        device_second_thread();
    report_early();
    clock_attach(device.logged);
}

void device_close(void)
{
    uint64_t since = cw_clock_ns();
    struct rusage usage;

    replay_finish();
    output_readings();
    clock_pause();
    getrusage(RUSAGE_SELF, &usage);
    device.stats.switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
    cw_bye_put(output_frame(CW_FRAME_BYE, CW_BYE_SIZE), &device.stats);
    output_flush();
    while (!device.farewell) {
        if (input_read())
            continue;
        if (cw_clock_ns() - since > FAREWELL_NS)
            device_fatal(CW_REPORT_FATAL, "relay %s: no FAREWELL for %llu s", device.setup.address,
                         FAREWELL_NS / 1000000000ull);
        wait_socket(false, since);
    }
    close(device.wire.fd);
    device.wire.fd = -1;
    cw_wire_close(&device.wire);
}
