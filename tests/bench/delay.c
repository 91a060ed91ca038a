/* A way that takes time: connections to 127.0.0.1:PORT go to HOST:PORT2, and every byte comes MS
 * milliseconds later than it was sent, in each direction. Prints "ready". Ends by a signal.
 *
 *   delay PORT HOST PORT2 MS
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64
#define PIECE 65536u
#define ON_ITS_WAY_MAX (256u << 20) /* bytes of a direction */

struct piece {
    struct piece *next;
    uint64_t due_ns;
    size_t at, size; /* size 0: the end */
    uint8_t bytes[];
};

struct way {
    int from,
        to; /* `from` -1: nothing more comes; `to` -1: all was passed on, or nobody takes it */
    struct piece *first, **last;
    size_t bytes;
    bool over;
};

static struct way ways[2 * CONNECTIONS_MAX];
static int count;
static uint64_t delay_ns;

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void take(struct way *w)
{
    struct piece *p = malloc(sizeof(*p) + PIECE);
    ssize_t n = p ? read(w->from, p->bytes, PIECE) : -1;

    if (!p)
        exit(1);
    *p = (struct piece){.due_ns = now() + delay_ns, .size = n > 0 ? (size_t)n : 0};
    if (n <= 0)
        w->from = -1;
    w->bytes += p->size;
    *w->last = p;
    w->last = &p->next;
}

static void drop_first(struct way *w)
{
    struct piece *p = w->first;

    w->bytes -= p->size - p->at;
    w->first = p->next;
    if (!w->first)
        w->last = &w->first;
    free(p);
}

/* Nothing more goes this way. When nothing goes the other way either, the connection ends. */
static void end(struct way *w)
{
    struct way *back = &ways[(w - ways) ^ 1];

    while (w->first)
        drop_first(w);
    shutdown(w->to, SHUT_WR);
    if (w->from >= 0)
        shutdown(w->from, SHUT_RD);
    w->from = -1;
    w->over = true;
    if (!back->over)
        return;
    close(w->to);
    close(back->to);
    w->to = back->to = -1;
}

/* Returns whether it could go on. */
static bool pass(struct way *w)
{
    struct piece *p = w->first;
    ssize_t n =
        p->size ? send(w->to, p->bytes + p->at, p->size - p->at, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        end(w);
        return true;
    }
    p->at += (size_t)n;
    w->bytes -= (size_t)n;
    if (p->at == p->size)
        drop_first(w);
    return true;
}

static int free_place(void)
{
    int i = 0;

    while (i < count && ways[2 * i].to >= 0)
        i++;
    if (i == count && count < CONNECTIONS_MAX)
        count++;
    return i;
}

static void add(int client, const struct sockaddr_in *there)
{
    int server = socket(AF_INET, SOCK_STREAM, 0), on = 1, place = free_place();

    if (client < 0 || place == CONNECTIONS_MAX ||
        connect(server, (const struct sockaddr *)there, sizeof(*there)) < 0) {
        if (place < CONNECTIONS_MAX)
            ways[2 * place].to = -1;
        close(client);
        close(server);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ways[2 * place] = (struct way){.from = client, .to = server};
    ways[2 * place + 1] = (struct way){.from = server, .to = client};
    for (int i = 0; i < 2; i++)
        ways[2 * place + i].last = &ways[2 * place + i].first;
}

/* Milliseconds to the next piece that is due; -1: there is none. */
static int next_ms(void)
{
    uint64_t first = UINT64_MAX, at = now();

    for (int i = 0; i < 2 * count; i++)
        if (ways[i].first && ways[i].first->due_ns < first)
            first = ways[i].first->due_ns;
    return first == UINT64_MAX ? -1 : first <= at ? 1 : (int)((first - at) / 1000000u) + 1;
}

static void turn(int listener, const struct sockaddr_in *there)
{
    struct pollfd p[1 + 2 * CONNECTIONS_MAX];

    p[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (int i = 0; i < 2 * count; i++)
        p[1 + i] = (struct pollfd){.fd = ways[i].bytes < ON_ITS_WAY_MAX ? ways[i].from : -1,
                                   .events = POLLIN};
    if (poll(p, 1 + 2 * (nfds_t)count, next_ms()) < 0)
        exit(1);
    for (int i = 0; i < 2 * count; i++) {
        if (p[1 + i].revents && ways[i].from >= 0)
            take(&ways[i]);
        while (ways[i].first && ways[i].first->due_ns <= now() && pass(&ways[i]))
            ;
    }
    if (p[0].revents)
        add(accept(listener, NULL, NULL), there);
}

int main(int argc, char **argv)
{
    struct sockaddr_in here = {.sin_family = AF_INET}, there = {.sin_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (argc != 5 || inet_pton(AF_INET, argv[2], &there.sin_addr) != 1)
        return 2;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    here.sin_port = htons((uint16_t)atoi(argv[1]));
    there.sin_port = htons((uint16_t)atoi(argv[3]));
    delay_ns = strtoul(argv[4], NULL, 10) * 1000000u;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(listener, 16) < 0)
        return 1;
    puts("ready");
    fflush(stdout);
    for (;;)
        turn(listener, &there);
}
