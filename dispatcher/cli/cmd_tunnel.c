#include "common/options.h"
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
    "Causeway too; else over one.\n\n";

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
    const char *fd; /* NULL: not given */
    struct tunnel_options options;
    bool merge, help;
};

#define AT(field) offsetof(struct tunnel_words, field)

static const struct cw_option list[] = {
    {"connections", .argument = "N", CW_OPTION_NUMBER, AT(options.connections), 1, STRIPES_MAX,
     .help = "how many (1 to 16; default: " TUNNEL_CONNECTIONS_VARIABLE " in the environment)"},
    {"verbose", .at = AT(options.verbose), .help = "say how many there are, and why"},
    {"fd", .argument = "FD", CW_OPTION_TEXT, AT(fd)}, /* these two are for our own use */
    {"merge", .at = AT(merge)},
    {"help", .at = AT(help), .help = "this text"},
    {0}};

static const struct cw_options options = {
    .command = "causeway tunnel",
    .usage = usage,
    .groups = (const struct cw_option_group[]){{NULL, list, 0}, {0}}};

/* What the words do not say. */
static int complete(struct tunnel_words *w, struct tunnel_ends *ends, struct cw_err *err)
{
    const char *count = getenv(TUNNEL_CONNECTIONS_VARIABLE);
    uint64_t connections;

    if (count && !w->options.connections) {
        if (cw_parse_number(TUNNEL_CONNECTIONS_VARIABLE, count, 1, STRIPES_MAX, &connections, err) <
            0)
            return err->code;
        w->options.connections = (uint32_t)connections;
    }
    return w->fd ? take_fd(w->fd, ends, err) : CW_OK;
}

int cmd_tunnel(int argc, char **argv)
{
    struct tunnel_words w = {0};
    struct tunnel_ends ends = {.in = STDIN_FILENO, .out = STDOUT_FILENO};
    struct ssh_address address;
    struct cw_err err = {0};

    if (argc >= 2 && strcmp(argv[1], "--listen") == 0)
        return cmd_door(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (cw_options_parse(&options, argc, argv, &w, NULL, &err) == CW_OK) {
        if (w.merge)
            return merge();
        if (w.help || optind + 1 != argc) {
            cw_options_help(&options, w.help ? stdout : stderr);
            return w.help ? 0 : 2;
        }
    }
    if (err.code || complete(&w, &ends, &err) < 0 ||
        ssh_address_parse(&address, argv[optind], &err) < 0) {
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
        return 2;
    }
    if (tunnel_run(&address, &w.options, &ends, &err) == CW_OK)
        return 0;
    if (ends.opened || !ends.told)
        fprintf(stderr, "causeway tunnel: %s\n", err.text);
    return 1;
}
