#include "rdevice/image/image.h"

#include "rdevice/image/context.h"
#include "rdevice/image/copy.h"
#include "rdevice/image/files.h"
#include "rdevice/image/gather.h"
#include "rdevice/image/handoff.h"
#include "rdevice/image/others.h"
#include "rdevice/image/remark.h"
#include "rdevice/image/seen.h"
#include "rdevice/image/shared.h"
#include "rdevice/image/system.h"

#include <string.h>
#include <sys/socket.h>

#define LEFT_OUT_MAX (IMAGE_LEFT_OUT_MAX + 2u)

static struct {
    bool on_its_way;
    struct image_range left_out[LEFT_OUT_MAX]; /* the setting's, and the library's own */
    uint32_t left_out_count;
    uint32_t number, tag;               /* of the newest image */
    uint32_t stored_number, stored_tag; /* of the newest that is safe; tag 0: unknown */
    uint64_t start_ns, stall_ns;
    bool held;
    int32_t former_tid;
    struct cw_image_context context;
    struct handoff handoff; /* left by the restorer */
} state;

/* --- in the program -------------------------------------------------------------------------- */

static int check_setting(const struct image_order *order, const struct image_setting *setting,
                         struct cw_err *err)
{
    if (state.on_its_way)
        return cw_err_set(err, CW_EBUSY, "image %u is still on its way", state.number);
    if (order->number == 0 || order->rank >= order->ranks || setting->given_count > 4 ||
        setting->closed_count > IMAGE_GIVEN_MAX || setting->left_out_count > IMAGE_LEFT_OUT_MAX)
        return cw_err_set(err, CW_EINVAL, "an image with wrong parameters was asked for");
    return 0;
}

static int list_left_out(const struct image_setting *setting, struct cw_err *err)
{
    struct image_range *own = &state.left_out[setting->left_out_count];

    memcpy(state.left_out, setting->left_out, setting->left_out_count * sizeof(*own));
    if (copy_prepare(&own[0], err))
        return err->code;
    seen_range(&own[1].start, &own[1].size);
    state.left_out_count = setting->left_out_count + 2;
    return 0;
}

/* All that is not memory. On failure nothing is held. */
static int gather_all(const struct image_setting *setting, struct cw_err *err)
{
    if (list_left_out(setting, err) || gather_read(err) || files_read(setting, err))
        return err->code;
    if (shared_take(state.left_out, state.left_out_count, err)) {
        files_release();
        return err->code;
    }
    return 0;
}

static int begin_copy(const struct image_order *order, const struct image_setting *setting,
                      struct cw_err *err)
{
    struct copy_work work = {
        .order = order,
        .setting = setting,
        .context = &state.context,
        .left_out = state.left_out,
        .left_out_count = state.left_out_count,
        .handoff = (uint64_t)(uintptr_t)&state.handoff,
        .tag = state.tag + 1,
    };

    if (order->base != 0 && order->base == state.stored_number && state.stored_tag != 0) {
        work.base = order->base;
        work.base_tag = state.stored_tag;
    }
    if (copy_begin(&work, err))
        return err->code;
    state.tag = work.tag;
    state.number = order->number;
    state.on_its_way = true;
    return 0;
}

/* --- in the restored process ----------------------------------------------------------------- */

static void __attribute__((noreturn)) give_up(const struct cw_err *err)
{
    struct {
        uint32_t kind, reserved;
        char text[HANDOFF_TEXT_MAX];
    } report = {.kind = HANDOFF_REPORT};
    size_t size = strlen(err->text);

    if (size > sizeof(report.text))
        size = sizeof(report.text);
    memcpy(report.text, err->text, size);
    if (state.handoff.control_fd < 0)
        system_call(SYS_write, 2, report.text, size);
    system_call(SYS_sendto, state.handoff.control_fd, &report, 8 + size, MSG_NOSIGNAL, 0, 0);
    for (;;)
        system_call(SYS_exit_group, HANDOFF_EXIT);
}

static void go_on(const struct image_order *order, const struct image_setting *setting)
{
    const char *remark = gather_restore_thread();
    const int given[] = {state.handoff.control_fd, state.handoff.pmi_fd, state.handoff.channel_fd,
                         state.handoff.channel_file_fd};
    struct cw_err err = {0};
    bool cut = setting->cut_appended;

    system_unmap(SYSTEM_RESTORER_START, SYSTEM_RESTORER_END - SYSTEM_RESTORER_START);
    copy_forget();
    seen_forget();
    shared_release();
    remark_forget();
    if (remark)
        remark_add("the program could not get back %s", remark);
    state.on_its_way = false;
    state.stored_tag = 0;
    state.former_tid = gather_tid();
    if (cut && setting->may_cut)
        cut = setting->may_cut(state.handoff.control_fd);
    if (gather_restore(&err) || files_restore(setting, given, cut, &err) ||
        gather_restore_rights(&err) || others_revive(gather_pending(), &err)) {
        cw_err_wrap(&err, "rank %u cannot go on from image %u", order->rank, order->number);
        give_up(&err);
    }
    files_release();
    gather_restore_limits();
    gather_restore_timers();
}

/* --- for the device -------------------------------------------------------------------------- */

int image_hold(bool (*unfit)(void), struct cw_err *err)
{
    state.start_ns = system_now_ns();
    gather_block();
    if (others_stop(unfit, err)) {
        gather_unblock();
        return err->code;
    }
    state.held = true;
    return 0;
}

void image_let_go(void)
{
    if (!state.held)
        return;
    state.held = false;
    others_release();
    gather_unblock();
    state.stall_ns = system_now_ns() - state.start_ns;
}

static enum image_result take_held(const struct image_order *order,
                                   const struct image_setting *setting, struct cw_err *err)
{
    if (check_setting(order, setting, err) || gather_all(setting, err))
        return IMAGE_REFUSED;
    if (context_save(&state.context)) {
        go_on(order, setting);
        return IMAGE_RESTORED;
    }
    begin_copy(order, setting, err);
    shared_release();
    files_release();
    return state.on_its_way ? IMAGE_BEGUN : IMAGE_REFUSED;
}

enum image_result image_take(const struct image_order *order, const struct image_setting *setting,
                             struct cw_err *err)
{
    bool mine = !state.held;
    enum image_result result;

    if (mine && image_hold(NULL, err))
        return IMAGE_REFUSED;
    result = take_held(order, setting, err);
    if (mine)
        image_let_go();
    return result;
}

enum image_state image_poll(struct image_outcome *outcome)
{
    struct copy_outcome copy;

    if (!state.on_its_way)
        return IMAGE_NONE;
    if (!copy_ended(&copy))
        return IMAGE_ON_ITS_WAY;
    state.on_its_way = false;
    state.stored_tag = 0; /* the table is no longer that of the image before */
    *outcome = (struct image_outcome){
        .number = state.number, .stall_ns = state.stall_ns, .sent = copy.sent, .bytes = copy.bytes};
    if (!copy.stored) {
        outcome->err = copy.err;
        return IMAGE_FAILED;
    }
    state.stored_number = state.number;
    state.stored_tag = state.tag;
    return IMAGE_STORED;
}

void image_cancel(void)
{
    if (!state.on_its_way)
        return;
    copy_kill();
    state.on_its_way = false;
    state.stored_tag = 0;
}

bool image_thread(uint32_t index, int32_t *former, int32_t *now)
{
    if (index > 0)
        return others_get(index - 1, former, now);
    *former = state.former_tid;
    *now = (int32_t)system_call(SYS_gettid);
    return true;
}

void *image_thread_local(uint32_t index, void *mine)
{
    uintptr_t other;

    if (index == 0)
        return mine;
    other = others_fs_base(index - 1);
    return other ? (void *)((uintptr_t)mine - (uintptr_t)__builtin_thread_pointer() + other) : NULL;
}
