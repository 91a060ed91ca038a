/* Which inputs are recorded, and which are repeated.
 *
 * Those before MPI_Init go to a buffer of their own, which the dispatcher keeps and gives to later
 * incarnations with their setup; those after it go to the relay, in the order in which they and the
 * events were taken. */
#include "rdevice/inputs.h"
#include "common/setup.h"
#include "rdevice/calls.h"
#include "rdevice/fatal.h"
#include "rdevice/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <unistd.h>

#define KINDS_TEXT 128 /* bytes of a text that names two kinds of readings */

enum mode {
    MODE_OFF,    /* everything passes through */
    MODE_RECORD, /* answers are real, and appended to inputs_written */
    MODE_REPEAT, /* answers are those in `repeated`, as long as there are any */
};

/* What a signal may interrupt, and its handler jump out of. */
enum busy { BUSY_NOT, BUSY_LOOKING, BUSY_RECORDING, BUSY_REPEATING };

static struct {
    enum mode mode;
    enum busy busy;
    bool begun;
    bool attached; /* to the stream; before: the early buffer */
    bool paused;
    bool overflow; /* of the early buffer */
    bool early_differs;
    uint8_t asked_kind; /* ... in what */
    uint8_t early_kind;
    uintptr_t owner; /* the thread */
    pid_t pid;
    size_t early_size; /* kept when the stream begins */
    const struct inputs_log *log;
} state;

/* What was before the reading at hand: who jumps out of the middle of it has not asked. */
static struct {
    uint8_t kind;
    size_t used;
    uint64_t last;
    struct readings_run run;
    struct readings_reader repeated;
} before;

/* A thread that does nothing but ask one clock again and again: see inputs_in_steps(). */
#define LOOP_GAP_NS 512      /* between two readings of a loop */
#define LOOP_PAUSE 8         /* a longer pause takes this part of its length off what was spent */
#define LOOP_EXACT_NS 131072 /* spent in it: then steps begin */
#define LOOP_STEP_NS 1024    /* of these, or as much as ... */
#define LOOP_SHARE 4096      /* ... this part of what was spent in the loop, but at most ... */
#define LOOP_STEP_MAX 16384  /* ... ns */
static struct {
    uint64_t last;   /* what the clock said */
    uint64_t spent;  /* ns */
    uint64_t events; /* calls of MPI and handlers of signals before */
} loop;
static uint64_t handlers_begun;

/* A full buffer, or a log to be read on, has the inputs use the device. They may when the program
 * asks, and so is outside of it; neither a handler nor a second thread comes in meanwhile. */
static pthread_mutex_t device_use = PTHREAD_MUTEX_INITIALIZER;

/* Also where the setup is looked at before MPI_Init: its readings are in it. */
static uint8_t early_bytes[CW_SETUP_MAX];
static uint8_t stream_bytes[CW_READINGS_MAX - READINGS_HEAD];
static struct readings_reader repeated;
struct readings_writer inputs_written;
uintptr_t inputs_recorder;

_Static_assert(CW_EARLY_MAX <= CW_SETUP_MAX, "a setup holds them");

static inline uintptr_t this_thread(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* UCX's constructors compare the processor's counter with gettimeofday, in a number of calls that
 * differs from run to run. This device replaces UCX, so that nothing of it reaches the program:
 * what it reads is no determinant. It reads only there; so nobody looks for it once the device is
 * open. */
static bool is_ucx_call(uintptr_t caller)
{
    static const char *const names[] = {"libucs.so", "libuct.so", "libucm.so"};
    struct dl_find_object found;
    const char *path, *slash;

    if (_dl_find_object((void *)caller, &found) < 0)
        return false;
    path = found.dlfo_link_map->l_name;
    slash = strrchr(path, '/');
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strncmp(slash ? slash + 1 : path, names[i], strlen(names[i])) == 0)
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

/* Whoever asks without another question is in none of these cases. */
static inline void set_recorder(void)
{
    bool plain = state.mode == MODE_RECORD && state.attached && !state.paused && !state.busy &&
                 !frames_any();

    inputs_recorder = plain ? state.owner : 0;
}

static void start(enum mode mode)
{
    state.mode = mode;
    set_recorder();
}

static void stop_in_child(void)
{
    state.mode = MODE_OFF;
    state.owner = 0;
    inputs_recorder = 0;
}

static void begin_recording(int fd)
{
    size_t early;

    state.owner = this_thread();
    state.pid = real_pid();
    pthread_atfork(NULL, NULL, stop_in_child);
    early = peek_early(fd);
    inputs_written =
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
    real_resolve();
    text = getenv(CW_SETUP_ENV);
    if (text)
        begin_recording(atoi(text));
    errno = error;
}

/* --- signals ---------------------------------------------------------------------------------- */

/* Another thread may have ended the recording before. */
static void enter_device(sigset_t *mask)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, mask);
    pthread_mutex_lock(&device_use);
}

static void leave_device(const sigset_t *mask)
{
    if (state.busy == BUSY_REPEATING)
        before.repeated = repeated; /* a jump takes back what was answered, not what has come */
    pthread_mutex_unlock(&device_use);
    pthread_sigmask(SIG_SETMASK, mask, NULL);
}

/* Of all handlers that we knew to run: somebody left them past handlers.c. */
static bool is_outside(uintptr_t sp)
{
    return frames_any() && !frames_inside(sp);
}

static void set_busy(enum busy busy)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    state.busy = busy;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void note_written(uint8_t kind)
{
    before.kind = kind;
    before.used = inputs_written.used;
    before.last = inputs_written.last[kind];
    before.run = inputs_written.run;
}

/* No handler runs any more. What was interrupted by one that did not return has not asked. */
static void leave_handlers(void)
{
    if (state.busy == BUSY_RECORDING)
        readings_take_back(&inputs_written, before.used, &before.run, before.kind, before.last);
    else if (state.busy == BUSY_REPEATING)
        repeated = before.repeated;
    set_busy(BUSY_NOT);
    set_recorder();
}

void inputs_handler_begins(struct inputs_handler *handler, uintptr_t top, uintptr_t low,
                           uintptr_t interrupted)
{
    handler->recorded_thread = inputs_are_mine();
    handler->returned = false;
    if (!handler->recorded_thread)
        return;
    handlers_begun++;
    if (is_outside(interrupted))
        leave_handlers();
    frames_push(&handler->mark, top, low, interrupted);
    set_recorder();
}

void inputs_handler_ends(struct inputs_handler *handler)
{
    if (!handler->recorded_thread)
        return;
    frames_drop(&handler->mark);
    if (!handler->returned && !frames_any())
        leave_handlers();
    set_recorder();
}

void inputs_go(const void *from, const void *to, uintptr_t sp)
{
    bool handled = inputs_are_mine() && frames_any();

    if (!inputs_are_mine())
        return;
    frames_go(from, to, sp);
    if (handled && !frames_any())
        leave_handlers();
    set_recorder();
}

/* --- answering -------------------------------------------------------------------------------- */

static enum readings_result get(struct input *input)
{
    if (input->bytes)
        return readings_get_bytes(&repeated, input->kind, input->bytes, input->size, &input->size);
    return readings_get_number(&repeated, input->kind, &input->number);
}

/* The differences go on where those that were repeated ended. */
static enum input_answer go_live(void)
{
    memcpy(inputs_written.last, repeated.last, sizeof(inputs_written.last));
    start(MODE_RECORD);
    return INPUT_RECORD;
}

/* A process that was forked past libc has our memory, but is not the rank. */
static bool is_rank(void)
{
    return real_pid() == state.pid;
}

/* What is recorded goes to the relay, and not yet, or no more, to the early inputs. */
static bool is_streaming(void)
{
    return state.attached && is_rank();
}

/* Before MPI_Init this may be another program than the one that recorded, such as a script that
 * starts it: whether it matters shows when the device is opened. */
static enum input_answer differ(uint8_t kind)
{
    uint8_t found = readings_next_kind(&repeated);
    char text[KINDS_TEXT];

    if (state.attached) {
        snprintf(text, sizeof(text), "it calls %s where it had called %s", readings_kind_name(kind),
                 readings_kind_name(found));
        state.log->diverged(text);
    }
    state.early_differs = true;
    state.asked_kind = kind;
    state.early_kind = found;
    start(MODE_OFF);
    return INPUT_REAL;
}

static bool read_on(void)
{
    sigset_t mask;
    bool more;

    enter_device(&mask);
    more = state.log->read_on();
    leave_device(&mask);
    return more;
}

/* What the input at hand is, of what is to be repeated. */
static enum input_answer repeat(struct input *input)
{
    enum readings_result result;

    before.repeated = repeated;
    set_busy(BUSY_REPEATING);
    while ((result = get(input)) == READINGS_END) {
        if (state.attached && !is_rank())
            return INPUT_REAL;
        if (!state.attached || !read_on())
            return go_live();
    }
    if (result == READINGS_OTHER &&
        readings_get_number(&repeated, READING_FAILED, &input->number) == READINGS_OK)
        return INPUT_FAILED;
    return result == READINGS_OK ? INPUT_GIVEN : differ(input->kind);
}

static void idle(void)
{
    set_busy(BUSY_NOT);
    set_recorder();
}

static enum input_answer ask(struct input *input, uintptr_t caller)
{
    enum input_answer answer = INPUT_REAL;

    if (!state.begun)
        begin();
    if (this_thread() != state.owner || state.mode == MODE_OFF)
        return INPUT_REAL;
    if (is_outside((uintptr_t)__builtin_frame_address(0)))
        leave_handlers();
    if (state.paused || state.busy || frames_any())
        return INPUT_REAL;
    set_busy(BUSY_LOOKING);
    if (state.attached || !is_ucx_call(caller))
        answer = state.mode == MODE_RECORD ? INPUT_RECORD : repeat(input);
    idle();
    return answer;
}

/* A program may do nothing for long that the device sees, after it was given the last of its log.
 */
static void tell_used_up(void)
{
    sigset_t mask;

    enter_device(&mask);
    state.log->used_up();
    leave_device(&mask);
}

enum input_answer inputs_ask_closely(struct input *input, uintptr_t caller)
{
    int error = errno;
    enum input_answer answer = ask(input, caller);

    if ((answer == INPUT_GIVEN || answer == INPUT_FAILED) && repeated.left == 0 && is_streaming())
        tell_used_up();
    errno = answer == INPUT_FAILED ? (int)input->number : error;
    return answer;
}

/* --- recording -------------------------------------------------------------------------------- */

static bool put(const struct input *input)
{
    if (input->bytes)
        return readings_put_bytes(&inputs_written, input->kind, input->bytes, input->size);
    return readings_put_number(&inputs_written, input->kind, input->number);
}

static void send_and_put(const struct input *input)
{
    state.log->flush();
    if (!input)
        return;
    note_written(input->kind);
    if (!put(input))
        fatal_exit(CW_REPORT_FATAL, "no room for a reading of %s in %u bytes",
                   readings_kind_name(input->kind), CW_READINGS_MAX);
}

/* Sends what is recorded, and records `input` (or NULL) then. */
__attribute__((noinline, cold)) static void use_device(const struct input *input)
{
    int error = errno;
    sigset_t mask;

    if (is_streaming()) {
        enter_device(&mask);
        if (state.mode == MODE_RECORD)
            send_and_put(input);
        leave_device(&mask);
    } else if (input && !state.attached) {
        state.overflow = true;
        start(MODE_OFF);
    }
    errno = error;
}

void inputs_send(void)
{
    use_device(NULL);
}

void inputs_record(const struct input *input)
{
    note_written(input->kind);
    set_busy(BUSY_RECORDING);
    if (__builtin_expect(!put(input), 0))
        use_device(input);
    idle();
}

void inputs_record_failure(void)
{
    struct input input = {.kind = READING_FAILED, .number = errno};

    inputs_record(&input);
}

/* A pause takes a part of its length off: another process may have had the core. */
static uint64_t spent_after(uint64_t gap)
{
    uint64_t max = (uint64_t)LOOP_STEP_MAX * LOOP_SHARE;

    if (gap >= LOOP_GAP_NS)
        return loop.spent - (gap / LOOP_PAUSE < loop.spent ? gap / LOOP_PAUSE : loop.spent);
    return loop.spent + gap < max ? loop.spent + gap : max;
}

/* What is told is what the clock said at an earlier moment, and nothing in between is seen that may
 * have learnt more: so nothing comes later than what it caused. */
int64_t inputs_in_steps(uint8_t kind, int64_t now)
{
    uint64_t events = handlers_begun + calls_made;
    bool goes_on = kind == before.kind && kind < READING_CLOCK_OTHER && events == loop.events &&
                   __libc_single_threaded;
    uint64_t gap = (uint64_t)now - loop.last;
    uint64_t told = inputs_written.last[kind];
    uint64_t step;

    loop.spent = goes_on ? spent_after(gap) : 0;
    loop.last = (uint64_t)now;
    loop.events = events;
    step = loop.spent / LOOP_SHARE > LOOP_STEP_NS ? loop.spent / LOOP_SHARE : LOOP_STEP_NS;
    if (loop.spent < LOOP_EXACT_NS || gap >= LOOP_GAP_NS || (uint64_t)now - told >= step)
        return now;
    return (int64_t)told;
}

/* --- the device ------------------------------------------------------------------------------- */

bool inputs_are_mine(void)
{
    return this_thread() == state.owner;
}

bool inputs_pause(bool paused)
{
    bool was = state.paused;

    state.paused = paused;
    set_recorder();
    return was;
}

const uint8_t *inputs_early(size_t *size, bool *overflow)
{
    *size = state.attached ? state.early_size : inputs_written.used;
    *overflow = state.overflow;
    return early_bytes;
}

/* What was read before MPI_Init must have been read again, all of it and nothing else. */
static void check_early(void)
{
    if (state.early_differs)
        fatal_exit(CW_REPORT_FATAL,
                   "the re-execution diverged before MPI_Init: it called %s, where the first "
                   "execution called %s; this program cannot be restarted, use --no-log",
                   readings_kind_name(state.asked_kind), readings_kind_name(state.early_kind));
    if (state.mode == MODE_REPEAT && repeated.left > 0)
        fatal_exit(CW_REPORT_FATAL,
                   "the re-execution diverged before MPI_Init: it did not call %s, which the "
                   "first execution called; this program cannot be restarted, use --no-log",
                   readings_kind_name(readings_next_kind(&repeated)));
}

void inputs_attach(const struct inputs_log *log)
{
    if (log && !state.attached) {
        check_early();
        state.log = log;
        state.early_size = inputs_written.used;
        inputs_written =
            (struct readings_writer){.bytes = stream_bytes, .size = sizeof(stream_bytes)};
        repeated = (struct readings_reader){.bytes = stream_bytes};
        state.attached = true;
        if (state.mode == MODE_RECORD)
            state.mode = MODE_REPEAT; /* if there is anything: read_on() knows */
    }
    state.paused = false;
    pthread_mutex_lock(&device_use);
    start(log ? state.mode : MODE_OFF);
    pthread_mutex_unlock(&device_use);
}

/* The differences of what is repeated go on from what was sent last, or, where nothing was since
 * the rank had repeated all, from what was repeated last. */
void inputs_go_on_from_image(bool log)
{
    state.pid = real_pid();
    inputs_written.used = 0;
    if (state.mode != MODE_REPEAT)
        memcpy(repeated.last, inputs_written.last, sizeof(repeated.last));
    repeated.bytes = stream_bytes;
    repeated.left = 0;
    start(log ? MODE_REPEAT : MODE_OFF);
}

const uint8_t *inputs_repeat(const uint8_t *bytes, size_t size)
{
    if (state.mode != MODE_REPEAT || repeated.left > 0 || size > sizeof(stream_bytes))
        fatal_exit(CW_REPORT_FATAL,
                   "the re-execution diverged: %zu bytes of readings come, while %zu bytes of "
                   "earlier ones are not repeated",
                   size, repeated.left);
    memcpy(stream_bytes, bytes, size);
    repeated.bytes = stream_bytes;
    repeated.left = size;
    return stream_bytes;
}

size_t inputs_unrepeated(void)
{
    return state.attached ? repeated.left : 0;
}
