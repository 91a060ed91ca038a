/* A way that takes time: connections to 127.0.0.1:PORT go to HOST:PORT2, and every byte comes MS
 * milliseconds later than it was sent, in each direction. Prints "ready". Ends by a signal.
 *
 *   delay PORT HOST PORT2 MS
 */
#include <arpa/inet.h>
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
    int from, to; /* `from` -1: nothing more comes */
    struct piece *first, **last;
    size_t bytes;
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

/* Returns whether it could go on. */
static bool pass(struct way *w)
{
    struct piece *p = w->first;
    ssize_t n = 0;

    if (p->size == 0)
        shutdown(w->to, SHUT_WR);
    else
        n = send(w->to, p->bytes + p->at, p->size - p->at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return false;
    p->at += (size_t)n;
    w->bytes -= (size_t)n;
    if (p->at < p->size)
        return true;
    w->first = p->next;
    if (!w->first)
        w->last = &w->first;
    free(p);
    return true;
}

static void add(int client, const struct sockaddr_in *there)
{
    int server = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (client < 0 || count == CONNECTIONS_MAX ||
        connect(server, (const struct sockaddr *)there, sizeof(*there)) < 0) {
        close(client);
        close(server);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ways[2 * count] = (struct way){.from = client, .to = server};
    ways[2 * count + 1] = (struct way){.from = server, .to = client};
    for (int i = 0; i < 2; i++)
        ways[2 * count + i].last = &ways[2 * count + i].first;
    count++;
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
        if (p[1 + i].revents)
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
