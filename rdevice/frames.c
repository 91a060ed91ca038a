#include "rdevice/frames.h"

#include <string.h>

#define FRAMES_MAX 64u             /* handlers that run, or wait in contexts */
#define FRAMES_STACK_MAX 0x100000u /* bytes that a handler on an ordinary stack uses at most */
#define MARK 0x5a3cf00d96e1c25bu

static struct frame {
    struct frames_mark *mark;
    uintptr_t top, low;
    const void *kept; /* the context with which it was left; NULL: it runs */
} frames[FRAMES_MAX]; /* each interrupts the one before it */
static unsigned count;

static void take_out(unsigned i)
{
    count--;
    memmove(&frames[i], &frames[i + 1], (count - i) * sizeof(*frames));
}

/* The mark is looked at last: where `sp` is below it on the same stack, it can be read. */
static bool contains(const struct frame *f, uintptr_t sp)
{
    return sp < f->top && sp >= f->low && f->mark->value == (MARK ^ (uintptr_t)f->mark);
}

bool frames_any(void)
{
    for (unsigned i = 0; i < count; i++)
        if (!frames[i].kept)
            return true;
    return false;
}

bool frames_inside(uintptr_t sp)
{
    for (unsigned i = count; i-- > 0;) {
        if (frames[i].kept)
            continue;
        if (contains(&frames[i], sp))
            return true;
        take_out(i);
    }
    return false;
}

void frames_push(struct frames_mark *mark, uintptr_t top, uintptr_t low, uintptr_t interrupted)
{
    frames_inside(interrupted);
    if (count == FRAMES_MAX)
        take_out(0);
    if (low == 0 && top > FRAMES_STACK_MAX)
        low = top - FRAMES_STACK_MAX;
    mark->value = MARK ^ (uintptr_t)mark;
    frames[count++] = (struct frame){.mark = mark, .top = top, .low = low};
}

void frames_drop(struct frames_mark *mark)
{
    unsigned first = 0;

    mark->value = 0;
    while (first < count && frames[first].mark != mark)
        first++;
    for (unsigned i = count; i-- > first;)
        if (i == first || !frames[i].kept)
            take_out(i);
}

/* Those that wait in this context, in their order, come after all others. */
static void take_up(const void *context, uintptr_t sp)
{
    unsigned left = count;

    for (unsigned i = 0; left-- > 0;) {
        struct frame f = frames[i];

        if (f.kept != context) {
            i++;
            continue;
        }
        take_out(i);
        f.kept = NULL;
        if (contains(&f, sp))
            frames[count++] = f;
    }
}

void frames_go(const void *from, const void *to, uintptr_t sp)
{
    for (unsigned i = count; i-- > 0;) {
        struct frame *f = &frames[i];

        if (f->kept ? from && f->kept == from : !from && !contains(f, sp))
            take_out(i); /* what the context kept before is over */
        else if (!f->kept && !contains(f, sp))
            f->kept = from;
    }
    if (to)
        take_up(to, sp);
}
