#include "tunnels/tunnel.h"
#include "common/home.h"
#include "tunnels/ssh_carry.h"
#include "tunnels/ssh_chain.h"
#include "tunnels/ssh_channel.h"
#include "tunnels/ssh_merge.h"
#include "tunnels/stripes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- striped ---------------------------------------------------------------------------------- */

/* The near end of a striped tunnel: a process for each connection, which carries between SSH and a
 * socket of this one, so that they share the work of the cores; this one cuts and orders. */

struct near_end {
    struct ssh_chain *chain;
    struct stripe_greeting greeting;
    uint32_t time_ms;
    struct stripes stripes;
    pid_t pid[STRIPES_MAX];
    struct cw_err *said; /* by each process, when its connection broke; shared with them */
};

/* --- a process --- */

static int join(const struct near_end *t, struct ssh_chain *chain, struct cw_err *err)
{
    if (ssh_chain_open(chain, t->chain->address, t->chain->way, t->chain->dir, t->time_ms, err) <
            0 ||
        ssh_channel_session(ssh_chain_last(chain), err) < 0)
        return err->code;
    return ssh_merge_open(ssh_chain_last(chain), &t->greeting, err);
}

/* All that is not its own is the other process's: who waits for an end must see it. */
static void let_go(const struct near_end *t, pid_t parent)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || nothing < 0)
        _exit(1);
    dup2(nothing, t->stripes.in);
    dup2(nothing, t->stripes.out);
    for (uint32_t i = 0; i < t->stripes.count; i++)
        close(t->stripes.of[i].in);
}

static void carry(const struct near_end *t, uint32_t number, int fd)
{
    struct ssh_chain another, *chain = number ? &another : t->chain;
    char joined = STRIPE_JOINED;
    struct cw_err err;

    if (number && (join(t, &another, &err) < 0 || write(fd, &joined, 1) != 1))
        _exit(1);
    if (ssh_carry(chain, fd, fd, &err) < 0)
        t->said[number] = err;
    ssh_chain_close(chain);
    _exit(0);
}

/* --- this one --- */

static int start(struct near_end *t, uint32_t number, struct cw_err *err)
{
    pid_t self = getpid();
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return cw_err_set(err, CW_ESYS, "a tunnel: socketpair: %s", strerror(errno));
    t->pid[number] = fork();
    if (t->pid[number] == 0) {
        close(ends[0]);
        let_go(t, self);
        carry(t, number, ends[1]);
    }
    close(ends[1]);
    if (t->pid[number] > 0)
        return stripes_add(&t->stripes, ends[0], ends[0], number > 0, err);
    close(ends[0]);
    return cw_err_set(err, CW_ESYS, "a tunnel: fork: %s", strerror(errno));
}

/* The first one's process has the session now. */
static int start_all(struct near_end *t, uint32_t connections, struct cw_err *err)
{
    int result = start(t, 0, err);

    ssh_chain_leave(t->chain);
    t->greeting.kind = STRIPE_JOIN;
    for (uint32_t i = 1; result == CW_OK && i < connections; i++)
        result = start(t, i, err);
    return result;
}

/* Who has said all hears the far end out, as it ends by itself; nobody is waited for in vain. */
static void say_goodbye(const struct near_end *t, bool hear_out)
{
    for (uint32_t i = 0; i < t->stripes.count; i++) {
        const struct stripe *one = &t->stripes.of[i];

        if (one->in >= 0 && one->opening)
            kill(t->pid[i], SIGKILL);
        if (one->in >= 0 && hear_out)
            shutdown(one->in, SHUT_WR);
        else if (one->in >= 0)
            close(one->in);
    }
}

static void end_all(const struct near_end *t, bool at_once)
{
    for (uint32_t i = 0; i < t->stripes.count; i++) {
        if (at_once)
            kill(t->pid[i], SIGKILL);
        waitpid(t->pid[i], NULL, 0);
    }
}

/* What a process said of its connection says more than that it ended. */
static int explain(const struct near_end *t, struct cw_err *err)
{
    for (uint32_t i = 0; i < t->stripes.count && (!err->code || err->code == CW_ECLOSED); i++)
        if (t->said[i].code < 0) {
            *err = t->said[i];
            return err->code;
        }
    return err->code < 0
               ? cw_err_wrap(err, "gateway %s", ssh_link_hop(ssh_chain_last(t->chain))->host)
               : CW_OK;
}

/* What was said in full is waited for: each process ends when the far end has let go of its
 * connection, or when that breaks. */
static int run(struct near_end *t, uint32_t connections, struct cw_err *err)
{
    struct stripes_door none = {.fd = -1};
    const struct stripes *s = &t->stripes;
    bool is_said;

    err->code = CW_OK;
    is_said = start_all(t, connections, err) == CW_OK &&
              stripes_run(&t->stripes, &none, err) == CW_OK && (s->left || s->out_over);
    if (is_said)
        say_goodbye(t, !s->left);
    end_all(t, !is_said);
    return explain(t, err);
}

/* The first connection has greeted the far end, and is `chain`, which a process takes over. Up to
 * `connections` - 1 further ones join when they are open; one that does not open is not missed.
 * Until both directions have ended and all is where it leads, however slowly it is read there, or
 * an end is gone. Errors: CW_ECLOSED: a connection broke; CW_ESYS, CW_EPROTO, CW_ENOMEM. */
static int tunnel_stripes_run(struct ssh_chain *chain, const struct stripe_greeting *greeting,
                              uint32_t connections, uint32_t time_ms, int in, int out,
                              struct cw_err *err)
{
    struct near_end *t = malloc(sizeof(*t));
    size_t size = STRIPES_MAX * sizeof(*t->said);
    void *said = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (t && said != MAP_FAILED) {
        *t = (struct near_end){
            .chain = chain, .greeting = *greeting, .time_ms = time_ms, .said = said};
        stripes_init(&t->stripes, false, in, out);
        run(t, connections, err);
        stripes_fini(&t->stripes);
    } else {
        cw_err_set(err, CW_ENOMEM, "no memory for a tunnel");
    }
    if (said != MAP_FAILED)
        munmap(said, size);
    free(t);
    return err->code;
}

struct tunnel {
    const struct tunnel_options *options;
    struct tunnel_ends *ends;
    char dir[PATH_MAX]; /* of the user's keys and known hosts, for all connections */
    struct ssh_chain chain;
    struct stripe_greeting greeting;
    uint32_t connections; /* of the tunnel, once it is open */
};

/* Of a few bytes: there is room. */
static void tell(const struct tunnel_ends *ends, char what, const char *text)
{
    char line[1 + CW_ERR_TEXT_MAX];

    if (ends->told)
        (void)!write(ends->out, line, (size_t)snprintf(line, sizeof(line), "%c%s", what, text));
}

static void remark(const struct tunnel *t, const char *what, const char *why)
{
    if (t->options->verbose)
        fprintf(stderr, "causeway tunnel: %s%s\n", what, why);
}

static void make_greeting(struct tunnel *t)
{
    t->greeting = (struct stripe_greeting){.kind = STRIPE_FIRST, .port = t->chain.address->port};
    snprintf(t->greeting.host, sizeof(t->greeting.host), "%s", t->chain.address->host);
    randombytes_buf(t->greeting.name, sizeof(t->greeting.name));
    randombytes_buf(t->greeting.token, sizeof(t->greeting.token));
}

/* On a session with the last gateway: how many connections there are to be, of which this one has
 * found the far end then; 1: it has not, and `why` says it. */
static uint32_t connections(struct tunnel *t, struct ssh_link *link, struct cw_err *why)
{
    uint32_t count = t->options->connections;

    if (count == 0 && ssh_channel_round_trip_ns(link, TUNNEL_NEAR_NS) < TUNNEL_NEAR_NS) {
        cw_err_set(why, CW_OK, "the gateway is near");
        return 1;
    }
    make_greeting(t);
    if (ssh_merge_open(link, &t->greeting, why) < 0)
        return 1;
    return count ? count : TUNNEL_CONNECTIONS;
}

/* The channel of the link is open then: to the far end of a striped tunnel, or to the address. */
static int choose(struct tunnel *t, struct cw_err *err)
{
    struct ssh_link *link = ssh_chain_last(&t->chain);
    const struct ssh_address *address = t->chain.address;
    struct cw_err why = {.text = "as it was asked for"};

    t->connections = 1;
    if (t->options->connections != 1 && ssh_channel_session(link, &why) == CW_OK) {
        t->connections = connections(t, link, &why);
        if (t->connections == 1)
            ssh_channel_drop(link);
    }
    if (t->connections == 1)
        remark(t, "one connection: ", why.text);
    else
        remark(t, "several connections", "");
    return t->connections > 1 ? CW_OK
                              : ssh_channel_forward(link, address->host, address->port, err);
}

/* The best way that leads there. Of several each has its part of the time. */
static int open_one_way(struct tunnel *t, const struct ssh_address *address, struct cw_err *err)
{
    uint32_t time_ms = TUNNEL_OPEN_MS / address->ways;

    snprintf(t->dir, sizeof(t->dir), "%s/.ssh", cw_home());
    for (uint32_t i = 0; i < address->ways; i++) {
        if (i > 0)
            ssh_chain_close(&t->chain);
        if (ssh_chain_open(&t->chain, address, &address->way[i], t->dir, time_ms, err) == CW_OK &&
            choose(t, err) == CW_OK)
            break;
    }
    return err->code;
}

static int open_and_carry(struct tunnel *t, const struct ssh_address *address, struct cw_err *err)
{
    if (open_one_way(t, address, err) < 0) {
        tell(t->ends, TUNNEL_FAILED, err->text);
        return err->code;
    }
    t->ends->opened = true;
    tell(t->ends, TUNNEL_OPENED, "");
    return t->connections == 1 ? ssh_carry(&t->chain, t->ends->in, t->ends->out, err)
                               : tunnel_stripes_run(&t->chain, &t->greeting, t->connections,
                                                    TUNNEL_OPEN_MS, t->ends->in, t->ends->out, err);
}

int tunnel_run(const struct ssh_address *address, const struct tunnel_options *options,
               struct tunnel_ends *ends, struct cw_err *err)
{
    struct tunnel t = {.options = options, .ends = ends};

    if (libssh2_init(0) != 0)
        return cw_err_set(err, CW_ENOMEM, "libssh2 cannot be used");
    err->code = CW_OK;
    open_and_carry(&t, address, err);
    ssh_chain_close(&t.chain);
    sodium_memzero(&t.greeting, sizeof(t.greeting));
    libssh2_exit();
    return err->code;
}
