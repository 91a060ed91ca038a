/* The inputs of a rank when signals come, without a device: the file itself is compiled here, for
 * the moment between two of its steps is what a handler may see. */
#include "common/clock.h"
#define cw_clock_ns device_clock_ns
#define cw_cpu device_cpu
#include "rdevice/real.c"
#undef cw_clock_ns
#undef cw_cpu
#include "rdevice/inputs.c"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>

SUITE("device_inputs");

#define MONOTONIC (READING_CLOCK + 1)
#define LOOKS_MAX 2000000
#define LOOP_NS 40          /* from one look to the next */
#define HANDLER_ABOVE 65536 /* bytes between who asks and a handler's frame */

static int interrupts = 4096;
static unsigned sent; /* times */
static size_t sent_bytes;
static uint8_t frames[1 << 20]; /* what was sent, one behind the other, and where each ends */
static size_t frame_ends[256];
static int64_t told[LOOKS_MAX]; /* to looks */
static size_t looks;

_Thread_local uint64_t calls_made;
static bool blocked; /* all signals, whenever the device was used */
static const uint8_t *wanted;
static size_t wanted_size;

static bool all_blocked(void)
{
    sigset_t mask;

    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, SIGALRM) && sigismember(&mask, SIGTERM);
}

void fatal_exit(uint32_t kind, const char *fmt, ...)
{
    (void)kind;
    (void)fmt;
    abort();
}

static void nothing(void)
{
}

static void send_all(void)
{
    memcpy(frames + sent_bytes, inputs_written.bytes, inputs_written.used);
    sent_bytes += inputs_written.used;
    frame_ends[sent++] = sent_bytes;
    blocked &= all_blocked();
    inputs_written.used = 0;
}

static bool read_wanted(void)
{
    size_t size = wanted_size;

    blocked &= all_blocked();
    wanted_size = 0;
    if (size)
        inputs_repeat(wanted, size);
    return size > 0;
}

static void diverge(const char *what)
{
    fatal_exit(CW_REPORT_FATAL, "%s", what);
}

static const struct inputs_log the_log = {read_wanted, nothing, send_all, diverge};

/* The calling thread records to the stream, or repeats `size` bytes first. */
static void set_up(const uint8_t *bytes, size_t size)
{
    memset(&state, 0, sizeof(state));
    state.begun = true;
    state.owner = this_thread();
    state.pid = getpid();
    state.mode = MODE_RECORD;
    inputs_attach(&the_log);
    wanted = bytes;
    wanted_size = size;
    sent = 0;
    sent_bytes = 0;
    looks = 0;
    blocked = true;
}

static void tear_down(void)
{
    stop_in_child();
    CU_ASSERT_TRUE(blocked);
    CU_ASSERT_FALSE(all_blocked());
}

static enum input_answer look_up(int64_t *number)
{
    struct input input = {.kind = READING_TIME, .number = *number};
    enum input_answer answer = inputs_ask(&input, 0);

    if (answer == INPUT_RECORD)
        inputs_record(&input);
    *number = input.number;
    return answer;
}

static void check_ask(enum input_answer expected, int64_t number)
{
    CU_ASSERT_EQUAL(look_up(&number), expected);
}

/* What is pending holds these numbers, and nothing else. */
static void check_pending(const int64_t *numbers, size_t count)
{
    struct readings_reader r = {.bytes = inputs_written.bytes, .left = inputs_written.used};
    int64_t number;

    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL_FATAL(readings_get_number(&r, READING_TIME, &number), READINGS_OK);
        CU_ASSERT_EQUAL(number, numbers[i]);
    }
    CU_ASSERT_EQUAL(r.left, 0);
}

/* A handler that interrupts what asks here, and is on the stack above it. */
static void interrupt(struct inputs_handler *handler)
{
    uintptr_t top = (uintptr_t)__builtin_frame_address(0) + HANDLER_ABOVE;

    inputs_handler_begins(handler, top + (uintptr_t)--interrupts, 0, top + HANDLER_ABOVE);
}

static void returns(struct inputs_handler *handler)
{
    handler->returned = true;
    inputs_handler_ends(handler);
}

static void jump_out(void)
{
    inputs_go(NULL, NULL, (uintptr_t)__builtin_frame_address(0) + 2 * HANDLER_ABOVE);
}

TEST(a_handler_is_kept_apart)
{
    struct inputs_handler outer, inner;

    set_up(NULL, 0);
    check_ask(INPUT_RECORD, 10);
    interrupt(&outer);
    check_ask(INPUT_REAL, 11);
    inputs_handler_begins(&inner, (uintptr_t)__builtin_frame_address(0) + HANDLER_ABOVE / 2, 0,
                          (uintptr_t)__builtin_frame_address(0));
    check_ask(INPUT_REAL, 12);
    returns(&inner);
    check_ask(INPUT_REAL, 13);
    returns(&outer);
    check_ask(INPUT_RECORD, 14);
    check_pending((int64_t[]){10, 14}, 2);
    tear_down();
}

TEST(a_jump_ends_handlers)
{
    struct inputs_handler first, second;

    set_up(NULL, 0);
    check_ask(INPUT_RECORD, 10);
    interrupt(&first);
    interrupt(&second);
    jump_out();
    check_ask(INPUT_RECORD, 11);
    jump_out(); /* of none */
    check_ask(INPUT_RECORD, 12);
    check_pending((int64_t[]){10, 11, 12}, 3);
    tear_down();
}

TEST(an_exception_ends_a_handler)
{
    struct inputs_handler handler;

    set_up(NULL, 0);
    check_ask(INPUT_RECORD, 10);
    interrupt(&handler);
    check_ask(INPUT_REAL, 11);
    inputs_handler_ends(&handler);
    check_ask(INPUT_RECORD, 12);
    check_pending((int64_t[]){10, 12}, 2);
    tear_down();
}

/* Nobody has told us: its frame is below who asks. */
TEST(a_handler_that_was_left_unseen)
{
    struct inputs_handler handler;

    set_up(NULL, 0);
    check_ask(INPUT_RECORD, 10);
    set_busy(BUSY_RECORDING); /* it interrupted that */
    note_written(READING_TIME);
    inputs_handler_begins(&handler, (uintptr_t)__builtin_frame_address(0) - HANDLER_ABOVE, 0,
                          (uintptr_t)__builtin_frame_address(0) - HANDLER_ABOVE / 2);
    check_ask(INPUT_RECORD, 11);
    check_pending((int64_t[]){10, 11}, 2);
    tear_down();
}

TEST(a_jump_takes_a_recording_back)
{
    struct input input = {.kind = READING_TIME, .number = 1000};
    struct inputs_handler handler;

    set_up(NULL, 0);
    check_ask(INPUT_RECORD, 10);
    note_written(READING_TIME);
    set_busy(BUSY_RECORDING);
    put(&input);
    interrupt(&handler);
    check_ask(INPUT_REAL, 1001);
    jump_out();
    check_ask(INPUT_RECORD, 12);
    check_pending((int64_t[]){10, 12}, 2);
    tear_down();
}

TEST(a_jump_takes_a_repetition_back)
{
    uint8_t bytes[64];
    struct readings_writer w = {.bytes = bytes, .size = sizeof(bytes)};
    struct input input = {.kind = READING_TIME};
    struct inputs_handler handler;
    int64_t number = 0;

    for (int64_t value = 10; value < 13; value++)
        readings_put_number(&w, READING_TIME, value);
    set_up(bytes, w.used);
    CU_ASSERT_EQUAL(look_up(&number), INPUT_GIVEN);
    CU_ASSERT_EQUAL(number, 10);
    CU_ASSERT_EQUAL(repeat(&input), INPUT_GIVEN); /* its answer does not come to the program */
    interrupt(&handler);
    jump_out();
    for (int64_t value = 11; value < 13; value++) {
        CU_ASSERT_EQUAL(look_up(&number), INPUT_GIVEN);
        CU_ASSERT_EQUAL(number, value);
    }
    check_ask(INPUT_RECORD, 20);
    tear_down();
}

/* However often a program asks: what it asks is sent, and only what a handler asks is not. */
TEST(a_full_buffer_is_sent)
{
    struct inputs_handler handler;
    size_t all = 2 * 100000;

    set_up(NULL, 0);
    for (int64_t i = 1; i <= 100000; i++)
        check_ask(INPUT_RECORD, i);
    CU_ASSERT_EQUAL(sent_bytes + inputs_written.used, all);
    CU_ASSERT_EQUAL(sent, all / (CW_READINGS_MAX - READING_NUMBER_MAX));
    interrupt(&handler);
    for (int64_t i = 1; i <= 100000; i++)
        check_ask(INPUT_REAL, i);
    returns(&handler);
    CU_ASSERT_EQUAL(sent_bytes + inputs_written.used, all);
    tear_down();
}

/* clock_gettime() at that time; returns what it tells. */
static int64_t look(int64_t now)
{
    struct input input = {.kind = MONOTONIC};

    CU_ASSERT_EQUAL(inputs_ask(&input, 0), INPUT_RECORD);
    input.number = inputs_in_steps(MONOTONIC, now);
    inputs_record(&input);
    return told[looks++] = input.number;
}

/* A loop that waits until a moment; returns that at which it ends. */
static int64_t wait_until(int64_t now, int64_t until)
{
    while (look(now) < until)
        now += LOOP_NS;
    return now;
}

static int64_t before_loops(void)
{
    set_up(NULL, 0);
    __libc_single_threaded = true; /* threads of other suites have ended */
    memset(&loop, 0, sizeof(loop));
    return look(1000000);
}

/* What was sent, and is pending, tells the same. */
static void check_told(void)
{
    struct readings_reader r = {.bytes = frames};
    size_t count = 0;
    int64_t number;

    inputs_send();
    for (unsigned i = 0; i < sent; i++) {
        r.left = frame_ends[i] - (size_t)(r.bytes - frames);
        while (r.left > 0 && readings_get_number(&r, MONOTONIC, &number) == READINGS_OK)
            CU_ASSERT_EQUAL_FATAL(number, told[count++]);
        CU_ASSERT_EQUAL_FATAL(r.left, 0);
    }
    CU_ASSERT_EQUAL(count, looks);
    tear_down();
}

/* No moment comes later than by a part of the wait, and little is written. */
TEST(a_loop_is_told_steps)
{
    int64_t begin = before_loops(), late;

    late = wait_until(begin + LOOP_NS, begin + LOOP_EXACT_NS / 2) - begin - LOOP_EXACT_NS / 2;
    CU_ASSERT_TRUE(late < LOOP_NS);
    CU_ASSERT_EQUAL(inputs_written.used, 1 + 3 + 2 * (looks - 1)); /* all are exact */
    late = wait_until(told[looks - 1] + LOOP_NS, begin + 1000000) - begin - 1000000;
    CU_ASSERT_TRUE(late < LOOP_STEP_NS + LOOP_NS);
    late = wait_until(told[looks - 1] + LOOP_NS, begin + 70000000) - begin - 70000000;
    CU_ASSERT_TRUE(late < LOOP_STEP_MAX + LOOP_NS);
    CU_ASSERT_TRUE(sent_bytes < looks / 10);
    check_told();
}

static void another_clock(int64_t now)
{
    CU_ASSERT_EQUAL(inputs_in_steps(MONOTONIC + 1, now), now);
    inputs_record(&(struct input){.kind = MONOTONIC + 1, .number = now});
    looks = 0;
}

static void a_call(int64_t now)
{
    (void)now;
    calls_made++;
}

static void a_handler(int64_t now)
{
    struct inputs_handler handler;

    (void)now;
    interrupt(&handler);
    returns(&handler);
}

static void a_pause(int64_t now)
{
    (void)now;
}

/* Whatever comes in between: the next one, and all that are told soon after it, are exact. */
TEST(a_loop_ends)
{
    static const struct {
        void (*what)(int64_t now);
        int64_t takes;
        int looks; /* that are exact then */
    } events[] = {{another_clock, LOOP_NS, 1000},
                  {a_call, LOOP_NS, 1000},
                  {a_handler, LOOP_NS, 1000},
                  {a_pause, LOOP_GAP_NS, 1},
                  {a_pause, 10000000, 1000}};

    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++) {
        int64_t now = before_loops();

        now = wait_until(now + LOOP_NS, now + 1000000) + LOOP_NS;
        CU_ASSERT_NOT_EQUAL(look(now), now);
        events[i].what(now + LOOP_NS);
        for (int more = 0; more < events[i].looks; more++) {
            now += more ? LOOP_NS : events[i].takes;
            CU_ASSERT_EQUAL(look(now), now);
        }
        tear_down();
    }
}

/* A handler that jumps out of a look in a loop: it was not made. */
TEST(a_jump_takes_a_repeat_back)
{
    struct input input = {.kind = MONOTONIC};
    struct inputs_handler handler;
    int64_t now = before_loops();

    now = wait_until(now + LOOP_NS, now + 1000000);
    for (int i = 0; i < 3; i++)
        input.number = look(now);
    note_written(MONOTONIC);
    set_busy(BUSY_RECORDING);
    put(&input);
    interrupt(&handler);
    jump_out();
    look(now + LOOP_NS);
    check_told();
}
