/* A check of one host of a job: its report, its version against ours, its clock, whom it reaches.
 * Blocks, with a bound on each wait; hosts are checked in several threads. */
#ifndef DISPATCHER_HOST_CHECK_H
#define DISPATCHER_HOST_CHECK_H

#include "dispatcher/doctor/host_report.h"
#include "dispatcher/doctor/tcp_probe.h"
#include "dispatcher/wire/ssh_session.h"

#include <limits.h>

#define HOST_CHECK_ASK_NS 30000000000ull      /* for an answer */
#define HOST_CHECK_CLOCK_ROUNDS 4u            /* questions for the time, of which the best counts */
#define HOST_CHECK_CLOCK_MAX_NS 1000000000ull /* by which a clock may differ */

struct host_check_config {
    const char *launcher; /* as of struct launch_command_config, like the next ones */
    const char *launcher_args;
    const char *own_host;
    uint64_t time_ns;      /* to greet, to report, and a part of it to connect; 0: as for nodes */
    const char *directory; /* of a job */
    const char *program;   /* that is to run, an absolute path; NULL: none */
    const char *ssh_keys;  /* of its tunnels, as SSH_KEYS_VARIABLE has them; NULL: none is named */
    uint8_t token[TCP_PROBE_TOKEN]; /* of all listeners */
};

struct host_check {
    const struct host_check_config *config; /* borrowed, as the next ones */
    const char *name;                       /* as the user gave it */
    const char *causeway;                   /* path there */
    struct ssh_session session;
    struct host_report report;
    struct findings findings;
    bool there;    /* its report has come */
    bool here;     /* it is this machine */
    bool gone;     /* since then it answers no more */
    uint16_t port; /* where it listens; 0: it does not */
};

void host_check_begin(struct host_check *check);

/* Whether the host, which is there, can connect to the address. Errors: CW_ESYS: it says why not;
 * others: it is gone. */
int host_check_reach(struct host_check *check, const char *address, struct cw_err *err);

/* All hosts. */
struct host_checks {
    struct host_check_config config;
    struct host_check *check; /* owned; `count` of them, whose names the caller sets */
    uint32_t count;
    struct findings findings; /* of this machine, and of all hosts together */
    char causeway[PATH_MAX];  /* of this machine; of hosts if nothing else is set */
    char directory[PATH_MAX];
};

/* Draws the token, and makes room for as many processes and connections. Error: CW_ENOMEM. Whatever
 * it returns, host_checks_end is to be called. */
int host_checks_init(struct host_checks *checks, uint32_t count, struct cw_err *err);

/* Ends all sessions, `at_a_time` of them. */
void host_checks_end(struct host_checks *checks, uint32_t at_a_time);

#endif
