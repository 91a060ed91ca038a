#include "common/parse.h"
#include "dispatcher/cli/commands.h"
#include "tunnels/merge.h"
#include "tunnels/stripe_cut.h"
#include "tunnels/tunnel.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: causeway tunnel [--connections N] [--verbose] "
    "ssh:[USER@]GATEWAY[:PORT][,...]/HOST:PORT\n"
    "       causeway tunnel --listen tcp:HOST:PORT ssh:... [--listen ...]\n\n"
    "Carries its standard input and output to HOST:PORT behind a gateway, through SSH, as\n"
    "'ssh -W HOST:PORT GATEWAY' does; further gateways after commas are each reached from the one\n"
    "before. Gateways must be in ~/.ssh/known_hosts. Keys: of an agent, or ~/.ssh/id_ed25519 and\n"
    "id_ecdsa without a passphrase, and before those the files of CAUSEWAY_SSH_KEYS, with ':'\n"
    "between them. Relays start it for addresses of this form. With --listen it is a door: each\n"
    "connection to tcp:HOST:PORT is led to that address, until SIGTERM.\n\n"
    "Over 5 ms of round trip or more, bytes go over 6 connections, if the last gateway has\n"
    "Causeway too; else over one. --connections, or " TUNNEL_CONNECTIONS_VARIABLE " in the\n"
    "environment, says how many (1 to 16). --verbose says how many there are, and why.\n";

/* Of who started us, which hears why there is no tunnel; else it is told here. It may have signals
 * blocked, and what a terminal sends is for it: its last words still go through here. */
static int take_fd(const char *text, struct tunnel_ends *ends, struct cw_err *err)
{
    sigset_t none;
    int fd;

    if (cw_parse_descriptor(text, &fd, err) < 0)
        return err->code;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    *ends = (struct tunnel_ends){.in = fd, .out = fd, .told = true};
    return CW_OK;
}

static int merge(void)
{
    struct cw_err err = {0};

    if (merge_run(&err) == CW_OK)
        return 0;
    fprintf(stderr, "causeway tunnel --merge: %s\n", err.text);
    return 1;
}

struct tunnel_words {
    const char *fd, *connections; /* NULL: not given */
    bool verbose, merge, help;
};

static int take(const struct tunnel_words *w, struct tunnel_options *options,
                struct tunnel_ends *ends, struct cw_err *err)
{
    const char *of_environment = getenv(TUNNEL_CONNECTIONS_VARIABLE);
    const char *count = w->connections ? w->connections : of_environment;
    uint64_t connections = 0;

    if (count && cw_parse_number(w->connections ? "--connections" : TUNNEL_CONNECTIONS_VARIABLE,
                                 count, 1, STRIPES_MAX, &connections, err) < 0)
        return err->code;
    *options = (struct tunnel_options){(uint32_t)connections, w->verbose};
    return w->fd ? take_fd(w->fd, ends, err) : CW_OK;
}

int cmd_tunnel(int argc, char **argv)
{
    struct tunnel_words w = {0};
    const struct cw_option known[] = {
        {"fd", .text = &w.fd},           {"connections", .text = &w.connections},
        {"verbose", .flag = &w.verbose}, {"merge", .flag = &w.merge},
        {"help", .flag = &w.help},       {0}};
    struct tunnel_ends ends = {.in = STDIN_FILENO, .out = STDOUT_FILENO};
    struct tunnel_options options;
    struct ssh_address address;
    struct cw_err err = {0};

    if (argc >= 2 && strcmp(argv[1], "--listen") == 0)
        return cmd_door(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (cw_parse_options(argc, argv, "causeway tunnel", known, &err) == CW_OK) {
        if (w.help)
            return fputs(usage, stdout) < 0;
        if (w.merge)
            return merge();
        if (optind + 1 != argc)
            return fputs(usage, stderr), 2;
    }
    if (err.code || take(&w, &options, &ends, &err) < 0 ||
        ssh_address_parse(&address, argv[optind], &err) < 0) {
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
        return 2;
    }
    if (tunnel_run(&address, &options, &ends, &err) == CW_OK)
        return 0;
    if (ends.opened || !ends.told)
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
    return 1;
}
