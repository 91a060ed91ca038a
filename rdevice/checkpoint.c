#include "rdevice/checkpoint.h"
#include "common/clock.h"
#include "rdevice/held.h"
#include "rdevice/image/image.h"
#include "rdevice/image/probe.h"
#include "rdevice/image/system.h"
#include "rdevice/inputs.h"
#include "rdevice/lock.h"
#include "rdevice/next.h"
#include "rdevice/operation.h"
#include "rdevice/store.h"
#include "rdevice/trace.h"
#include "rdevice/until.h"

#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define LOOK_EVERY                                                                                 \
    64 /* turns between two looks at a copy that is on its way: one is a system call */
#define ANSWER_NS 20000000000ull /* to a request that comes while a copy is on its way */
#define MARK_NS 1000000000ull    /* for the output to be taken: others' lines may come first */
#define SECRET_PAGE 4096u

/* --- reports ------------------------------------------------------------------------------------
 */

static void report(const struct checkpoint *c, uint32_t kind, const struct cw_image_report *image,
                   const char *text)
{
    uint8_t bytes[CW_REPORT_HEADER + sizeof(*image) + CW_TEXT_MAX];
    size_t size = cw_report_put_image(bytes, kind, image, text);

    /* a dispatcher that is gone, or so far behind, does without */
    if (send(c->control_fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
}

static void report_refused(const struct checkpoint *c, uint32_t number, const char *why)
{
    report(c, CW_REPORT_IMAGE_ENDED, &(struct cw_image_report){.number = number}, why);
}

static void report_ended(const struct checkpoint *c, const struct image_outcome *outcome,
                         bool stored)
{
    struct cw_image_report image = {.number = outcome->number,
                                    .stored = stored,
                                    .stall_ns = outcome->stall_ns,
                                    .sent = outcome->sent};

    report(c, CW_REPORT_IMAGE_ENDED, &image, stored ? "" : outcome->err.text);
}

/* --- the moment ---------------------------------------------------------------------------------
 */

/* What happens in channel memory is no event, and no act, for the relay. */
struct cw_point checkpoint_point(const struct exchange *x)
{
    if (x->channel.on)
        return (struct cw_point){
            .event = x->channel.arrivals.taken, .clock = x->cursor.polls, .acts = x->channel.told};
    return (struct cw_point){
        .event = inbox_last_taken(&x->inbox), .clock = x->cursor.polls, .acts = x->cursor.acts};
}

/* All that others can know of this rank is at the relay, and then POINT. */
static void tell_relay(struct exchange *x, struct cw_point *point)
{
    operation_inputs(x);
    if (x->channel.on)
        operation_arrivals_taken(x);
    exchange_make_room(x, CW_POINT_SIZE);
    *point = checkpoint_point(x);
    if (x->channel.on)
        channel_mark(&x->channel, point->clock);
    cw_point_put(exchange_frame(x, CW_FRAME_POINT, CW_POINT_SIZE), point);
    exchange_flush(x);
}

/* The program may have put something else in the place of the pipe: that is left alone. */
static bool is_pipe(int fd, uint64_t inode)
{
    struct statfs fs; /* of libc's fstatfs() the answer would be recorded */
    struct stat s;

    return fstat(fd, &s) == 0 && s.st_ino == inode && system_call(SYS_fstatfs, fd, &fs) == 0 &&
           fs.f_type == PIPEFS_MAGIC;
}

static bool mark_output(const struct checkpoint *c, int fd, uint64_t inode, uint32_t number)
{
    struct cw_output_mark mark = {.number = number, .check = ~number};

    if (!is_pipe(fd, inode))
        return true;
    memcpy(mark.mark, c->setup->mark, sizeof(mark.mark));
    return write(fd, &mark, sizeof(mark)) == (ssize_t)sizeof(mark);
}

/* A pipe that can be written takes as many bytes at once as stay in one piece. */
static bool has_room(int fd, uint64_t inode, uint64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    uint64_t now_ns = cw_clock_ns();

    return !is_pipe(fd, inode) ||
           NEXT(poll)(&p, 1, now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000u) : 0) == 1;
}

/* The signals that end a program wait for as long as this does. */
static bool outputs_have_room(const struct checkpoint *c)
{
    uint64_t until_ns = cw_clock_ns() + MARK_NS;

    return has_room(STDOUT_FILENO, c->setup->output_inodes[0], until_ns) &&
           has_room(STDERR_FILENO, c->setup->output_inodes[1], until_ns);
}

static bool mark_outputs(const struct checkpoint *c, uint32_t number)
{
    return outputs_have_room(c) &&
           mark_output(c, STDOUT_FILENO, c->setup->output_inodes[0], number) &&
           mark_output(c, STDERR_FILENO, c->setup->output_inodes[1], number);
}

/* In the pipe of the launcher. When it was looked at tells a node what it had written into the
 * pipe by then. The kernel is asked past libc, whose answers to the program are recorded. */
static void look_at_input(const struct checkpoint *c, struct cw_image_report *taken)
{
    bool is_given = is_pipe(STDIN_FILENO, c->setup->input_inode);
    int unread;

    taken->looked_from_ns = cw_clock_ns();
    taken->unread = !is_given || system_call(SYS_ioctl, STDIN_FILENO, FIONREAD, &unread) < 0
                        ? UINT64_MAX
                        : (uint64_t)unread;
    taken->looked_until_ns = cw_clock_ns();
}

/* --- what stays out of an image -----------------------------------------------------------------
 */

/* What is known of shared files when the rank is started again counts: others may have opened them
 * since. The setup waits there until the session is opened. */
static bool may_cut(int control_fd)
{
    static uint8_t record[CW_SETUP_MAX];
    struct cw_setup setup;
    ssize_t n = recv(control_fd, record, sizeof(record), MSG_PEEK | MSG_DONTWAIT);
    bool may =
        n > 0 && cw_setup_get(record, (size_t)n, &setup) && !(setup.flags & CW_SETUP_SHARES_FILES);

    sodium_memzero(record, sizeof(record));
    sodium_memzero(&setup, sizeof(setup));
    return may;
}

static void leave_out(struct image_setting *setting, const void *start, size_t size)
{
    setting->left_out[setting->left_out_count++] =
        (struct image_range){.start = (uintptr_t)start, .size = size};
}

static struct image_setting setting_of(const struct checkpoint *c, const struct exchange *x)
{
    const struct session *s = &x->session;
    struct image_setting setting = {
        .given = {c->control_fd, c->pmi_fd},
        .given_count = 2,
        .closed = {s->wire.fd},
        .closed_count = 1,
        .standard = {c->setup->input_inode, c->setup->output_inodes[0], c->setup->output_inodes[1]},
        .cut_appended = !(c->setup->flags & CW_SETUP_SHARES_FILES),
        .may_cut = may_cut};

    if (s->wire.shared)
        leave_out(&setting, s->wire.shared, CW_WIRE_SHARED_BYTES);
    if (s->key)
        leave_out(&setting, s->key, SECRET_PAGE);
    leave_out(&setting, store_secret(), SECRET_PAGE);
    if (x->channel.on) {
        setting.given[setting.given_count++] = x->channel.fd;
        if (x->channel.file_fd >= 0)
            setting.given[setting.given_count++] = x->channel.file_fd;
        leave_out(&setting, x->channel.memory.memory, x->channel.memory.size);
        if (x->channel.bell.fd >= 0)
            setting.closed[setting.closed_count++] = x->channel.bell.fd;
    }
    return setting;
}

/* --- taking one ---------------------------------------------------------------------------------
 */

static enum image_result take(struct checkpoint *c, struct exchange *x,
                              const struct image_order *order, uint32_t servers, struct cw_err *err)
{
    struct image_setting setting = setting_of(c, x);
    struct store_place place;
    enum image_result result;

    store_put_in(&place, order, servers);
    setting.open = store_open;
    setting.also = store_also;
    setting.finish = store_finish;
    setting.ctx = &place;
    result = image_take(order, &setting, err);
    store_wipe(&place);
    return result;
}

static struct image_order order_of(const struct checkpoint *c, const struct cw_checkpoint *asked,
                                   const struct cw_point *point)
{
    struct image_order order = {.rank = c->setup->process.rank,
                                .ranks = c->setup->ranks,
                                .incarnation = c->setup->process.incarnation,
                                .number = asked->number,
                                .base = asked->base,
                                .event = point->event,
                                .clock = point->clock,
                                .acts = point->acts};

    memcpy(order.job, c->setup->job, sizeof(order.job));
    return order;
}

/* While other threads stand still: what they write goes before the mark or is in the image. Returns
 * why there is no image, or NULL. */
static const char *begin_held(struct checkpoint *c, struct exchange *x, struct cw_checkpoint asked,
                              const struct cw_point *point, bool *restored, struct cw_err *err)
{
    struct cw_image_report taken = {.number = asked.number, .point = *point};
    struct image_order order = order_of(c, &asked, point);

    if (held_refusal())
        return held_refusal();
    until_note(inputs_are_mine());
    look_at_input(c, &taken);
    if (!mark_outputs(c, asked.number))
        return "what it has written is not taken from its standard output or error, which are "
               "full; read them faster, or write less";
    report(c, CW_REPORT_IMAGE_TAKEN, &taken, "");
    switch (take(c, x, &order, asked.servers, err)) {
    case IMAGE_RESTORED:
        held_go_on();
        until_go_on(inputs_are_mine());
        *restored = true;
        return NULL;
    case IMAGE_BEGUN:
        c->on_its_way = true;
        c->servers = asked.servers;
        c->looks = 0;
        return NULL;
    case IMAGE_REFUSED:
        break;
    }
    return err->text;
}

/* Returns true in a process that goes on from it. */
static bool begin(struct checkpoint *c, struct exchange *x)
{
    struct cw_checkpoint asked = x->asked;
    struct cw_point point;
    struct cw_err err = {0};
    bool restored = false;
    const char *refused;

    x->asked.number = 0;
    if (!store_knows(asked.servers)) {
        report_refused(c, asked.number,
                       "the rank does not know the checkpoint servers that it is "
                       "to go to");
        return false;
    }
    tell_relay(x, &point);
    if (image_hold(lock_holds_up, &err)) {
        report_refused(c, asked.number, err.text);
        return false;
    }
    refused = begin_held(c, x, asked, &point, &restored, &err);
    image_let_go();
    if (refused)
        report_refused(c, asked.number, refused);
    return restored;
}

/* A process that goes on from an image gives up what the program has given up before it connects.
 */
static bool can_connect_again(const char *address)
{
    const char *path = strncmp(address, "unix:", 5) == 0 ? address + 5 : "@";

    return path[0] == '@' || eaccess(path, W_OK) == 0 || errno == ENOENT;
}

/* Why there can be no image of this rank; NULL: there can. */
static const char *refusal(const struct checkpoint *c, const struct exchange *x)
{
    if (!x->cursor.logged)
        return "the rank has no log, so it cannot be restarted";
    if (trace_on)
        return "CAUSEWAY_TRACE is set: what it compares goes on from the beginning alone";
    if (!can_connect_again(c->setup->address))
        return "the program has given up rights without which its relay cannot be reached again";
    return c->why_not[0] ? c->why_not : NULL;
}

static void look_after(struct checkpoint *c)
{
    struct image_outcome outcome;
    enum image_state state;

    if (c->looks++ % LOOK_EVERY)
        return;
    state = image_poll(&outcome);
    if (state == IMAGE_ON_ITS_WAY)
        return;
    c->on_its_way = false;
    report_ended(c, &outcome, state == IMAGE_STORED);
}

/* What goes to other servers than those that are asked for now is of no use. */
static void give_up(struct checkpoint *c)
{
    image_cancel();
    c->on_its_way = false;
}

/* A request that comes meanwhile waits: the copy may be about to end. */
static void answer_late(struct checkpoint *c, struct exchange *x)
{
    uint64_t now_ns = cw_clock_ns();

    if (x->asked.number && x->asked.servers != c->servers) {
        give_up(c);
    } else if (c->waiting != x->asked.number) {
        c->waiting = x->asked.number;
        c->waits_since_ns = now_ns;
    } else if (c->waiting && now_ns - c->waits_since_ns > ANSWER_NS) {
        report_refused(c, c->waiting,
                       "the image before is still on its way: the checkpoint server takes it "
                       "slowly, or stands still");
        x->asked.number = 0;
    }
}

bool checkpoint_turn(struct checkpoint *c, struct exchange *x)
{
    const char *why;

    if (c->on_its_way) {
        look_after(c);
        answer_late(c, x);
        return false;
    }
    why = refusal(c, x);
    if (!why)
        return begin(c, x);
    report_refused(c, x->asked.number, why);
    x->asked.number = 0;
    return false;
}

void checkpoint_begin(struct checkpoint *c, const struct cw_setup *setup, int control_fd,
                      int pmi_fd, const struct exchange *x)
{
    struct cw_err err = {0};

    *c = (struct checkpoint){.setup = setup, .control_fd = control_fd, .pmi_fd = pmi_fd};
    if (!x->cursor.logged)
        return;
    if (setup->image_servers == 0)
        cw_err_set(&err, CW_EINVAL, "no checkpoint server is known to the rank");
    else if (image_probe(&err) == CW_OK)
        store_begin(setup, &err);
    if (err.code)
        snprintf(c->why_not, sizeof(c->why_not), "%.*s", CW_TEXT_MAX, err.text);
    if (c->why_not[0] && setup->image_servers > 0)
        report_refused(c, 0, c->why_not); /* rather now than when the first is asked for */
}

void checkpoint_end(struct checkpoint *c)
{
    if (c->on_its_way)
        give_up(c);
}
