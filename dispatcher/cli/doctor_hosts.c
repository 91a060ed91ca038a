#include "dispatcher/cli/doctor_hosts.h"
#include "common/thread.h"
#include "dispatcher/doctor/compare.h"
#include "dispatcher/doctor/links.h"
#include "dispatcher/program/resolve.h"

#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct examination {
    struct look_config config;
    struct links links;
    struct tcp_probe_server server;
    struct findings findings; /* of this machine, and of all hosts together */
    uint8_t token[TCP_PROBE_TOKEN];
    char own_name[HOST_NAME_MAX + 1];
    char causeway[PATH_MAX];
    char directory[PATH_MAX];
    char program[PATH_MAX];
    bool missing;
};

/* --- hosts, several at a time --- */

struct round {
    struct examination *of;
    void (*look)(struct examination *e, uint32_t host);
    atomic_uint next;
};

static void *take_hosts(void *ctx)
{
    struct round *r = ctx;
    uint32_t host;

    while ((host = atomic_fetch_add(&r->next, 1)) < r->of->links.count)
        r->look(r->of, host);
    return NULL;
}

/* The calling thread takes part. */
static void each_host(struct examination *e, void (*look)(struct examination *e, uint32_t host))
{
    struct round r = {.of = e, .look = look};
    pthread_t thread[DOCTOR_HOSTS_MAX];
    uint32_t count = 0;

    while (count + 1 < DOCTOR_HOSTS_MAX && count + 1 < e->links.count &&
           cw_thread_start(&thread[count], 0, take_hosts, &r) == 0)
        count++;
    take_hosts(&r);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
}

static void look_at_one(struct examination *e, uint32_t host)
{
    look_at(&e->links.host[host], &e->config);
}

static void reach_one(struct examination *e, uint32_t host)
{
    links_reach(&e->links, host);
}

static void leave_one(struct examination *e, uint32_t host)
{
    look_free(&e->links.host[host]);
}

/* --- this machine --- */

/* A launcher's process has three pipes, and each look a loop. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void begin_to_listen(struct examination *e)
{
    struct cw_err err;

    randombytes_buf(e->token, sizeof(e->token));
    e->links.token = e->config.token = e->token;
    if (tcp_probe_serve(&e->server, e->token, &err) < 0)
        findings_add(&e->findings, DOCTOR_MISSING,
                     "this machine cannot listen for TCP: %s; relays of jobs have to", err.text);
    else
        e->links.port = e->server.port;
}

static void find_program(struct examination *e, const char *name)
{
    struct cw_err err;

    if (program_resolve(name, NULL, e->program, sizeof(e->program), &err) < 0)
        findings_add(&e->findings, DOCTOR_MISSING, "%s", err.text);
    else
        e->config.program = e->program;
}

static int begin(struct examination *e, const struct host_options *options, const char *program)
{
    ssize_t n = readlink("/proc/self/exe", e->causeway, sizeof(e->causeway) - 1);

    e->links.host = calloc(options->list.count, sizeof(*e->links.host));
    if (!e->links.host || !getcwd(e->directory, sizeof(e->directory)))
        return -1;
    e->links.count = options->list.count;
    for (uint32_t i = 0; i < e->links.count; i++) {
        e->links.host[i].name = options->list.host[i].name;
        e->links.host[i].visit = VISIT_NONE;
    }
    e->causeway[n > 0 ? n : 0] = '\0';
    gethostname(e->own_name, sizeof(e->own_name) - 1);
    e->links.own_name = e->own_name;
    e->config.directory = e->directory;
    e->config.visit =
        (struct visit_config){.launcher = options->launcher,
                              .launcher_args = options->launcher_args,
                              .own_host = e->own_name,
                              .causeway = options->agent ? options->agent : e->causeway};
    if (program)
        find_program(e, program);
    raise_descriptor_limit();
    signal(SIGPIPE, SIG_IGN); /* a launcher may have ended when it is asked */
    begin_to_listen(e);
    return 0;
}

/* --- all of them --- */

static void compare(struct examination *e)
{
    struct compared *hosts = calloc(e->links.count, sizeof(*hosts));

    if (!hosts)
        return;
    for (uint32_t i = 0; i < e->links.count; i++) {
        struct look *l = &e->links.host[i];

        hosts[i] = (struct compared){l->name, l->there ? &l->visit.report : NULL};
    }
    compare_features(hosts, e->links.count, &e->findings);
    compare_mpich(hosts, e->links.count, &e->findings);
    free(hosts);
}

static void print(struct examination *e, const char *host, const struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        printf("%-7s %s%s%s\n", doctor_level_word(findings->item[i].level), host, *host ? ": " : "",
               findings->item[i].text);
        e->missing |= findings->item[i].level == DOCTOR_MISSING;
    }
    if (findings->more)
        printf("%-7s %s%sthere is more than is told here; see to this first\n",
               doctor_level_word(DOCTOR_WARNING), host, *host ? ": " : "");
}

static void print_all(struct examination *e)
{
    for (uint32_t i = 0; i < e->links.count; i++) {
        print(e, e->links.host[i].name, &e->links.host[i].findings);
        print(e, e->links.host[i].name, &e->links.host[i].visit.report.findings);
    }
    print(e, "", &e->findings);
}

int doctor_hosts(const struct host_options *options, const char *program)
{
    struct examination e = {0};

    if (begin(&e, options, program) < 0) {
        perror("causeway doctor");
        free(e.links.host);
        return 1;
    }
    each_host(&e, look_at_one);
    each_host(&e, reach_one);
    for (uint32_t i = 0; i < e.links.count; i++)
        links_measure(&e.links, i);
    compare(&e);
    print_all(&e);
    each_host(&e, leave_one);
    tcp_probe_end(&e.server);
    findings_free(&e.findings);
    free(e.links.host);
    return e.missing;
}
