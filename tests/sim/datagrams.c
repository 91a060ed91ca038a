#include "tests/sim/datagrams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define QUEUED_MAX 4u /* of Linux: 11 */

struct sim_datagrams {
    struct sim_datagrams *next;
    const struct sim_process *owner; /* NULL: it has ended */
    struct sockaddr_un name;
    socklen_t size; /* 0: no name */
    uint32_t queued;
};

static struct sim_datagrams *all;

static struct sim_datagrams *find(const struct sockaddr *name, socklen_t size)
{
    struct sim_datagrams *at = all;

    while (at && (!at->owner || at->size != size || memcmp(&at->name, name, size) != 0))
        at = at->next;
    return at;
}

struct sim_datagrams *datagrams_new(struct sim_process *owner)
{
    struct sim_datagrams *at = calloc(1, sizeof(*at));

    if (!at)
        abort();
    at->owner = owner;
    at->next = all;
    all = at;
    return at;
}

int datagrams_bind(struct sim_datagrams *at, const struct sockaddr *name, socklen_t size)
{
    if (size == 0 || size > sizeof(at->name))
        return -EINVAL;
    if (find(name, size))
        return -EADDRINUSE;
    memcpy(&at->name, name, size);
    at->size = size;
    return 0;
}

int datagrams_send(const struct sockaddr *name, socklen_t size)
{
    struct sim_datagrams *at = find(name, size);

    if (!at)
        return -ECONNREFUSED;
    if (at->queued == QUEUED_MAX)
        return -EAGAIN;
    at->queued++;
    return 0;
}

int datagrams_recv(struct sim_datagrams *at)
{
    if (at->queued == 0)
        return -EAGAIN;
    at->queued--;
    return 0;
}

bool datagrams_are_there(const struct sim_datagrams *at)
{
    return at->queued > 0;
}

bool datagrams_has(const struct sim_process *owner)
{
    const struct sim_datagrams *at = all;

    while (at && (at->owner != owner || at->size == 0))
        at = at->next;
    return at;
}

void datagrams_owner_ended(const struct sim_process *owner)
{
    for (struct sim_datagrams *at = all; at; at = at->next)
        if (at->owner == owner)
            at->owner = NULL;
}

void datagrams_fini(void)
{
    while (all) {
        struct sim_datagrams *at = all;

        all = at->next;
        free(at);
    }
}
