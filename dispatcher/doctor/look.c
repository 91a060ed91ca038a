#include "dispatcher/doctor/look.h"
#include "common/machine.h"
#include "dispatcher/doctor/causes.h"
#include "dispatcher/doctor/compare.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#define BAD_USAGE 2 /* exit code of a causeway that does not know the command */

/* --- why there is no report --- */

/* What `causeway --version` there prints, behind whatever a shell prints. */
static bool ask_version(struct look *l, const struct look_config *config,
                        char version[MARKER_NOISE_KEPT + 1])
{
    static const char *const words[] = {"--version", NULL};
    char printed[MARKER_NOISE_KEPT + 1];
    const char *at = NULL;
    struct cw_err err;

    visit_free(&l->visit);
    if (visit_begin(&l->visit, &config->visit, l->name, words, &err) == CW_OK &&
        visit_await_end(&l->visit, &err) == CW_OK)
        at = strstr(marker_noise(&l->visit.report.marker, printed, sizeof(printed)), "causeway ");
    if (at)
        snprintf(version, MARKER_NOISE_KEPT + 1, "%.*s",
                 (int)strcspn(at + strlen("causeway "), " "), at + strlen("causeway "));
    return at;
}

static void tell_other_version(struct look *l, const struct look_config *config,
                               const char *version)
{
    if (strcmp(version, CAUSEWAY_VERSION) == 0)
        findings_add(&l->findings, DOCTOR_MISSING,
                     "%s is Causeway %s as here, but cannot report; install the same build on all "
                     "hosts",
                     config->visit.causeway, version);
    else
        findings_add(&l->findings, DOCTOR_MISSING,
                     "%s is Causeway %s, and here is Causeway %s; install the same version on all "
                     "hosts",
                     config->visit.causeway, version, CAUSEWAY_VERSION);
}

/* Its process has ended. */
static void explain_end(struct look *l, const struct look_config *config)
{
    char said[CW_ERR_TEXT_MAX], noise[MARKER_NOISE_KEPT + 1], version[MARKER_NOISE_KEPT + 1];
    const char *advice;
    int status;

    visit_why(&l->visit, said, sizeof(said));
    marker_noise(&l->visit.report.marker, noise, sizeof(noise));
    status = l->visit.talk.child.status;
    advice = causes_advice(said);
    if ((!advice || (WIFEXITED(status) && WEXITSTATUS(status) == BAD_USAGE)) &&
        ask_version(l, config, version)) {
        tell_other_version(l, config, version);
        return;
    }
    findings_add(&l->findings, DOCTOR_MISSING, "%s starts no causeway there: %s%s%s%s; %s%s",
                 config->visit.launcher, said, noise[0] ? " (on its standard output came: \"" : "",
                 noise, noise[0] ? "\")" : "",
                 advice ? advice : "look what it prints with --version: ",
                 advice ? "" : config->visit.causeway);
}

static void explain(struct look *l, const struct look_config *config, const struct cw_err *err)
{
    if (err->code == CW_ECLOSED)
        explain_end(l, config);
    else
        findings_add(&l->findings, DOCTOR_MISSING, "%s %s causeway doctor: %s; try it by hand",
                     config->visit.launcher, l->name, err->text);
}

/* --- the report --- */

static void check_version(struct look *l, const struct look_config *config)
{
    const struct report *r = &l->visit.report;
    char system[CW_MACHINE_MAX];
    struct utsname own;

    if (strcmp(r->version, CAUSEWAY_VERSION) != 0)
        tell_other_version(l, config, r->version);
    if (uname(&own) != 0)
        return;
    if (strcmp(r->machine, own.machine) != 0)
        findings_add(&l->findings, DOCTOR_MISSING,
                     "it is of the architecture %s, and this machine %s; all hosts of a job must "
                     "be of one",
                     r->machine, own.machine);
    cw_machine_read(system);
    l->here = cw_machine_is_same(r->system, system);
}

static void check_noise(struct look *l)
{
    char noise[MARKER_NOISE_KEPT + 1];

    if (l->visit.report.marker.noise > 0)
        findings_add(&l->findings, DOCTOR_WARNING,
                     "its login prints on standard output (\"%s\"), of which jobs bear %u bytes; "
                     "let the start files of its shell print for interactive shells only",
                     marker_noise(&l->visit.report.marker, noise, sizeof(noise)), MARKER_NOISE_MAX);
}

static void begin_to_listen(struct look *l, const struct look_config *config)
{
    struct request request = {.type = REQUEST_LISTEN};
    struct cw_err err;

    memcpy(request.token, config->token, sizeof(request.token));
    if (visit_ask(&l->visit, &request, &err) < 0)
        findings_add(&l->findings, DOCTOR_MISSING,
                     "it cannot listen for TCP: %s; relays of jobs have to", err.text);
    else
        l->port = (uint16_t)l->visit.report.answer.value;
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
static bool compare_clocks(struct look *l, double *ahead_s, double *error_s)
{
    struct request request = {.type = REQUEST_TIME};
    struct cw_err err;

    *error_s = INFINITY;
    for (unsigned i = 0; i < LOOK_CLOCK_ROUNDS; i++) {
        double start_s = now_s(), end_s;

        if (visit_ask(&l->visit, &request, &err) < 0)
            return false;
        end_s = now_s();
        if ((end_s - start_s) / 2 >= *error_s)
            continue;
        *error_s = (end_s - start_s) / 2;
        *ahead_s = (double)l->visit.report.answer.value / 1e9 - (start_s + end_s) / 2;
    }
    return true;
}

static void check_clock(struct look *l)
{
    double ahead_s = 0, error_s;

    if (!compare_clocks(l, &ahead_s, &error_s))
        findings_add(&l->findings, DOCTOR_WARNING, "it did not tell its time; try again");
    else if (fabs(ahead_s) - error_s > (double)LOOK_CLOCK_MAX_NS / 1e9)
        findings_add(&l->findings, DOCTOR_WARNING,
                     "its clock is %.1f s %s this machine's; let NTP set both, or the times of "
                     "files do not agree, and time jumps for a rank that moves to another host",
                     fabs(ahead_s), ahead_s > 0 ? "ahead of" : "behind");
    else
        findings_add(&l->findings, DOCTOR_OK, "its clock differs from this machine's by %.1f ms",
                     fabs(ahead_s) * 1e3);
}

/* --- all of it --- */

static void tell_facts(struct look *l)
{
    const struct report *r = &l->visit.report;

    findings_add(&l->findings, DOCTOR_OK,
                 "Causeway %s (%s), MPICH %s, %s, %llu cores, %llu MiB of memory free", r->version,
                 r->path, r->mpich[0] ? r->mpich : "not found", r->machine,
                 (unsigned long long)r->cores, (unsigned long long)r->memory_mb);
}

void look_at(struct look *l, const struct look_config *config)
{
    const char *words[7] = {"doctor", "--report", config->directory};
    const char **word = words + 3;
    struct cw_err err;

    if (config->ssh_keys) {
        *word++ = "--ssh-keys";
        *word++ = config->ssh_keys;
    }
    *word = config->program;

    if (visit_begin(&l->visit, &config->visit, l->name, words, &err) < 0 ||
        visit_await_report(&l->visit, &err) < 0) {
        explain(l, config, &err);
        return;
    }
    l->there = true;
    tell_facts(l);
    check_version(l, config);
    check_noise(l);
    begin_to_listen(l, config);
    check_clock(l);
}

void look_free(struct look *l)
{
    visit_free(&l->visit);
    findings_free(&l->findings);
}

void look_compare(const struct look *looks, uint32_t count, struct findings *findings)
{
    struct compared *hosts = calloc(count, sizeof(*hosts));

    if (!hosts)
        return;
    for (uint32_t i = 0; i < count; i++)
        hosts[i] = (struct compared){looks[i].name, looks[i].there ? &looks[i].visit.report : NULL};
    compare_features(hosts, count, findings);
    compare_mpich(hosts, count, findings);
    free(hosts);
}
