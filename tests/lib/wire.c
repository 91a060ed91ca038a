/* A long and narrow wire: the device DEVICE of this network namespace, which it makes, out of which
 * each IP packet that is sent on it comes MS milliseconds later. Of MBIT megabits a second, no more
 * pass (0: no limit), and what would wait longer than QUEUE_MS for its turn is lost. Ends with the
 * device.
 *
 *   wire DEVICE MS MBIT
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PACKET_MAX 65536u
#define BATCH_MAX 64 /* packets taken before those that are due are given */
#define QUEUE_MS 200u
#define ON_ITS_WAY_MAX (256u << 20) /* bytes */
#define NS_PER_S 1000000000u
#define NS_PER_MS 1000000u

struct packet {
    struct packet *next;
    uint64_t due_ns;
    size_t size;
    uint8_t bytes[];
};

struct wire {
    int fd;
    uint64_t delay_ns, mbit;
    uint64_t free_ns; /* when what was sent before has left */
    struct packet *first, **last;
    size_t bytes;
};

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void make_device(struct wire *w, const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    w->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (w->fd < 0)
        fail("opening /dev/net/tun");
    if (ioctl(w->fd, TUNSETIFF, &request) < 0)
        fail("making the device");
}

static void add(struct wire *w, const uint8_t *bytes, size_t size)
{
    uint64_t at = now();
    struct packet *p;

    if (w->free_ns < at)
        w->free_ns = at;
    if (w->free_ns - at > (uint64_t)QUEUE_MS * NS_PER_MS || w->bytes > ON_ITS_WAY_MAX)
        return;
    p = malloc(sizeof(*p) + size);
    if (!p)
        fail("a packet");
    w->free_ns += w->mbit ? size * 8000u / w->mbit : 0;
    *p = (struct packet){.due_ns = w->free_ns + w->delay_ns, .size = size};
    memcpy(p->bytes, bytes, size);
    *w->last = p;
    w->last = &p->next;
    w->bytes += size;
}

/* Returns false when the device is no more. */
static bool take(struct wire *w)
{
    uint8_t bytes[PACKET_MAX];

    for (int i = 0; i < BATCH_MAX; i++) {
        ssize_t n = read(w->fd, bytes, sizeof(bytes));

        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        add(w, bytes, (size_t)n);
    }
    return true;
}

/* What cannot be given is lost, as on other wires. */
static void give(struct wire *w)
{
    struct packet *p;

    while ((p = w->first) && p->due_ns <= now()) {
        if (write(w->fd, p->bytes, p->size) < 0 && errno == EBADFD)
            return;
        w->first = p->next;
        if (!w->first)
            w->last = &w->first;
        w->bytes -= p->size;
        free(p);
    }
}

static bool turn(struct wire *w)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    uint64_t at = now(), wait_ns = w->first && w->first->due_ns > at ? w->first->due_ns - at : 0;
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / NS_PER_S),
                            .tv_nsec = (long)(wait_ns % NS_PER_S)};

    if (ppoll(&p, 1, w->first ? &wait : NULL, NULL) < 0 && errno != EINTR)
        fail("waiting");
    if (p.revents && !take(w))
        return false;
    give(w);
    return true;
}

int main(int argc, char **argv)
{
    struct wire w = {.last = &w.first};

    if (argc != 4)
        return 2;
    w.delay_ns = strtoul(argv[2], NULL, 10) * NS_PER_MS;
    w.mbit = strtoul(argv[3], NULL, 10);
    make_device(&w, argv[1]);
    while (turn(&w))
        ;
    return 0;
}
