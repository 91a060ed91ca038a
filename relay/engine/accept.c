#include "relay/engine/accept.h"

#include "common/clock.h"
#include "common/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define DRAIN_MAX 64         /* reads before a connection is closed */
#define SAY_NS 1000000000ull /* between two lines about refused connections */

static int spare_descriptor(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int relay_spare_open(struct relay_spare *spare)
{
    *spare = (struct relay_spare){.fd = spare_descriptor()};
    return spare->fd < 0 ? CW_ESYS : CW_OK;
}

static void say_refused(struct relay_spare *spare)
{
    dprintf(
        STDERR_FILENO,
        "causeway relay: descriptor limit reached, connections refused: %u; raise 'ulimit -n'\n",
        spare->refused);
    spare->refused = 0;
    spare->said_ns = cw_clock_ns();
}

static void count_refused(struct relay_spare *spare, uint32_t count)
{
    spare->refused += count;
    if (spare->said_ns == 0 || cw_clock_ns() - spare->said_ns >= SAY_NS)
        say_refused(spare);
}

void relay_spare_close(struct relay_spare *spare)
{
    cw_close(&spare->fd);
    if (spare->refused > 0)
        say_refused(spare);
}

void relay_refuse(int fd, struct relay_spare *spare)
{
    close(fd);
    count_refused(spare, 1);
}

/* accept(2) says that there is no descriptor also where nobody waits for one. */
static void refuse_one(int listener, struct relay_spare *spare)
{
    bool nobody, refused;
    int fd;

    cw_close(&spare->fd);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    nobody = fd < 0 && errno == EAGAIN;
    refused = fd >= 0;
    cw_close(&fd);
    spare->fd = spare_descriptor();
    if (!nobody) /* who cannot even be refused still waits: said, not counted */
        count_refused(spare, refused);
}

static bool accept_dialled(int fd, struct relay_accepted *accepted)
{
    struct iovec iov = {&accepted->dialled, sizeof(accepted->dialled)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};

    if (recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof(accepted->dialled))
        return false;
    accepted->fd = -1;
    if (CMSG_FIRSTHDR(&msg))
        memcpy(&accepted->fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(accepted->fd));
    else if (!accepted->dialled.failure[0]) /* the kernel had no number to give it, and closed it */
        snprintf(accepted->dialled.failure, sizeof(accepted->dialled.failure),
                 "descriptor limit of the relay that connected; raise its 'ulimit -n'");
    return true;
}

bool relay_accept_none(struct relay_core *core, const struct relay_accepted *accepted)
{
    if (accepted->fd >= 0)
        return false;
    relay_core_undialled(core, &accepted->dialled);
    return true;
}

bool relay_accept(const struct relay_listener *listener, struct relay_spare *spare,
                  struct relay_accepted *accepted)
{
    uint64_t count;

    if (listener->wakes) {
        while (read(listener->fd, &count, sizeof(count)) > 0)
            ;
        return false;
    }
    accepted->is_dialled = listener->dialled;
    accepted->is_local = !listener->dialled && listener->address.at[0].storage.ss_family == AF_UNIX;
    if (listener->dialled)
        return accept_dialled(listener->fd, accepted);
    accepted->fd = cw_accept(listener->fd, &listener->address);
    if (accepted->fd == -EMFILE || accepted->fd == -ENFILE)
        refuse_one(listener->fd, spare);
    return accepted->fd >= 0;
}

struct relay_conn *relay_accept_conn(struct relay_core *core, const struct relay_accepted *accepted,
                                     uint64_t now_ns, void *owner)
{
    uint8_t nonce[CW_NONCE_SIZE];

    if (accepted->is_dialled)
        return relay_conn_dialled(core, &accepted->dialled, now_ns, owner);
    if (getrandom(nonce, sizeof(nonce), 0) != sizeof(nonce))
        return NULL;
    return relay_conn_open(core, nonce, now_ns, owner);
}

static void open_link(const struct relay_engine_config *config, const struct relay_dial *dial)
{
    const struct relay_dialler *dialler = &config->dialler;
    struct relay_dialled dialled = relay_dialled_of(dial);

    if (dialler->dial && dialler->dial(dialler->ctx, dial))
        return;
    snprintf(dialled.failure, sizeof(dialled.failure),
             "too many links are being opened, or no thread can be started");
    relay_core_undialled(config->core, &dialled);
}

/* Whether it had results. */
static bool settle_disk(const struct relay_engine_config *config)
{
    const struct relay_disk *disk = &config->disk;
    struct relay_log_done done;
    struct relay_log_io io;
    bool any = false;

    if (!disk->take)
        return false;
    while (disk->next_done(disk->ctx, &done)) {
        relay_core_io_done(config->core, &done);
        any = true;
    }
    while (relay_core_next_io(config->core, &io))
        disk->take(disk->ctx, &io);
    return any;
}

bool relay_settle(const struct relay_engine_config *config)
{
    const struct relay_dialler *dialler = &config->dialler;
    struct relay_pages pages;
    struct relay_dial dial;

    bool any;

    relay_core_settle(config->core);
    any = settle_disk(config);
    while (config->give_back && relay_core_next_surplus(config->core, &pages))
        config->give_back(&pages);
    while (relay_core_next_dial(config->core, &dial)) {
        if (!dial.cancelled)
            open_link(config, &dial);
        else if (dialler->cancel)
            dialler->cancel(dialler->ctx, dial.job);
        explicit_bzero(dial.key, sizeof(dial.key));
    }
    return any;
}

void relay_hang_up(int fd)
{
    char drain[4096];

    shutdown(fd, SHUT_WR);
    for (int i = 0; i < DRAIN_MAX && recv(fd, drain, sizeof(drain), MSG_DONTWAIT) > 0; i++)
        ;
    close(fd);
}
