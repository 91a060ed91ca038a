#include "dispatcher/agent/facts.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/doctor/report.h"
#include "dispatcher/doctor/request.h"
#include "dispatcher/program/tool.h"
#include "rdevice/image/features.h"
#include "tunnels/tunnel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define REPORT_TIME_MAX_S 1800 /* whoever asks may have to ask many hosts, one after the other */

/* --- facts and findings --- */

static void tell_host(void)
{
    struct greeting_hello hello;
    struct utsname system;
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    facts_get(&hello, "");
    printf("version %s\npath %.*s\nname %s\npeer %s\nown %s\nsystem %s\ncores %u\n", hello.version,
           n > 0 ? (int)n : 0, path, hello.host, hello.peer, hello.own, hello.system, hello.cores);
    if (uname(&system) == 0)
        printf("machine %s\n", system.machine);
    if (doctor_free_memory_mb() >= 0)
        printf("memory %ld\n", doctor_free_memory_mb());
}

static void tell_features(void)
{
    uint32_t word[REPORT_FEATURE_WORDS];
    uint64_t xcr0 = features_read(word);

    printf("features");
    for (int i = 0; i < REPORT_FEATURE_WORDS; i++)
        printf(" %" PRIx32, word[i]);
    printf(" %" PRIx64 "\n", xcr0);
}

/* A job starts its ranks where it was started itself. */
static void check_directory(struct doctor *d, const char *directory)
{
    if (chdir(directory) < 0)
        doctor_say(d, DOCTOR_WARNING,
                   "the directory %s: %s; start jobs from one that all hosts have, or name one by "
                   "--wdir",
                   directory, strerror(errno));
}

static void tell_findings(struct doctor *d, const char *directory, const char *program)
{
    doctor_check_library(d);
    if (d->mpich_version[0])
        printf("mpich %s\n", d->mpich_version);
    doctor_check_machine(d);
    doctor_check_images(d);
    check_directory(d, directory);
    if (program)
        doctor_check_program(d, program);
}

/* --- requests --- */

static void fail(const char *why)
{
    printf("failed %s\n", why);
}

static void tell_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    printf("done %lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
}

static void begin_to_listen(struct tcp_probe_server *server, const struct request *q)
{
    struct cw_err err;

    tcp_probe_end(server);
    if (tcp_probe_serve(server, q->token, &err) < 0)
        fail(err.text);
    else
        printf("done %u\n", server->port);
}

static void connect_to(const struct request *q)
{
    struct cw_err err;

    if ((q->type == REQUEST_TUNNEL ? tcp_probe_ask_at(q->address, TUNNEL_OPEN_MS, q->token, &err)
                                   : tcp_probe_ask(q->address, q->port, q->token, &err)) < 0)
        fail(err.text);
    else
        puts("done");
}

static void answer(struct tcp_probe_server *server, const char *line)
{
    struct request q;

    if (!request_read(line, &q))
        fail("that is no request");
    else if (q.type == REQUEST_TIME)
        tell_time();
    else if (q.type == REQUEST_LISTEN)
        begin_to_listen(server, &q);
    else
        connect_to(&q);
    fflush(stdout);
}

int doctor_report(const char *directory, const char *program)
{
    struct doctor d = {.report = true, .output = malloc(TOOL_OUTPUT_MAX)};
    struct tcp_probe_server server = {0};
    char line[REQUEST_LINE_MAX + 1];

    alarm(REPORT_TIME_MAX_S);
    if (!d.output) {
        fputs("causeway doctor: no memory\n", stderr);
        return 1;
    }
    fputs(REPORT_MARKER, stdout);
    tell_host();
    tell_features();
    tell_findings(&d, directory, program);
    free(d.output);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        answer(&server, line);
    }
    tcp_probe_end(&server);
    return 0;
}
