#include "rdevice/bell.h"
#include "rdevice/image/system.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BELL_HEARD_MAX 1024u /* at once: whoever finds it may ring without end */

/* In Linux's abstract namespace: it goes with its process. Who finds it there can wake a rank, and
 * no more. */
static socklen_t name_of(struct sockaddr_un *name, const struct bell *bell, uint32_t rank,
                         uint32_t incarnation)
{
    char id[2 * CW_ID_SIZE + 1];

    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    sodium_bin2hex(id, sizeof(id), bell->job, sizeof(bell->job));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
                                        "causeway/%s/%u.%u", id, rank, incarnation));
}

static int with_number(int fd, int number)
{
    int moved = number < 0 || fd == number ? fd : fcntl(fd, F_DUPFD_CLOEXEC, number);

    if (moved < 0 || moved == fd)
        return fd;
    close(moved == number ? fd : moved);
    return moved == number ? number : fd;
}

void bell_open(struct bell *bell, const uint8_t job[CW_ID_SIZE], uint32_t rank,
               uint32_t incarnation, int number)
{
    struct sockaddr_un name;
    socklen_t size;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(bell->job, job, CW_ID_SIZE);
    bell->fd = -1;
    if (fd < 0)
        return;
    size = name_of(&name, bell, rank, incarnation);
    if (bind(fd, (struct sockaddr *)&name, size) < 0)
        close(fd);
    else
        bell->fd = with_number(fd, number);
}

void bell_ring(const struct bell *bell, uint32_t rank, uint32_t incarnation)
{
    struct sockaddr_un name;
    socklen_t size = name_of(&name, bell, rank, incarnation);

    /* one that is gone, or has rung often, needs none */
    system_call(SYS_sendto, bell->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, &name, size);
}

void bell_hear(const struct bell *bell)
{
    char byte;
    uint32_t heard = 0;

    while (heard < BELL_HEARD_MAX &&
           system_call(SYS_recvfrom, bell->fd, &byte, 1, MSG_DONTWAIT, NULL, NULL) >= 0)
        heard++;
}
