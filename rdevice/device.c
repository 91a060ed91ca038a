#include "rdevice/device.h"
#include "common/clock.h"
#include "rdevice/arena.h"
#include "rdevice/fatal.h"
#include "rdevice/image/image.h"
#include "rdevice/inputs.h"
#include "rdevice/nested.h"
#include "rdevice/real.h"
#include "rdevice/stdin.h"
#include "rdevice/trace.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAREWELL_NS 20000000000ull

/* --- threads ------------------------------------------------------------------------------------
 */

static void unlogged(uint32_t why)
{
    struct exchange *x = &device.exchange;

    if (!x->cursor.logged)
        return;
    x->cursor.logged = false;
    if (x->channel.on)
        channel_forget(&x->channel);
    cw_word_put(exchange_frame(x, CW_FRAME_UNLOGGED, CW_WORD_SIZE), why);
    exchange_flush(x);
}

void device_second_thread(void)
{
    device.threads = true;
    device.exchange.waiter.threads = true;
    inputs_attach(NULL);
    unlogged(CW_UNLOGGED_THREADS);
}

/* --- inputs -------------------------------------------------------------------------------------
 */

static bool read_on(void)
{
    return cursor_inputs(&device.exchange);
}

static void used_up(void)
{
    cursor_used_up(&device.exchange, false);
}

static void send_inputs(void)
{
    struct exchange *x = &device.exchange;

    if (x->cursor.logged && session_is_open(&x->session)) {
        operation_inputs(x);
        exchange_flush(x);
    }
    inputs_written.used = 0;
}

static void diverged(const char *what)
{
    exchange_diverged(&device.exchange, "%s", what);
}

static const struct inputs_log *the_log(void)
{
    static const struct inputs_log log = {read_on, used_up, send_inputs, diverged};

    return device.exchange.cursor.logged ? &log : NULL;
}

/* --- opening ------------------------------------------------------------------------------------
 */

static void read_setup(void)
{
    const char *text = getenv(CW_SETUP_ENV);
    uint8_t *record = device.setup_record;
    size_t size;
    ssize_t n;

    if (!text)
        fatal_exit(CW_REPORT_FATAL, "librdevice.so is loaded, but this process was not started by "
                                    "causeway run (" CW_SETUP_ENV " is not set)");
    device.control_fd = atoi(text);
    fatal_begin(device.control_fd, 0);
    n = recv(device.control_fd, record, sizeof(device.setup_record), MSG_DONTWAIT);
    if (n < 0 && nested_is()) {
        dprintf(STDERR_FILENO, "causeway: an MPI program that a rank has started is no part of its "
                               "job: start it with env -u LD_PRELOAD -u PMI_FD\n");
        _exit(1); /* fatal_exit() would speak for the rank */
    }
    if (n < 0 || !cw_setup_get(record, (size_t)n, &device.setup))
        fatal_exit(CW_REPORT_FATAL, "reading the setup of this rank from descriptor %d: %s",
                   device.control_fd,
                   n < 0 ? strerror(errno)
                         : "not a setup record (MPI_Init was called by another process before?)");
    fatal_begin(device.control_fd, device.setup.process.rank);
    nested_begin(device.control_fd);
    size = cw_report_put(record, CW_REPORT_SETUP_READ, "", 0);
    if (send(device.control_fd, record, size, MSG_NOSIGNAL) != (ssize_t)size)
        fatal_exit(CW_REPORT_FATAL, "telling the dispatcher of this rank: %s", strerror(errno));
    sodium_memzero(record, sizeof(device.setup_record));
}

/* From a point; all zeros: from the beginning. */
static void open_session(const struct cw_point *from, struct cw_welcome *welcome)
{
    struct session *s = &device.exchange.session;
    struct cw_hello hello = {.role = CW_ROLE_RANK,
                             .flags = device.exchange.channel.on ? CW_HELLO_CHANNEL : 0,
                             .rank = device.setup.process.rank,
                             .incarnation = device.setup.process.incarnation,
                             .event = from->event,
                             .poll_clock = from->clock,
                             .acts = from->acts};

    memcpy(hello.job, device.setup.job, sizeof(hello.job));
    session_begin(s, device.setup.address, &hello, device.setup.resume_ms);
    session_open(s, device.setup.key, welcome);
    sodium_memzero(device.setup.key, sizeof(device.setup.key));
}

/* The rank is known to its relay now. */
static void begin_checkpoints(void)
{
    checkpoint_begin(&device.checkpoint, &device.setup, device.control_fd, device.pmi_fd,
                     &device.exchange);
    sodium_memzero(device.setup.image_key, sizeof(device.setup.image_key));
}

/* The relay does not know what is to be repeated in channel memory: it hears when that is nothing,
 * too. */
static void begin_exchange(const struct cw_welcome *welcome, bool restored)
{
    struct exchange *x = &device.exchange;

    exchange_begin(x, &device.setup, welcome, restored);
    if (x->channel.on && !x->cursor.active && welcome->flags & CW_WELCOME_REPLAY)
        cursor_live(x);
}

static void open_exchange(void)
{
    struct exchange *x = &device.exchange;
    struct cw_point from = {.event = 0};
    struct cw_welcome welcome;

    channel_open(&x->channel, &device.setup, &x->inbox, &x->requests);
    open_session(&from, &welcome);
    begin_exchange(&welcome, false);
    trace_repeating = x->cursor.active;
}

/* What the program's clocks said before there was a relay to log it: the dispatcher keeps it for
 * the next incarnation. */
static void report_early(void)
{
    uint8_t *report = arena_alloc(CW_SETUP_MAX);
    size_t size;
    bool overflow;
    const uint8_t *early = inputs_early(&size, &overflow);

    if (overflow) {
        unlogged(CW_UNLOGGED_READINGS);
    } else if (device.exchange.cursor.logged && size > device.setup.early_size) {
        size = cw_report_put(report, CW_REPORT_EARLY, early, size);
        if (send(device.control_fd, report, size, MSG_NOSIGNAL) != (ssize_t)size)
            fatal_exit(CW_REPORT_FATAL, "telling the dispatcher what the clocks said: %s",
                       strerror(errno));
    }
    arena_free(report, CW_SETUP_MAX);
}

void device_open(void)
{
    const char *pmi = getenv("PMI_FD");
    struct cw_err err;

    inputs_pause(true);
    read_setup();
    device.pmi_fd = pmi ? atoi(pmi) : -1;
    if (arena_init() < 0)
        fatal_exit(CW_REPORT_FATAL, "no memory for the device: %s; is 'ulimit -v' set?",
                   strerror(errno));
    if (trace_begin(device.setup.process.rank, device.setup.process.incarnation, &err) < 0)
        fatal_exit(CW_REPORT_FATAL, "%s", err.text);
    device.thread = pthread_self();
    open_exchange();
    if (!inputs_are_mine())
        device_second_thread();
    report_early();
    if (!arena_addresses_stay())
        unlogged(CW_UNLOGGED_ADDRESSES);
    begin_checkpoints();
    inputs_attach(the_log());
}

/* This is another process than the one that took the image: another session, setup and number. */
/* A dispatcher that is so far behind does without. */
static void tell_remarks(void)
{
    uint8_t bytes[CW_REPORT_HEADER + CW_TEXT_MAX];
    const char *remark;

    for (uint32_t i = 0; (remark = image_remark(i)); i++) {
        size_t size = cw_report_put(bytes, CW_REPORT_REMARK, remark, strnlen(remark, CW_TEXT_MAX));

        if (send(device.control_fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return;
    }
}

static void go_on_from_image(void)
{
    struct exchange *x = &device.exchange;
    struct cw_point point = checkpoint_point(x);
    struct cw_setup before = device.setup;
    struct cw_welcome welcome;

    inputs_pause(true);
    read_setup();
    if (memcmp(before.job, device.setup.job, sizeof(before.job)) != 0 ||
        before.process.rank != device.setup.process.rank)
        fatal_exit(CW_REPORT_FATAL, "the image is of another rank or job: of rank %u",
                   before.process.rank);
    tell_remarks();
    session_forsake(&x->session);
    channel_open_again(&x->channel, &device.setup);
    open_session(&point, &welcome);
    begin_exchange(&welcome, true);
    begin_checkpoints();
    stdin_becomes(device.setup.input_inode);
    inputs_go_on_from_image(x->cursor.logged);
    inputs_pause(false);
}

/* --- closing ------------------------------------------------------------------------------------
 */

/* A connection that breaks now gives the relay its time once more. */
static void await_farewell(struct exchange *x)
{
    uint64_t since = cw_clock_ns();
    uint32_t connection = x->session.connections;

    while (!x->farewell && !x->session.over) {
        if (exchange_read(x))
            continue;
        if (x->session.connections != connection) {
            connection = x->session.connections;
            since = cw_clock_ns();
        } else if (cw_clock_ns() - since > FAREWELL_NS) {
            fatal_exit(CW_REPORT_FATAL, "relay %s: no FAREWELL for %llu s", device.setup.address,
                       FAREWELL_NS / 1000000000ull);
        } else {
            exchange_wait(x, since);
        }
    }
}

/* Who waits for what was received last hears of it: no poll follows. */
static void tell_senders(struct exchange *x)
{
    uint64_t since = cw_clock_ns();

    channel_tell_news(&x->channel, x->cursor.polls, false);
    exchange_tell_news(x);
    while (x->channel.mailbox.news_count > 0) {
        exchange_wait(x, since);
        channel_tell_news(&x->channel, x->cursor.polls, true);
    }
}

void device_close(void)
{
    struct exchange *x = &device.exchange;
    struct cw_rank_stats stats;

    checkpoint_end(&device.checkpoint);
    cursor_used_up(x, true);
    operation_inputs(x);
    inputs_pause(true);
    if (x->channel.on) {
        tell_senders(x);
        exchange_tell_counts(x);
    }
    stats = exchange_count(x);
    cw_bye_put(exchange_frame(x, CW_FRAME_BYE, CW_BYE_SIZE), &stats);
    exchange_flush(x);
    x->session.ending = true;
    await_farewell(x);
    session_close(&x->session);
}

/* --- progress -----------------------------------------------------------------------------------
 */

void device_leave(void)
{
    device.leaves = true;
    exchange_flush(&device.exchange);
}

/* In MPI_Init nothing is read: what comes then is for later calls for progress. */
void device_beside_pmi(void)
{
    struct exchange *x = &device.exchange;
    bool begins = x->cursor.polls == 0 && x->cursor.acts == 0;

    if (device_is_open() && (begins || device.leaves) &&
        pthread_equal(device.thread, pthread_self()))
        exchange_beside(x, device.pmi_fd, !begins && !x->cursor.active);
}

/* Lets happen what may happen at this poll. */
static void look(struct exchange *x, struct device_poll *poll)
{
    if (x->cursor.active) {
        /* else live at last, or nothing happened at this poll the first time */
        poll->repeated = cursor_poll(x) || x->cursor.active;
        return;
    }
    exchange_acknowledge(x);
    /* right after a receive was told to the relay, its message cannot be here yet: look next time
     */
    if (x->session.out_urgent)
        exchange_flush(x);
    else if (!inbox_happened(&x->inbox))
        poll->came = exchange_poll(x);
}

/* What a handler of an event asks a clock must be logged after what was taken, so that comes first,
 * also before the rank's own messages. */
struct device_poll device_poll(void)
{
    struct exchange *x = device_enter();
    struct device_poll poll = {.repeated = false};

    x->cursor.polls++;
    look(x, &poll);
    if (inbox_happened(&x->inbox) && x->cursor.logged && !x->channel.on && !poll.repeated)
        operation_taken(x);
    poll.events = inbox_take(&x->inbox);
    return poll;
}

static void count(struct tally *tally, const struct event *event)
{
    const struct request *request = (const struct request *)event;

    if (event->active)
        tally->active += event->number > 0;
    else if (request->receiving && request->status != REQUEST_CANCELED)
        tally_message(tally, request->tag);
    else
        tally->done++;
}

void device_take(const struct event *event)
{
    if (device.exchange.cursor.active)
        count(&device.exchange.cursor.tally, event);
    if (event->number && event->number == device.setup.fault_event)
        fatal_drill();
}

void device_polled(const struct device_poll *poll, unsigned count)
{
    struct exchange *x = &device.exchange;

    if (poll->repeated)
        return;
    if (count || poll->came) {
        wait_ended(&x->waiter);
    } else if (wait_idle(&x->waiter)) {
        exchange_flush(x); /* what nobody waits for goes out while there is time */
        wait_sleep(&x->waiter);
    }
    if (checkpoint_is_due(&device.checkpoint, x) && checkpoint_turn(&device.checkpoint, x))
        go_on_from_image();
}
