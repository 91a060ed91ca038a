/* Peers that do not behave: clients of a relay, and listeners that are none.
 *
 *   hostile client KIND ADDRESS     sends something wrong; ends with code 0 and the relay's words
 *                                   once the relay has closed the connection, else with 1
 *   hostile churn COUNT ADDRESS     connects and leaves, COUNT times
 *   hostile crowd COUNT ADDRESS     connects COUNT times, says a byte each time, prints a line when
 *                                   the relay has greeted the last one, and stays
 *   hostile serve KIND ADDRESS      listens, prints its address, answers what KIND says
 *   hostile twin FILE DONE PROGRAM  becomes PROGRAM; a child of it waits for FILE, connects for
 *                                   the same rank, with the right and with a wrong credential, and
 *                                   makes the file DONE
 */
#include "common/cred.h"
#include "common/hello.h"
#include "common/setup.h"
#include "common/transport.h"
#include "common/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 20000 /* a relay closes a silent connection sooner than this */

static void give_up(const char *what)
{
    fprintf(stderr, "hostile: %s\n", what);
    exit(1);
}

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

static int connect_to(const char *text)
{
    struct cw_address address;
    struct cw_err err = {0};
    int fd;

    if (cw_address_parse(&address, text, &err) < 0)
        give_up(err.text);
    fd = cw_connect(&address, &err);
    if (fd < 0)
        give_up(err.text);
    return fd;
}

/* False at the end of the connection, or when nothing comes for too long. */
static bool read_all(int fd, void *to, size_t size)
{
    uint8_t *at = to;

    while (size > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (poll(&p, 1, PATIENCE_MS) == 0)
            give_up("the relay neither answers nor closes the connection");
        n = recv(fd, at, size, 0);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static void send_all(int fd, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    while (size > 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno != EAGAIN)
            return; /* it does not want to hear more */
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        } else if (poll(&p, 1, PATIENCE_MS) == 0) {
            give_up("the relay does not read and does not close the connection");
        }
    }
}

static void send_words(int fd, uint32_t length, uint32_t type, uint32_t seq, uint32_t ack)
{
    uint8_t header[CW_FRAME_HEADER];
    struct cw_writer w = cw_writer(header, sizeof(header));

    cw_put_u32(&w, length);
    cw_put_u32(&w, type);
    cw_put_u32(&w, seq);
    cw_put_u32(&w, ack);
    send_all(fd, header, sizeof(header));
}

/* Reads on until the end, and prints what a REFUSED says. */
static void expect_end(int fd)
{
    uint8_t header[CW_FRAME_HEADER];
    uint8_t body[CW_FRAME_BODY_MAX];

    while (read_all(fd, header, sizeof(header))) {
        struct cw_reader r = cw_reader(header, sizeof(header));
        uint32_t length = cw_get_u32(&r);
        struct cw_notice_body refused;

        if (length > sizeof(body))
            give_up("a frame of the relay is longer than any that it may send now");
        if (!read_all(fd, body, length))
            return;
        if (cw_get_u32(&r) == CW_FRAME_REFUSED && cw_notice_get(body, length, &refused))
            puts(refused.text);
    }
}

static void send_garbage(int fd)
{
    uint8_t bytes[65536];
    uint32_t x = 12345;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)((x = x * 1103515245 + 12345) >> 16);
    send_all(fd, bytes, sizeof(bytes));
}

static void send_frame_type(int fd)
{
    send_words(fd, 0, 4711, 1, 0);
}

static void send_frame_length(int fd)
{
    send_words(fd, 0xfffffff0u, CW_FRAME_HELLO, 1, 0);
    send_garbage(fd);
}

static void send_frame_short(int fd)
{
    send_words(fd, 3, CW_FRAME_HELLO, 1, 0);
    send_garbage(fd);
}

static void send_frame_number(int fd)
{
    send_words(fd, CW_HELLO_SIZE, CW_FRAME_HELLO, 77, 0);
    send_garbage(fd);
}

static void send_frame_early(int fd)
{
    send_words(fd, CW_RECV_SIZE, CW_FRAME_RECV, 1, 0);
    send_garbage(fd);
}

static void send_frame_of_relay(int fd)
{
    send_words(fd, 0, CW_FRAME_FAREWELL, 1, 0);
}

static void send_half_a_frame(int fd)
{
    send_words(fd, CW_HELLO_SIZE, CW_FRAME_HELLO, 1, 0);
    send_all(fd, "half", 4);
}

static void send_stranger(int fd)
{
    struct cw_hello hello = {.role = CW_ROLE_DISPATCHER, .rank = 2};
    struct cw_session session = {0};
    struct cw_welcome welcome;
    uint8_t key[CW_KEY_SIZE] = {0};
    struct cw_err err = {0};

    if (cw_hello_open(&(struct cw_wire){.fd = fd}, &session, &hello, key, PATIENCE_MS, &welcome,
                      &err) == CW_OK)
        give_up("the relay takes a dispatcher that does not know its key");
    puts(err.text);
}

/* Takes the rings, and says that it has written more than they hold. */
static void send_positions(int fd)
{
    uint8_t challenge[CW_FRAME_HEADER + CW_CHALLENGE_SIZE];
    struct iovec iov = {challenge, sizeof(challenge)};
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct cw_wire wire = {.fd = fd};

    cw_wire_want(&wire, NULL);
    if (poll(&p, 1, PATIENCE_MS) <= 0 || cw_wire_recv(&wire, &iov, 1) != sizeof(challenge))
        give_up("the relay does not challenge");
    cw_wire_join(&wire);
    if (wire.mode != CW_WIRE_RINGS)
        give_up("the relay offers no rings");
    atomic_store(&wire.out.shared->written, 1ull << 40);
    send_all(fd, "", 1);
    cw_wire_close(&wire);
}

static void send_nothing(int fd)
{
    (void)fd;
}

static int client(const char *kind, const char *address)
{
    static const struct {
        const char *name;
        void (*send)(int fd);
    } kinds[] = {
        {"garbage", send_garbage},       {"type", send_frame_type},
        {"length", send_frame_length},   {"short", send_frame_short},
        {"number", send_frame_number},   {"early", send_frame_early},
        {"relays", send_frame_of_relay}, {"half", send_half_a_frame},
        {"stranger", send_stranger},     {"silent", send_nothing},
        {"positions", send_positions},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(kinds[i].name, kind) == 0) {
            int fd = connect_to(address);

            kinds[i].send(fd);
            expect_end(fd);
            close(fd);
            return 0;
        }
    give_up("no such kind of client");
    return 1;
}

static int churn(int count, const char *address)
{
    for (int i = 0; i < count; i++) {
        int fd = connect_to(address);

        if (i % 3 == 1)
            send_all(fd, "hello", 5);
        close(fd);
    }
    return 0;
}

static _Noreturn void crowd(int count, const char *address)
{
    struct rlimit limit;
    char byte;
    int fd = -1;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    for (int i = 0; i < count; i++) {
        fd = connect_to(address);
        send_all(fd, "\1", 1);
    }
    if (!read_all(fd, &byte, 1))
        give_up("the relay does not greet");
    puts("there");
    fflush(stdout);
    for (;;)
        pause_ms(-1);
}

static _Noreturn void serve(const char *kind, const char *text)
{
    struct cw_address address;
    struct cw_err err = {0};
    int listener;

    if (cw_address_parse(&address, text, &err) < 0)
        give_up(err.text);
    listener = cw_listen(&address, &err);
    if (listener < 0)
        give_up(err.text);
    puts(address.text);
    fflush(stdout);
    for (;;) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        int fd;

        poll(&p, 1, -1);
        fd = cw_accept(listener, &address);
        if (fd >= 0 && strcmp(kind, "garbage") == 0)
            send_garbage(fd);
        else if (fd >= 0 && strcmp(kind, "close") == 0)
            close(fd);
        /* else "silent": it stays open */
    }
}

static void attempt(const struct cw_setup *setup, const uint8_t key[CW_KEY_SIZE])
{
    struct cw_hello hello = {
        .role = CW_ROLE_RANK, .rank = setup->rank, .incarnation = setup->incarnation};
    struct cw_session session = {0};
    struct cw_welcome welcome;
    struct cw_err err = {0};
    int fd = connect_to(setup->address);

    memcpy(hello.job, setup->job, sizeof(hello.job));
    if (cw_hello_open(&(struct cw_wire){.fd = fd}, &session, &hello, key, PATIENCE_MS, &welcome,
                      &err) == CW_OK)
        give_up("the relay takes a second process for the same rank");
    printf("twin: %s\n", err.text);
    close(fd);
}

static int twin(const char *file, const char *done, char **program)
{
    uint8_t record[CW_SETUP_MAX];
    struct cw_setup setup;
    int fd = atoi(getenv(CW_SETUP_ENV) ? getenv(CW_SETUP_ENV) : "-1");
    ssize_t n = recv(fd, record, sizeof(record), MSG_PEEK | MSG_DONTWAIT);
    pid_t child;

    if (n < 0 || !cw_setup_get(record, (size_t)n, &setup))
        give_up("no setup record to read");
    child = fork();
    if (child < 0)
        give_up("fork failed");
    if (child > 0) {
        execv(program[0], program);
        give_up("exec failed");
    }
    for (int ms = 0; access(file, F_OK) < 0; ms += 10) {
        if (ms > PATIENCE_MS)
            give_up("the program does not say that it is connected");
        pause_ms(10);
    }
    attempt(&setup, setup.key);
    setup.key[0] ^= 1;
    attempt(&setup, setup.key);
    fflush(stdout);
    close(open(done, O_WRONLY | O_CREAT, 0600));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "client") == 0)
        return client(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "churn") == 0)
        return churn(atoi(argv[2]), argv[3]);
    if (argc == 4 && strcmp(argv[1], "crowd") == 0)
        crowd(atoi(argv[2]), argv[3]);
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        serve(argv[2], argv[3]);
    if (argc >= 5 && strcmp(argv[1], "twin") == 0)
        return twin(argv[2], argv[3], argv + 4);
    fprintf(stderr,
            "usage: hostile client|churn|crowd|serve KIND ADDRESS | twin FILE DONE PROGRAM ...\n");
    return 2;
}
