#include "dispatcher/cli/host_answers.h"
#include "dispatcher/cli/doctor.h"
#include "dispatcher/doctor/host_report.h"
#include "dispatcher/doctor/tcp_probe.h"
#include "dispatcher/node/service_host.h"
#include "rdevice/image/features.h"
#include "tunnels/ssh_address.h"
#include "tunnels/tunnel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* --- the doctor's report --- */

/* A job starts its ranks where it was started itself. */
static void check_directory(struct doctor *d, const char *directory)
{
    if (chdir(directory) < 0)
        findings_add(
            &d->findings, DOCTOR_WARNING,
            "the directory %s: %s; start jobs from one that all hosts have, or name one by "
            "--wdir",
            directory, strerror(errno));
}

/* Images that ranks of this host take need what it has. */
static void take_facts(struct host_report *r)
{
    struct utsname system;

    if (readlink("/proc/self/exe", r->path, sizeof(r->path) - 1) < 0)
        r->path[0] = '\0';
    if (uname(&system) == 0)
        strcpy(r->machine, system.machine);
    if (doctor_free_memory_mb() >= 0)
        r->memory_mb = (uint64_t)doctor_free_memory_mb();
    r->xcr0 = features_read(r->features);
}

static json_t *report(const json_t *request, struct cw_err *err)
{
    const char *directory = service_text(request, "directory");
    const char *program = service_text(request, "program");
    const char *keys = service_text(request, "ssh_keys");
    struct doctor d = {0};
    struct host_report r = {0};
    json_t *answer;

    (void)err;
    if (keys)
        setenv(SSH_KEYS_VARIABLE, keys, 1);
    take_facts(&r);
    doctor_check_library(&d);
    strcpy(r.mpich, d.mpich_version);
    doctor_check_machine(&d);
    doctor_check_images(&d);
    check_directory(&d, directory ? directory : "/");
    if (program)
        doctor_check_program(&d, program);
    answer = host_report_put(&r, &d.findings);
    findings_free(&d.findings);
    return answer;
}

static json_t *tell_time(const json_t *request, struct cw_err *err)
{
    struct timespec now;

    (void)request;
    (void)err;
    clock_gettime(CLOCK_REALTIME, &now);
    return json_pack("{s:I}", "ns", (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

/* --- who reaches whom --- */

static int token_of(const json_t *request, uint8_t token[TCP_PROBE_TOKEN], struct cw_err *err)
{
    return tcp_probe_token(request, token)
               ? CW_OK
               : cw_err_set(err, CW_EPROTO, "a request without a token");
}

/* In place of the listener before. */
static json_t *begin_to_listen(const json_t *request, struct cw_err *err)
{
    static struct tcp_probe_server server;
    uint8_t token[TCP_PROBE_TOKEN];

    tcp_probe_end(&server);
    if (token_of(request, token, err) < 0 || tcp_probe_serve(&server, token, err) < 0)
        return NULL;
    return json_pack("{s:i}", "port", server.port);
}

static json_t *reach(const json_t *request, struct cw_err *err)
{
    const char *address = service_text(request, "address");
    uint8_t token[TCP_PROBE_TOKEN];
    uint32_t time_ms;

    if (token_of(request, token, err) < 0)
        return NULL;
    address = address ? address : "";
    time_ms = ssh_address_inner(address) ? TUNNEL_OPEN_MS : TCP_PROBE_CONNECT_MS;
    return tcp_probe_ask(address, time_ms, token, err) == CW_OK ? json_object() : NULL;
}

/* --- services of grids --- */

static json_t *serve(const json_t *request, struct cw_err *err)
{
    struct service_answer answer;

    if (service_request_check(request, err) < 0)
        return NULL;
    service_carry_out(request, &answer);
    return service_answer_put(&answer);
}

/* --- all of them --- */

static const struct {
    const char *op;
    json_t *(*answer)(const json_t *request, struct cw_err *err);
} ops[] = {{"start", serve},  {"stop", serve},     {"look", serve},
           {"check", report}, {"time", tell_time}, {"listen", begin_to_listen},
           {"reach", reach}};

json_t *host_answer(const json_t *request, struct cw_err *err)
{
    const char *op = service_text(request, "op");

    for (size_t i = 0; op && i < sizeof(ops) / sizeof(*ops); i++)
        if (strcmp(op, ops[i].op) == 0)
            return ops[i].answer(request, err);
    cw_err_set(err, CW_EPROTO, "nothing that this host could be asked");
    return NULL;
}
