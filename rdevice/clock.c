/* Which readings are recorded, and which are repeated.
 *
 * Design, section 6: "Clock reads are determinants too", those before MPI_Init as well. They go to
 * a buffer of their own, which the dispatcher keeps and gives to later incarnations with their
 * setup; those after it go to the relay, in the order in which they and the events were taken. */
#include "rdevice/clock.h"
#include "common/clock.h"
#include "rdevice/clock_state.h"
#include "rdevice/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum mode {
    MODE_OFF,    /* everything passes through */
    MODE_RECORD, /* answers are real, and appended to clock_written */
    MODE_REPEAT, /* answers are those in `repeated`, as long as there are any */
};

static struct {
    enum mode mode;
    bool begun;
    bool attached; /* to the stream; before: the early buffer */
    bool paused;
    bool busy;     /* inside clock_ask_closely(): a signal handler that asks passes through */
    bool overflow; /* of the early buffer */
    bool early_differs;
    uint8_t asked_kind; /* ... in what */
    uint8_t early_kind;
    uintptr_t owner; /* the thread */
    pid_t pid;
    size_t early_size; /* kept when the stream begins */
} state;

#define UCX_LIBRARIES 3
static struct {
    int count;
    uintptr_t start[UCX_LIBRARIES];
    uintptr_t size[UCX_LIBRARIES];
    unsigned long long libraries_seen; /* how many the process had loaded */
} ucx;

/* Also where the setup is looked at before MPI_Init: its readings are in it. */
static uint8_t early_bytes[CW_SETUP_MAX];
static uint8_t stream_bytes[CW_READINGS_MAX];
static struct readings_reader repeated;
struct readings_writer clock_written;
struct clock_real clock_real;
uintptr_t clock_recorder;

_Static_assert(CW_EARLY_MAX <= CW_SETUP_MAX, "a setup holds them");

static inline uintptr_t this_thread(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

uint64_t cw_clock_ns(void)
{
    struct timespec t;

    clock_real.clock_gettime(CLOCK_MONOTONIC, &t);
    return cw_timespec_ns(&t);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* A pointer to a function is not an object pointer in C, but is for dlsym(). */
static void resolve(void *pointer, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    memcpy(pointer, &symbol, sizeof(symbol));
}

static void resolve_all(void)
{
    resolve(&clock_real.clock_gettime, "clock_gettime");
    resolve(&clock_real.gettimeofday, "gettimeofday");
    resolve(&clock_real.time, "time");
    resolve(&clock_real.clock, "clock");
    resolve(&clock_real.times, "times");
    resolve(&clock_real.timespec_get, "timespec_get");
    resolve(&clock_real.getrusage, "getrusage");
    resolve(&clock_real.getrandom, "getrandom");
    resolve(&clock_real.getentropy, "getentropy");
    resolve(&clock_real.arc4random_buf, "arc4random_buf");
    resolve(&clock_real.arc4random_uniform, "arc4random_uniform");
}

/* UCX's constructors compare the processor's counter with gettimeofday, in a number of calls that
 * differs from run to run. This device replaces UCX, so that nothing of it reaches the program:
 * what it reads is no determinant. It reads only there; so nobody looks for it once the device is
 * open. */
static bool is_ucx(const char *path)
{
    static const char *const names[UCX_LIBRARIES] = {"libucs.so", "libuct.so", "libucm.so"};
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < UCX_LIBRARIES; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int on_library(struct dl_phdr_info *info, size_t size, void *context)
{
    uintptr_t end = 0;

    (void)size;
    (void)context;
    if (info->dlpi_adds == ucx.libraries_seen)
        return 1; /* none has come since */
    if (!is_ucx(info->dlpi_name))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    ucx.start[ucx.count] = info->dlpi_addr;
    ucx.size[ucx.count] = end;
    return ++ucx.count == UCX_LIBRARIES;
}

static int on_first_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    *(unsigned long long *)context = info->dlpi_adds;
    return 1;
}

/* Looks again until UCX is there: a program may load MPICH late, as Python does. */
static bool is_ucx_call(uintptr_t caller)
{
    if (ucx.count == 0) {
        dl_iterate_phdr(on_library, NULL);
        dl_iterate_phdr(on_first_library, &ucx.libraries_seen);
    }
    for (int i = 0; i < ucx.count; i++)
        if (caller - ucx.start[i] < ucx.size[i])
            return true;
    return false;
}

/* The setup waits for device_open(): only looked at. What an earlier incarnation read before
 * MPI_Init stands in it; the rest, with a key, is wiped. */
static size_t peek_early(int fd)
{
    ssize_t n = recv(fd, early_bytes, sizeof(early_bytes), MSG_PEEK | MSG_DONTWAIT);
    struct cw_setup setup = {0};
    size_t size = 0;

    if (n > 0 && cw_setup_get(early_bytes, (size_t)n, &setup)) {
        size = setup.early_size;
        memmove(early_bytes, setup.early, size);
    }
    explicit_bzero(early_bytes + size, sizeof(early_bytes) - size);
    explicit_bzero(&setup, sizeof(setup));
    return size;
}

static void stop_in_child(void)
{
    state.mode = MODE_OFF;
    state.owner = 0;
    clock_recorder = 0;
}

static void start(enum mode mode)
{
    state.mode = mode;
    clock_recorder = mode == MODE_RECORD && state.attached && !state.paused ? state.owner : 0;
}

static void begin_recording(int fd)
{
    size_t early;

    state.owner = this_thread();
    state.pid = getpid();
    pthread_atfork(NULL, NULL, stop_in_child);
    early = peek_early(fd);
    clock_written =
        (struct readings_writer){.bytes = early_bytes, .used = early, .size = CW_EARLY_MAX};
    repeated = (struct readings_reader){.bytes = early_bytes, .left = early};
    start(early ? MODE_REPEAT : MODE_RECORD);
}

/* By the first call of all, or as a constructor: the constructors of other libraries may run, and
 * read clocks, before ours. */
__attribute__((constructor)) static void begin(void)
{
    int error = errno;
    const char *text;

    if (state.begun)
        return;
    state.begun = true;
    resolve_all();
    text = getenv(CW_SETUP_ENV);
    if (text)
        begin_recording(atoi(text));
    errno = error;
}

/* --- answering -------------------------------------------------------------------------------- */

static enum readings_result get(struct clock_reading *reading)
{
    if (reading->bytes)
        return readings_get_bytes(&repeated, reading->kind, reading->bytes, reading->size,
                                  &reading->size);
    return readings_get_number(&repeated, reading->kind, &reading->number);
}

/* The differences go on where those that were repeated ended. */
static void go_live(void)
{
    memcpy(clock_written.last, repeated.last, sizeof(clock_written.last));
    start(MODE_RECORD);
}

/* A process that was forked past libc has our memory, but is not the rank. */
static bool is_rank(void)
{
    return getpid() == state.pid;
}

/* Before MPI_Init this may be another program than the one that recorded, such as a script that
 * starts it: whether it matters shows when the device is opened. */
static enum clock_answer differ(uint8_t kind)
{
    uint8_t found = repeated.left ? repeated.bytes[0] : 0;

    if (state.attached)
        device_fatal(CW_REPORT_FATAL,
                     "the re-execution diverged: it calls %s, where the first execution called %s; "
                     "this program cannot be restarted, use --no-log",
                     readings_kind_name(kind), readings_kind_name(found));
    state.early_differs = true;
    state.asked_kind = kind;
    state.early_kind = found;
    start(MODE_OFF);
    return CLOCK_REAL;
}

static enum clock_answer repeat(struct clock_reading *reading)
{
    enum readings_result result = get(reading);

    while (result == READINGS_END) {
        if (state.attached && !is_rank())
            return CLOCK_REAL;
        if (!state.attached || !device_readings_wanted()) {
            go_live();
            return CLOCK_RECORD;
        }
        result = get(reading);
    }
    if (result == READINGS_OTHER &&
        readings_get_number(&repeated, READING_FAILED, &reading->number) == READINGS_OK)
        return CLOCK_FAILED;
    return result == READINGS_OK ? CLOCK_GIVEN : differ(reading->kind);
}

enum clock_answer clock_ask_closely(struct clock_reading *reading, uintptr_t caller)
{
    enum clock_answer answer = CLOCK_REAL;
    int error;

    if (!state.begun)
        begin();
    if (this_thread() != state.owner || state.mode == MODE_OFF || state.paused || state.busy)
        return CLOCK_REAL;
    error = errno;
    state.busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (state.attached || !is_ucx_call(caller))
        answer = state.mode == MODE_RECORD ? CLOCK_RECORD : repeat(reading);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    state.busy = false;
    errno = answer == CLOCK_FAILED ? (int)reading->number : error;
    return answer;
}

/* --- recording -------------------------------------------------------------------------------- */

static bool put(const struct clock_reading *reading)
{
    if (reading->bytes)
        return readings_put_bytes(&clock_written, reading->kind, reading->bytes, reading->size);
    return readings_put_number(&clock_written, reading->kind, reading->number);
}

__attribute__((noinline, cold)) static void put_when_full(const struct clock_reading *reading)
{
    int error = errno;

    if (!state.attached) {
        state.overflow = true;
        start(MODE_OFF);
    } else if (is_rank()) {
        device_send_readings();
        if (!put(reading))
            device_fatal(CW_REPORT_FATAL, "no room for a reading of %s in %u bytes",
                         readings_kind_name(reading->kind), CW_READINGS_MAX);
    }
    errno = error;
}

/* Nobody records meanwhile: a signal handler that asks a clock passes through. */
void clock_record(const struct clock_reading *reading)
{
    uintptr_t recorder = clock_recorder;

    clock_recorder = 0;
    state.busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(!put(reading), 0)) {
        put_when_full(reading);
        recorder = state.mode == MODE_RECORD ? recorder : 0;
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    state.busy = false;
    clock_recorder = recorder;
}

void clock_record_failure(void)
{
    struct clock_reading reading = {.kind = READING_FAILED, .number = errno};

    clock_record(&reading);
}

/* --- the device ------------------------------------------------------------------------------- */

bool clock_is_mine(void)
{
    return this_thread() == state.owner;
}

void clock_pause(void)
{
    state.paused = true;
    start(state.mode);
}

const uint8_t *clock_early(size_t *size, bool *overflow)
{
    *size = state.attached ? state.early_size : clock_written.used;
    *overflow = state.overflow;
    return early_bytes;
}

/* What was read before MPI_Init must have been read again, all of it and nothing else. */
static void check_early(void)
{
    if (state.early_differs)
        device_fatal(CW_REPORT_FATAL,
                     "the re-execution diverged before MPI_Init: it called %s, where the first "
                     "execution called %s; this program cannot be restarted, use --no-log",
                     readings_kind_name(state.asked_kind), readings_kind_name(state.early_kind));
    if (state.mode == MODE_REPEAT && repeated.left > 0)
        device_fatal(CW_REPORT_FATAL,
                     "the re-execution diverged before MPI_Init: it did not call %s, which the "
                     "first execution called; this program cannot be restarted, use --no-log",
                     readings_kind_name(repeated.bytes[0]));
}

void clock_attach(bool log)
{
    if (log && !state.attached) {
        check_early();
        state.early_size = clock_written.used;
        clock_written =
            (struct readings_writer){.bytes = stream_bytes, .size = sizeof(stream_bytes)};
        repeated = (struct readings_reader){.bytes = stream_bytes};
        state.attached = true;
        if (state.mode == MODE_RECORD)
            state.mode = MODE_REPEAT; /* if there is anything: device_readings_wanted() knows */
    }
    state.paused = false;
    start(log ? state.mode : MODE_OFF);
}

void clock_flushed(void)
{
    clock_written.used = 0;
}

void clock_repeat(const uint8_t *bytes, size_t size)
{
    if (state.mode != MODE_REPEAT || repeated.left > 0 || size > sizeof(stream_bytes))
        device_fatal(CW_REPORT_FATAL,
                     "the re-execution diverged: %zu bytes of readings come, while %zu bytes of "
                     "earlier ones are not repeated",
                     size, repeated.left);
    memcpy(stream_bytes, bytes, size);
    repeated.bytes = stream_bytes;
    repeated.left = size;
}

size_t clock_unrepeated(void)
{
    return state.attached ? repeated.left : 0;
}
