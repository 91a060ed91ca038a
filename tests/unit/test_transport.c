/* Addresses, and sockets at them. */
#include "common/transport.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 5000

static struct cw_address address;
static struct cw_err err;
static char path[128]; /* "unix:DIR/s" */

static int set_up(void)
{
    int failed = scratch_make();

    snprintf(path, sizeof(path), "unix:%s/s", scratch_dir);
    return failed;
}

static int tear_down(void)
{
    unlink(path + 5);
    return scratch_end();
}

SUITE("transport", set_up, tear_down);

static void good(const char *text, const char *scheme)
{
    CU_ASSERT_EQUAL(cw_address_parse(&address, text, &err), CW_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(address.transport);
    CU_ASSERT_STRING_EQUAL(address.transport->scheme, scheme);
    CU_ASSERT_STRING_EQUAL(address.text, text);
}

static void bad(const char *text)
{
    memset(&err, 0, sizeof(err));
    CU_ASSERT_EQUAL(cw_address_parse(&address, text, &err), CW_EINVAL);
    CU_ASSERT_EQUAL(err.code, CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "address"));
}

TEST(addresses)
{
    static const char *const wrong[] = {"",
                                        "unix",
                                        "unix:",
                                        "tcp",
                                        "tcp:",
                                        "tcp::",
                                        "tcp:80",
                                        "tcp:h:",
                                        "tcp::80",
                                        "tcp:127.0.0.1:x",
                                        "tcp:[]:80",
                                        "tcp:1.2.3.4:-1",
                                        "tcp:1.2.3.4:65536",
                                        "tcp:1.2.3.4:99999999999999999999",
                                        "udp:h:1",
                                        "/tmp/x",
                                        "unixx:/tmp/x",
                                        " unix:/tmp/x",
                                        "UNIX:/tmp/x"};

    good("unix:/tmp/x", "unix");
    good("unix:x:y", "unix");
    good("tcp:127.0.0.1:0", "tcp");
    good("tcp:127.0.0.1:65535", "tcp");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        bad(wrong[i]);
}

TEST(long_addresses)
{
    struct sockaddr_un un;
    char text[2 * CW_ADDRESS_MAX];

    memset(text, 'x', sizeof(text));
    memcpy(text, "unix:", 5);
    text[5 + sizeof(un.sun_path) - 1] = '\0';
    good(text, "unix");
    text[5 + sizeof(un.sun_path) - 1] = 'x';
    text[5 + sizeof(un.sun_path)] = '\0';
    bad(text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "1 to 107 bytes"));
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    bad(text);
    memcpy(text, "tcp:", 4);
    strcpy(text + CW_ADDRESS_MAX - 10, ":80");
    bad(text);
}

/* The address in brackets as RFC 3986 writes it; machines without IPv6 cannot say. */
TEST(ipv6_address)
{
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return;
    close(fd);
    CU_ASSERT_EQUAL(cw_address_parse(&address, "tcp:[::1]:80", &err), CW_OK);
}

/* A connection each way carries a byte. */
static void talk(int listener)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    int client = cw_connect(&address, &err);
    int server;
    char byte = 0;

    CU_ASSERT_TRUE_FATAL(client >= 0);
    CU_ASSERT_EQUAL(poll(&p, 1, WAIT_MS), 1);
    server = cw_accept(listener, &address);
    CU_ASSERT_TRUE_FATAL(server >= 0);
    CU_ASSERT_TRUE(fcntl(client, F_GETFL) & O_NONBLOCK);
    CU_ASSERT_TRUE(fcntl(server, F_GETFL) & O_NONBLOCK);
    CU_ASSERT_TRUE(fcntl(client, F_GETFD) & FD_CLOEXEC);
    CU_ASSERT_TRUE(fcntl(server, F_GETFD) & FD_CLOEXEC);
    CU_ASSERT_EQUAL(write(client, "x", 1), 1);
    p.fd = server;
    CU_ASSERT_EQUAL(poll(&p, 1, WAIT_MS), 1);
    CU_ASSERT_EQUAL(read(server, &byte, 1), 1);
    CU_ASSERT_EQUAL(byte, 'x');
    close(client);
    close(server);
}

static void listens(const char *text)
{
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, text, &err), CW_OK);
    fd = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(cw_accept(fd, &address), -EAGAIN);
    CU_ASSERT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    talk(fd);
    cw_unlisten(fd, &address);
    CU_ASSERT_EQUAL(cw_connect(&address, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, address.text));
}

TEST(unix_socket)
{
    listens(path);
    CU_ASSERT_NOT_EQUAL(access(path + 5, F_OK), 0);
}

/* The kernel's choice is what others are to be told. */
TEST(tcp_port_zero)
{
    listens("tcp:127.0.0.1:0");
    CU_ASSERT_EQUAL(strncmp(address.text, "tcp:127.0.0.1:", 14), 0);
    CU_ASSERT_TRUE(atoi(address.text + 14) > 0);
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof(value);

    CU_ASSERT_EQUAL(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

TEST(who_vanishes_is_asked)
{
    int listener, fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, "tcp:127.0.0.1:0", &err), CW_OK);
    listener = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(listener >= 0);
    fd = cw_connect(&address, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    cw_keep_alive(fd);
    CU_ASSERT_EQUAL(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), CW_ALIVE_IDLE_S);
    CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), CW_ALIVE_ASK_S);
    CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_KEEPCNT), CW_ALIVE_ASKS_MAX);
    close(fd);
    cw_unlisten(listener, &address);
}

TEST(tcp_port_in_use)
{
    struct cw_address other;
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, "tcp:127.0.0.1:0", &err), CW_OK);
    fd = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&other, address.text, &err), CW_OK);
    CU_ASSERT_EQUAL(cw_listen(&other, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, address.text));
    cw_unlisten(fd, &address);
}

/* A host name may stand for several places: the first is not there for us, or nobody answers. */
TEST(places_in_order)
{
    struct cw_address here;
    int nobody;
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, "tcp:127.0.0.1:0", &err), CW_OK);
    nobody = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(nobody >= 0);
    close(nobody);
    /* 192.0.2.1 is nobody's, by RFC 5737 */
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&here, "tcp:192.0.2.1:0", &err), CW_OK);
    here.at[1] = address.at[0];
    here.count = 2;
    fd = cw_listen(&here, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_STRING_EQUAL(here.text, address.text);
    cw_unlisten(fd, &here);
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&here, "tcp:127.0.0.1:0", &err), CW_OK);
    fd = cw_listen(&here, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    address.at[1] = here.at[0];
    address.count = 2;
    talk(fd);
    cw_unlisten(fd, &here);
    CU_ASSERT_EQUAL(cw_connect(&address, &err), CW_ESYS);
}

TEST(taken_port_at_the_first_place)
{
    struct cw_address here;
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, "tcp:127.0.0.1:0", &err), CW_OK);
    fd = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&here, "tcp:127.0.0.1:0", &err), CW_OK);
    here.at[1] = here.at[0];
    here.at[0] = address.at[0];
    here.count = 2;
    CU_ASSERT_EQUAL(cw_listen(&here, &err), CW_ESYS);
    cw_unlisten(fd, &address);
}

TEST(stale_unix_socket_is_taken_over)
{
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, path, &err), CW_OK);
    fd = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    close(fd); /* as if killed: the file stays */
    CU_ASSERT_EQUAL(access(path + 5, F_OK), 0);
    listens(path);
}

/* As of a killed process that used io_uring: the kernel closes it later. */
static void *close_later(void *listener)
{
    poll(NULL, 0, 50);
    close(*(int *)listener);
    return NULL;
}

TEST(unix_socket_whose_process_has_just_ended_is_taken_over)
{
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;
    pid_t pid;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, path, &err), CW_OK);
    CU_ASSERT_EQUAL_FATAL(
        bind(listener, (struct sockaddr *)&address.at[0].storage, address.at[0].size), 0);
    pid = fork();
    if (pid == 0)
        _exit(listen(listener, 1));
    CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, close_later, &listener), 0);
    listens(path);
    pthread_join(thread, NULL);
}

TEST(live_unix_socket_is_not_taken_over)
{
    struct cw_address other;
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, path, &err), CW_OK);
    fd = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&other, path, &err), CW_OK);
    CU_ASSERT_EQUAL(cw_listen(&other, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another process listens there"));
    /* the question is in its queue */
    CU_ASSERT_TRUE(close(cw_accept(fd, &address)) == 0);
    talk(fd);
    cw_unlisten(fd, &address);
}

/* A socket of another type is not connected to: the reason is told, and it stays. */
TEST(datagram_socket_is_not_taken_over)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, path, &err), CW_OK);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&address.at[0].storage, address.at[0].size),
                          0);
    CU_ASSERT_EQUAL(cw_listen(&address, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, strerror(EPROTOTYPE)));
    CU_ASSERT_EQUAL(access(path + 5, F_OK), 0);
    close(fd);
    unlink(path + 5);
}

TEST(files_are_not_taken_over)
{
    int fd = open(path + 5, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CU_ASSERT_TRUE_FATAL(fd >= 0);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, path, &err), CW_OK);
    CU_ASSERT_EQUAL(cw_listen(&address, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no socket"));
    CU_ASSERT_EQUAL(access(path + 5, F_OK), 0);
    unlink(path + 5);
}

TEST(missing_directory)
{
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, "unix:/nowhere/s", &err), CW_OK);
    CU_ASSERT_EQUAL(cw_listen(&address, &err), CW_ESYS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unix:/nowhere/s"));
    CU_ASSERT_EQUAL(cw_connect(&address, &err), CW_ESYS);
}

static void *accept_later(void *listener)
{
    poll(NULL, 0, 50);
    return (void *)(intptr_t)cw_accept(*(int *)listener, &address);
}

/* Not even then is a connection refused at once. */
TEST(listener_that_is_full)
{
    pthread_t thread;
    void *accepted;
    int listener;
    int waiting;
    int fd;

    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, path, &err), CW_OK);
    listener = cw_listen(&address, &err);
    CU_ASSERT_TRUE_FATAL(listener >= 0);
    CU_ASSERT_EQUAL_FATAL(listen(listener, 0), 0);
    waiting = cw_connect_begin(&address, 0, &err);
    CU_ASSERT_TRUE(waiting >= 0);
    CU_ASSERT_EQUAL(cw_connect_begin(&address, 0, &err), CW_ESYS);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, accept_later, &listener), 0);
    fd = cw_connect(&address, &err);
    CU_ASSERT_TRUE(fd >= 0);
    pthread_join(thread, &accepted);
    close(fd);
    close(waiting);
    close((int)(intptr_t)accepted);
    cw_unlisten(listener, &address);
}
