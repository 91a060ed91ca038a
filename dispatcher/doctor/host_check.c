#include "dispatcher/doctor/host_check.h"
#include "common/fd.h"
#include "common/machine.h"
#include "common/together.h"
#include "dispatcher/doctor/causes.h"
#include "dispatcher/launch/nodes.h"

#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BAD_USAGE 2 /* exit code of a causeway that does not know the command */

/* --- why there is no report --- */

/* ssh takes whole seconds. */
static uint32_t connect_s(uint64_t time_ns)
{
    uint64_t s = (time_ns + 999999999) / 1000000000;

    return s > 0 && s < NODES_CONNECT_MAX_S ? (uint32_t)s : NODES_CONNECT_MAX_S;
}

static uint64_t time_of(const struct host_check *c)
{
    return c->config->time_ns ? c->config->time_ns : NODES_START_NS;
}

static int start(struct host_check *c, const char *const *words, struct cw_err *err)
{
    const struct launch_command_config how = {.launcher = c->config->launcher,
                                              .args = c->config->launcher_args,
                                              .host = c->name,
                                              .own_host = c->config->own_host,
                                              .causeway = c->causeway,
                                              .words = words,
                                              .connect_s = connect_s(c->config->time_ns)};

    return ssh_session_begin(&c->session, &how, time_of(c), err);
}

/* What `causeway --version` there prints, behind whatever a shell prints. */
static bool ask_version(struct host_check *c, char version[MARKER_NOISE_KEPT + 1])
{
    static const char *const words[] = {"--version", NULL};
    char printed[MARKER_NOISE_KEPT + 1];
    const char *at = NULL;
    struct cw_err err;

    ssh_session_free(&c->session);
    if (start(c, words, &err) == CW_ECLOSED)
        at = strstr(marker_noise(&c->session.greeting.marker, printed, sizeof(printed)),
                    "causeway ");
    if (at)
        snprintf(version, MARKER_NOISE_KEPT + 1, "%.*s",
                 (int)strcspn(at + strlen("causeway "), " "), at + strlen("causeway "));
    return at;
}

static void tell_other_version(struct host_check *c, const char *version)
{
    if (strcmp(version, CAUSEWAY_VERSION) == 0)
        findings_add(&c->findings, DOCTOR_MISSING,
                     "%s is Causeway %s as here, but cannot report; install the same build on all "
                     "hosts",
                     c->causeway, version);
    else
        findings_add(&c->findings, DOCTOR_MISSING,
                     "%s is Causeway %s, and here is Causeway %s; install the same version on all "
                     "hosts",
                     c->causeway, version, CAUSEWAY_VERSION);
}

/* Its process has ended. */
static void explain_end(struct host_check *c)
{
    char said[CW_ERR_TEXT_MAX], noise[MARKER_NOISE_KEPT + 1], version[MARKER_NOISE_KEPT + 1];
    const char *advice;
    int status;

    ssh_session_why(&c->session, said, sizeof(said));
    marker_noise(&c->session.greeting.marker, noise, sizeof(noise));
    status = c->session.child.status;
    advice = causes_advice(said);
    if ((!advice || (WIFEXITED(status) && WEXITSTATUS(status) == BAD_USAGE)) &&
        ask_version(c, version)) {
        tell_other_version(c, version);
        return;
    }
    findings_add(
        &c->findings, DOCTOR_MISSING, "%s starts no causeway there: %s%s%s%s; %s%s",
        c->config->launcher, said, noise[0] ? " (on its standard output came: \"" : "", noise,
        noise[0] ? "\")" : "",
        advice ? advice : "look what it prints with --version: ", advice ? "" : c->causeway);
}

static void explain(struct host_check *c, const struct cw_err *err)
{
    if (err->code == CW_ECLOSED)
        explain_end(c);
    else
        findings_add(&c->findings, DOCTOR_MISSING, "%s %s causeway node: %s; try it by hand",
                     c->config->launcher, c->name, err->text);
}

/* --- the report --- */

static void tell_facts(struct host_check *c)
{
    const struct host_report *r = &c->report;

    findings_add(&c->findings, DOCTOR_OK,
                 "Causeway %s (%s), MPICH %s, %s, %u cores, %llu MiB of memory free",
                 c->session.facts.version, r->path, r->mpich[0] ? r->mpich : "not found",
                 r->machine, c->session.facts.cores, (unsigned long long)r->memory_mb);
}

static void check_machine(struct host_check *c)
{
    char system[CW_MACHINE_MAX];
    struct utsname own;

    if (uname(&own) == 0 && strcmp(c->report.machine, own.machine) != 0)
        findings_add(&c->findings, DOCTOR_MISSING,
                     "it is of the architecture %s, and this machine %s; all hosts of a job must "
                     "be of one",
                     c->report.machine, own.machine);
    cw_machine_read(system);
    c->here = cw_machine_is_same(c->session.facts.system, system);
}

static void check_noise(struct host_check *c)
{
    char noise[MARKER_NOISE_KEPT + 1];

    if (c->session.greeting.marker.noise > 0)
        findings_add(&c->findings, DOCTOR_WARNING,
                     "its login prints on standard output (\"%s\"), of which jobs bear %u bytes; "
                     "let the start files of its shell print for interactive shells only",
                     marker_noise(&c->session.greeting.marker, noise, sizeof(noise)),
                     MARKER_NOISE_MAX);
}

static uint64_t number(const struct host_check *c, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(c->session.answer, key));
}

static void begin_to_listen(struct host_check *c)
{
    json_t *request = tcp_probe_request("listen", c->config->token, "");
    struct cw_err err;

    if (ssh_session_ask(&c->session, request, HOST_CHECK_ASK_NS, &err) < 0)
        findings_add(&c->findings, DOCTOR_MISSING,
                     "it cannot listen for TCP: %s; relays of jobs have to", err.text);
    else
        c->port = (uint16_t)number(c, "port");
}

/* --- its clock --- */

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* How far it is ahead, as it was halfway of the shortest round trip; it may be off by half of that.
 */
static bool compare_clocks(struct host_check *c, double *ahead_s, double *error_s)
{
    struct cw_err err;

    *error_s = INFINITY;
    for (unsigned i = 0; i < HOST_CHECK_CLOCK_ROUNDS; i++) {
        double start_s = now_s(), end_s;

        if (ssh_session_ask(&c->session, json_pack("{s:s}", "op", "time"), HOST_CHECK_ASK_NS,
                            &err) < 0)
            return false;
        end_s = now_s();
        if ((end_s - start_s) / 2 >= *error_s)
            continue;
        *error_s = (end_s - start_s) / 2;
        *ahead_s = (double)number(c, "ns") / 1e9 - (start_s + end_s) / 2;
    }
    return true;
}

static void check_clock(struct host_check *c)
{
    double ahead_s = 0, error_s;

    if (!compare_clocks(c, &ahead_s, &error_s))
        findings_add(&c->findings, DOCTOR_WARNING, "it did not tell its time; try again");
    else if (fabs(ahead_s) - error_s > (double)HOST_CHECK_CLOCK_MAX_NS / 1e9)
        findings_add(&c->findings, DOCTOR_WARNING,
                     "its clock is %.1f s %s this machine's; let NTP set both, or the times of "
                     "files do not agree, and time jumps for a rank that moves to another host",
                     fabs(ahead_s), ahead_s > 0 ? "ahead of" : "behind");
    else
        findings_add(&c->findings, DOCTOR_OK, "its clock differs from this machine's by %.1f ms",
                     fabs(ahead_s) * 1e3);
}

/* --- all of it --- */

static int ask_report(struct host_check *c, struct cw_err *err)
{
    json_t *request =
        json_pack("{s:s, s:s, s:s*, s:s*}", "op", "check", "directory", c->config->directory,
                  "program", c->config->program, "ssh_keys", c->config->ssh_keys);

    if (ssh_session_ask(&c->session, request, time_of(c), err) == CW_OK)
        host_report_get(&c->report, c->session.answer);
    return err->code;
}

void host_check_begin(struct host_check *c)
{
    struct cw_err err = {0};

    if (start(c, NULL, &err) == CW_OK && !greeting_is_ours(&c->session.facts)) {
        tell_other_version(c, c->session.facts.version);
        return;
    }
    if (err.code != CW_OK || ask_report(c, &err) < 0) {
        explain(c, &err);
        return;
    }
    c->there = true;
    tell_facts(c);
    host_report_get_findings(c->session.answer, &c->findings);
    check_machine(c);
    check_noise(c);
    begin_to_listen(c);
    check_clock(c);
}

int host_check_reach(struct host_check *c, const char *address, struct cw_err *err)
{
    ssh_session_ask(&c->session, tcp_probe_request("reach", c->config->token, address),
                    HOST_CHECK_ASK_NS, err);
    c->gone = err->code != CW_OK && err->code != CW_ESYS;
    return err->code;
}

/* --- all hosts --- */

int host_checks_init(struct host_checks *all, uint32_t count, struct cw_err *err)
{
    if (readlink("/proc/self/exe", all->causeway, sizeof(all->causeway) - 1) < 0)
        all->causeway[0] = '\0';
    if (!getcwd(all->directory, sizeof(all->directory)))
        strcpy(all->directory, "/");
    all->config.directory = all->directory;
    randombytes_buf(all->config.token, sizeof(all->config.token));
    all->check = calloc(count, sizeof(*all->check));
    if (!all->check)
        return cw_err_set(err, CW_ENOMEM, "no memory for %u hosts", count);
    all->count = count;
    for (uint32_t i = 0; i < count; i++)
        all->check[i] = (struct host_check){.config = &all->config, .causeway = all->causeway};
    cw_raise_descriptor_limit(); /* a launcher's process has three pipes, and each session a loop */
    signal(SIGPIPE, SIG_IGN);    /* a launcher may have ended when it is asked */
    return CW_OK;
}

static void end_one(void *ctx, uint32_t host)
{
    struct host_check *c = &((struct host_checks *)ctx)->check[host];

    ssh_session_free(&c->session);
    findings_free(&c->findings);
}

void host_checks_end(struct host_checks *all, uint32_t at_a_time)
{
    cw_together(all->count, at_a_time, end_one, all);
    findings_free(&all->findings);
    free(all->check);
}
