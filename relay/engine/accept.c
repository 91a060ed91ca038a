#include "relay/engine/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#define DRAIN_MAX 64 /* reads before a connection is closed */

static int spare_descriptor(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int relay_spare_open(struct relay_spare *spare)
{
    spare->fd = spare_descriptor();
    return spare->fd < 0 ? CW_ESYS : CW_OK;
}

void relay_spare_close(struct relay_spare *spare)
{
    if (spare->fd >= 0)
        close(spare->fd);
    spare->fd = -1;
}

static void refuse_one(int listener, struct relay_spare *spare)
{
    int fd;

    relay_spare_close(spare);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    spare->fd = spare_descriptor();
    dprintf(STDERR_FILENO, "causeway relay: descriptor limit reached, a connection was refused; "
                           "raise 'ulimit -n'\n");
}

int relay_accept(const struct relay_listener *listener, struct relay_spare *spare)
{
    int fd = cw_accept(listener->fd, &listener->address);

    if (fd >= 0)
        return fd;
    if (fd == -EMFILE || fd == -ENFILE)
        refuse_one(listener->fd, spare);
    return -1;
}

struct relay_conn *relay_accept_conn(struct relay_core *core, uint64_t now_ns, void *owner)
{
    uint8_t nonce[CW_NONCE_SIZE];

    if (getrandom(nonce, sizeof(nonce), 0) != sizeof(nonce))
        return NULL;
    return relay_conn_open(core, nonce, now_ns, owner);
}

void relay_hang_up(int fd)
{
    char drain[4096];

    shutdown(fd, SHUT_WR);
    for (int i = 0; i < DRAIN_MAX && recv(fd, drain, sizeof(drain), MSG_DONTWAIT) > 0; i++)
        ;
    close(fd);
}
