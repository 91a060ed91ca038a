/* Any bytes are what a host answers about its services or to the doctor, what ssh says on the way,
 * or what a host is asked: what is kept is bounded, terminated and printable, hosts with such
 * reports can be compared, a request that is one is one, and an answer says the same when it is
 * said again. The first byte says which. */
#include "dispatcher/doctor/causes.h"
#include "dispatcher/doctor/compare.h"
#include "dispatcher/doctor/tcp_probe.h"
#include "dispatcher/status/json_value.h"
#include "dispatcher/wire/service_format.h"
#include "dispatcher/wire/ssh_says.h"
#include "tests/fuzz/fuzz.h"

static json_t *read_object(const uint8_t *data, size_t size)
{
    struct cw_err err = {0};
    json_t *object = json_object_read(data, size, &err);

    must(object || (err.code == CW_EPROTO && err.text[0]));
    return object;
}

/* --- services --- */

static void take_answer(const uint8_t *data, size_t size)
{
    json_t *object = read_object(data, size), *said;
    struct service_answer a, again;
    struct cw_err err;

    if (object && service_answer_get(&a, object, &err) == CW_OK) {
        must(a.state < SERVICE_STATES && a.log_lines <= SERVICE_LOG_LINES_MAX);
        must_be_printable(a.version, SERVICE_TEXT_MAX);
        must_be_printable(a.why, SERVICE_TEXT_MAX);
        must_be_printable(a.note, SERVICE_TEXT_MAX);
        must_be_printable(a.address, SERVICE_ADDRESS_MAX);
        for (uint32_t i = 0; i < a.log_lines; i++)
            must_be_printable(a.log[i], SERVICE_TEXT_MAX);
        json_decref(object);
        object = service_answer_put(&a);
        must(object && service_answer_get(&again, object, &err) == CW_OK);
        said = service_answer_put(&again);
        must(json_equal(object, said));
        json_decref(said);
    }
    json_decref(object);
}

static void take_request(const uint8_t *data, size_t size)
{
    json_t *request = read_object(data, size);
    uint8_t token[TCP_PROBE_TOKEN];
    struct cw_err err = {0};

    if (request && service_request_check(request, &err) == CW_OK) {
        must(service_text(request, "op") && service_text(request, "grid"));
        must(!strchr(service_text(request, "site"), '/'));
        must(!strchr(service_text(request, "service"), '/'));
    }
    must(!request || !tcp_probe_token(request, token) || service_text(request, "token"));
    json_decref(request);
}

/* --- the doctor --- */

static void take_report(struct host_check *host, const uint8_t *data, size_t size)
{
    json_t *object = read_object(data, size);

    host->there = true;
    findings_free(&host->findings);
    host_report_get(&host->report, object);
    host_report_get_findings(object, &host->findings);
    json_decref(object);
    must_be_printable(host->report.path, HOST_REPORT_TEXT_MAX);
    must_be_printable(host->report.machine, HOST_REPORT_TEXT_MAX);
    must_be_printable(host->report.mpich, HOST_REPORT_TEXT_MAX);
    must(host->findings.count <= FINDINGS_MAX);
    for (size_t i = 0; i < host->findings.count; i++) {
        must_be_printable(host->findings.item[i].text, FINDING_TEXT_MAX);
        causes_advice(host->findings.item[i].text);
    }
}

/* Two hosts: one has the first half, the other one the second. */
static void compare(const uint8_t *data, size_t size)
{
    static struct host_check hosts[] = {{.name = "one"}, {.name = "two"}};
    struct findings findings = {0};

    take_report(&hosts[0], data, size / 2);
    take_report(&hosts[1], data + size / 2, size - size / 2);
    compare_hosts(hosts, 2, &findings);
    for (size_t i = 0; i < findings.count; i++)
        must_be_printable(findings.item[i].text, FINDING_TEXT_MAX);
    findings_free(&findings);
}

static void hear(const uint8_t *data, size_t size)
{
    char line[1024] = "";

    memcpy(line, data, size < sizeof(line) ? size : sizeof(line) - 1);
    must(ssh_says(line) <= SSH_SAID_OTHER);
    causes_advice(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *, size_t) = {take_answer, take_request, compare,
                                                               hear};

    if (size > 0)
        readers[data[0] % 4](data + 1, size - 1);
    return 0;
}
