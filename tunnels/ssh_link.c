#include "tunnels/ssh_link.h"
#include "common/clock.h"

#include <poll.h>

#define NS_IN_MS 1000000ull

const struct ssh_hop *ssh_link_hop(const struct ssh_link *link)
{
    return &link->chain->way->hop[link->number];
}

int ssh_link_fail(const struct ssh_link *link, int code, const char *what, struct cw_err *err)
{
    char *why = NULL;

    if (link->session && libssh2_session_last_errno(link->session) == LIBSSH2_ERROR_EAGAIN)
        return cw_err_set(err, CW_ETIME, "gateway %s: %s: no answer in time",
                          ssh_link_hop(link)->host, what);
    if (link->session)
        libssh2_session_last_error(link->session, &why, NULL, 0);
    return cw_err_set(err, code, "gateway %s: %s: %s", ssh_link_hop(link)->host, what,
                      why && why[0] ? why : "the connection broke");
}

/* --- waiting --- */

bool ssh_link_is_sending(const struct ssh_link *link)
{
    return libssh2_session_block_directions(link->session) & LIBSSH2_SESSION_BLOCK_OUTBOUND;
}

/* A session inside another one waits for room in a window of that, which comes in; or that one
 * waits for the connection. */
short ssh_link_events(const struct ssh_chain *c)
{
    return c->link[0].session && ssh_link_is_sending(&c->link[0]) ? POLLIN | POLLOUT : POLLIN;
}

bool ssh_link_await(const struct ssh_link *link)
{
    const struct ssh_chain *c = link->chain;
    struct pollfd p = {.fd = c->fd, .events = ssh_link_events(c)};
    uint64_t now_ns = cw_clock_ns();

    return now_ns < c->until_ns && poll(&p, 1, (int)((c->until_ns - now_ns) / NS_IN_MS) + 1) >= 0;
}
