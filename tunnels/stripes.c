#include "tunnels/stripes.h"
#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NS_IN_MS 1000000ull
#define POLLS (3u + 2u * STRIPES_MAX)

static void set_nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static bool is_for_later(void)
{
    return errno == EAGAIN || errno == EINTR;
}

void stripes_init(struct stripes *s, bool is_far, int in, int out)
{
    *s = (struct stripes){.is_far = is_far, .in = in, .out = out, .sign_ms = STRIPE_SIGN_MS};
    stripe_order_init(&s->order);
    set_nonblocking(in);
    set_nonblocking(out);
}

void stripes_fini(struct stripes *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        free(s->of[i].came);
        free(s->of[i].going);
    }
    stripe_order_fini(&s->order);
}

int stripes_add(struct stripes *s, int in, int out, bool opening, struct cw_err *err)
{
    struct stripe *one = &s->of[s->count];

    if (s->count == STRIPES_MAX)
        return cw_err_set(err, CW_ELIMIT, "the tunnel has %u connections, and takes no more",
                          STRIPES_MAX);
    *one = (struct stripe){.in = in,
                           .out = out,
                           .opening = opening,
                           .came = malloc(STRIPE_BUFFER_BYTES),
                           .going = malloc(STRIPE_HEADER_BYTES + STRIPE_CHUNK_BYTES_MAX)};
    s->count++;
    set_nonblocking(in);
    set_nonblocking(out);
    return one->came && one->going ? CW_OK : cw_err_set(err, CW_ENOMEM, "no memory for a tunnel");
}

/* --- there --- */

static bool is_up(const struct stripe *one)
{
    return one->in >= 0 && !one->opening;
}

/* What nobody reads is let go of: whether that is right, the end of what comes from there says. */
static void flush(struct stripes *s, struct stripe *one)
{
    ssize_t n;

    while (one->at < one->size && !one->deaf) {
        n = write(one->out, one->going + one->at, one->size - one->at);
        if (n < 0 && is_for_later())
            return;
        one->deaf = n < 0;
        one->at += n > 0 ? (uint32_t)n : 0;
        s->moved = true;
    }
}

static bool is_flushed(const struct stripe *one)
{
    return one->deaf || one->at == one->size;
}

/* Those that take a chunk, a bit for each. */
static uint32_t ready(const struct stripes *s)
{
    uint32_t mask = 0;

    for (uint32_t i = 0; i < s->count; i++)
        if (is_up(&s->of[i]) && !s->of[i].deaf && is_flushed(&s->of[i]))
            mask |= 1u << i;
    return mask;
}

/* Where a chunk that is not packed is read to is where it goes out from. False: there was nothing.
 */
static bool send_chunk(struct stripes *s, struct stripe *one)
{
    bool packs = stripe_cut_packs(&s->cut);
    uint8_t *to = packs ? s->chunk : one->going + STRIPE_HEADER_BYTES;
    ssize_t n = read(s->in, to, STRIPE_CHUNK_BYTES_MAX);

    if (n < 0 && is_for_later()) {
        stripe_cut_pause(&s->cut);
        s->waited = false;
        return false;
    }
    s->moved = true;
    s->in_over = n <= 0;
    if (s->in_over)
        return false;
    if (s->waited)
        stripe_cut_waited(&s->cut, cw_clock_ns());
    s->waited = false;
    one->size = stripe_cut_chunk(&s->cut, to, (uint32_t)n, packs, one->going);
    one->at = 0;
    flush(s, one);
    return true;
}

static void send_end(struct stripes *s, struct stripe *one)
{
    if (!is_up(one) || one->ending || !is_flushed(one))
        return;
    one->size = stripe_cut_end(&s->cut, one->going);
    one->at = 0;
    one->ending = true;
    flush(s, one);
}

static void send_all(struct stripes *s)
{
    uint32_t mask;

    for (uint32_t i = 0; i < s->count; i++)
        flush(s, &s->of[i]);
    for (uint32_t i = 0; i < STRIPE_TURN_CHUNKS_MAX && !s->in_over; i++) {
        mask = ready(s);
        s->waited |= mask == 0;
        if (!mask || !send_chunk(s, &s->of[stripe_cut_turn(&s->cut, mask)]))
            break;
    }
    for (uint32_t i = 0; s->in_over && i < s->count; i++)
        send_end(s, &s->of[i]);
}

static bool all_is_sent(const struct stripes *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (is_up(&s->of[i]) && !(s->of[i].deaf || (s->of[i].ending && is_flushed(&s->of[i]))))
            return false;
    return s->in_over;
}

/* --- and back --- */

static int take(struct stripes *s, struct stripe *one, struct cw_err *err)
{
    size_t used = 0;
    int result =
        stripe_order_take(&s->order, &one->arrived, one->came, one->end, &used, &one->ahead, err);

    s->moved |= used > 0;
    one->end -= used;
    if (used > 0)
        memmove(one->came, one->came + used, one->end);
    return result;
}

static void drop(struct stripe *one)
{
    close(one->in);
    if (one->out != one->in)
        close(one->out);
    one->in = one->out = -1;
}

/* Nothing more comes from there. One that never opened is not missed, nor at the far end one that
 * the near end ended before it knew that it had opened. */
static int end_of(struct stripes *s, struct stripe *one, struct cw_err *err)
{
    bool is_unused = one->opening || (s->is_far && one->arrived.least == 0 && one->end == 0);
    bool broke = !is_unused && (!one->arrived.ended || one->end > 0);

    s->moved = true;
    drop(one);
    return broke ? cw_err_set(err, CW_ECLOSED, "one of the connections of the tunnel broke")
                 : CW_OK;
}

static int receive(struct stripes *s, struct stripe *one, struct cw_err *err)
{
    ssize_t n;

    if (one->in < 0 || (one->end > 0 && take(s, one, err) < 0))
        return one->in < 0 ? CW_OK : err->code;
    if (one->ahead)
        return CW_OK;
    n = read(one->in, one->came + one->end, one->opening ? 1 : STRIPE_BUFFER_BYTES - one->end);
    if (n < 0 && is_for_later())
        return CW_OK;
    if (n <= 0)
        return end_of(s, one, err);
    s->moved = true;
    one->silent = 0;
    if (one->opening) {
        one->opening = false;
        return CW_OK;
    }
    one->end += (size_t)n;
    return take(s, one, err);
}

/* False: nobody reads it any more. */
static bool deliver(struct stripes *s)
{
    struct stripe_chunk *first;
    ssize_t n;

    while ((first = stripe_order_first(&s->order))) {
        n = write(s->out, first->bytes + first->at, first->size - first->at);
        if (n < 0)
            return is_for_later();
        s->moved = true;
        first->at += (uint32_t)n;
        if (first->at == first->size)
            stripe_order_drop(&s->order);
    }
    if (stripe_order_is_over(&s->order) && !s->out_over) {
        shutdown(s->out, SHUT_WR);
        s->out_over = s->moved = true;
    }
    return true;
}

/* --- signs of life --- */

/* What waits to be sent is one, too. */
static void give_sign(struct stripes *s, struct stripe *one)
{
    if (!is_up(one) || one->deaf || !is_flushed(one))
        return;
    stripe_header_put(one->going, &(struct stripe_header){.number = STRIPE_SIGN});
    one->size = STRIPE_HEADER_BYTES;
    one->at = 0;
    flush(s, one);
}

/* Of a connection that is not read nobody knows. */
static bool is_gone(struct stripe *one)
{
    one->silent = one->in >= 0 && !one->ahead ? one->silent + 1 : 0;
    return one->silent > STRIPE_SIGNS_MAX;
}

/* By looks and not by the clock: the near end is not to blame where this process stood still. */
static int look(struct stripes *s, struct cw_err *err)
{
    uint64_t now_ns = cw_clock_ns();

    if (now_ns < s->sign_ns)
        return CW_OK;
    s->sign_ns = now_ns + s->sign_ms * NS_IN_MS;
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->is_far)
            give_sign(s, &s->of[i]);
        else if (is_gone(&s->of[i]))
            return cw_err_set(err, CW_ECLOSED, "the near end of the tunnel gives no sign of life");
    return CW_OK;
}

/* --- both --- */

/* The other end has let go of all connections, as it does when it has ended. */
static bool is_alone(const struct stripes *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->of[i].in >= 0)
            return false;
    return true;
}

static bool is_done(const struct stripes *s)
{
    return s->left || (s->out_over && (is_alone(s) || all_is_sent(s)));
}

static uint32_t polls_of(const struct stripe *one, struct pollfd *p)
{
    p[0] = (struct pollfd){.fd = one->ahead ? -1 : one->in, .events = POLLIN};
    p[1] = (struct pollfd){.fd = is_flushed(one) ? -1 : one->out, .events = POLLOUT};
    return 2;
}

/* Who has left still wants to have sent what he wrote, and no more. */
static void await(struct stripes *s, struct stripes_door *door)
{
    bool pending = stripe_order_first(&s->order), sent = all_is_sent(s);
    struct pollfd p[POLLS] = {
        {.fd = door->fd, .events = POLLIN},
        {.fd = s->in_over || !ready(s) ? -1 : s->in, .events = POLLIN},
        {.fd = pending || sent ? s->out : -1, .events = pending ? POLLOUT : 0}};
    uint32_t count = 3;

    for (uint32_t i = 0; i < s->count; i++)
        count += polls_of(&s->of[i], &p[count]);
    poll(p, count, (int)s->sign_ms);
    if (p[0].revents)
        door->enter(door, s);
    s->left = sent && (p[2].revents & (POLLHUP | POLLERR));
}

static int receive_all(struct stripes *s, struct cw_err *err)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (receive(s, &s->of[i], err) < 0)
            return err->code;
    if (is_alone(s) && !s->out_over && !stripe_order_first(&s->order) &&
        !stripe_order_is_over(&s->order))
        return cw_err_set(err, CW_EPROTO, "the other end of the tunnel did not send all chunks");
    return CW_OK;
}

int stripes_run(struct stripes *s, struct stripes_door *door, struct cw_err *err)
{
    while (!is_done(s)) {
        s->moved = false;
        send_all(s);
        if (look(s, err) < 0 || receive_all(s, err) < 0)
            return err->code;
        if (!deliver(s))
            break;
        if (!s->moved)
            await(s, door);
    }
    return CW_OK;
}
