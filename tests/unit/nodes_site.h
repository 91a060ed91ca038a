/* Nodes on hosts that are all this one: in place of ssh a script that is told the host and runs
 * the command behind two pipes, so that it can be killed without the node. Ranks are scripts. */
#ifndef UNIT_NODES_SITE_H
#define UNIT_NODES_SITE_H

#include "common/transport.h"
#include "dispatcher/launch/far_units.h"
#include "dispatcher/launch/nodes.h"
#include "dispatcher/launch/remote.h"
#include "dispatcher/wire/channel.h"

#define WAIT_NS 30000000000ull /* for anything that must come */
#define TIMEOUT_NS 4000000000ull
#define OUTPUT_MAX (4u << 20)
#define RANKS 3

extern struct nodes_site {
    struct loop *loop;
    struct nodes *nodes;
    struct far_units *units;
    struct remote *remote;
    char launcher[128];
    char causeway[512];
    char output[OUTPUT_MAX]; /* what was read last */
    struct cw_err err;
} here;

/* Since open_site. */
extern struct nodes_told {
    bool ready;
    struct cw_err failure, host_why, start_why, unit_why;
    int failures, host_losses, host_returns, suspensions, resumptions;
    char line[256];
    struct remote_process made[RANKS];
    bool started[RANKS], ends[RANKS], ended[RANKS], failed[RANKS], lost[RANKS];
    int status[RANKS];
    unsigned alives;
    pid_t relay_pid;
    int relay_ends, relay_listenings, unit_how, unit_fails;
    char relay_local[CW_ADDRESS_MAX], relay_tcp[CW_ADDRESS_MAX];
} told;

void write_script(const char *path, const char *text);

/* A scratch directory and a launcher, which does `before` first. */
void open_site(const char *before);
void write_launcher(const char *before);
/* What ranks of sites that are opened from now on say waits at this gate; NULL: passes at once. */
void hold_ranks(struct gate *gate);
/* No host: the node of this machine alone. */
void open_nodes(uint32_t count, uint64_t timeout_ns);
/* Both, until the nodes are there. */
void open_ready(uint32_t count, uint64_t timeout_ns);
void close_all(void);
/* As a dispatcher that is gone: nobody is told to end. */
void free_nodes(void);
/* Nodes have removed theirs. */
void remove_site(void);

/* Turns until that is told; false: it was not. */
bool await_told(const bool *what);
bool await_count(const int *what, int count);
void reap(void);

/* A rank that runs `script`, or is restored by it; the second one waits for its start. */
void start_rank_on(uint32_t host, uint32_t rank, const char *script, int stdin_fd, int image_fd);
void start_rank(uint32_t rank, const char *script);
void close_rank(uint32_t rank);

/* What is there now. Returns false at its end. */
bool read_some(struct channel *from, size_t *used);
/* Reads it to its end; every so many bytes the launcher of the host is killed. Returns its size. */
size_t read_all(struct channel *from, size_t cut_every, void (*cut)(void));

/* As when an ssh connection is reset. */
void cut_connection(void);
pid_t node_pid(uint32_t host);
bool is_gone(pid_t pid);

#endif
