/* Any bytes are what a host reports, in pieces, or what it is asked: what is kept of them is
 * bounded, terminated and printable, hosts with such reports can be compared, and a request that is
 * read is one. The first byte says which. */
#include "dispatcher/doctor/causes.h"
#include "dispatcher/doctor/compare.h"
#include "dispatcher/doctor/request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void must_be_printable(const char *text, size_t max)
{
    size_t size = strnlen(text, max + 1);

    must(size <= max);
    for (size_t i = 0; i < size; i++)
        must(text[i] >= ' ' && text[i] <= '~');
}

static void take(struct report *report, const uint8_t *data, size_t size)
{
    struct cw_err err = {0};
    size_t piece = 1;

    report_init(report);
    must(report_take(report, REPORT_MARKER, strlen(REPORT_MARKER), &err) == CW_OK);
    for (size_t at = 0; at < size; at += piece, piece = piece * 2 % 97 + 1)
        if (report_take(report, data + at, size - at < piece ? size - at : piece, &err) < 0) {
            must(err.code == CW_EPROTO && err.text[0]);
            break;
        }
    must_be_printable(report->version, REPORT_TEXT_MAX);
    must_be_printable(report->own, REPORT_TEXT_MAX);
    must_be_printable(report->answer.text, REPORT_TEXT_MAX);
    must(report->findings.count <= FINDINGS_MAX);
    for (size_t i = 0; i < report->findings.count; i++)
        must_be_printable(report->findings.item[i].text, FINDING_TEXT_MAX);
    causes_advice(report->answer.text);
}

/* Two hosts: one has the first half, the other one the second. */
static void compare(const uint8_t *data, size_t size)
{
    static struct report reports[2];
    struct compared hosts[] = {{"one", &reports[0]}, {"two", &reports[1]}};
    struct findings findings = {0};

    take(&reports[0], data, size / 2);
    take(&reports[1], data + size / 2, size - size / 2);
    compare_features(hosts, 2, &findings);
    compare_mpich(hosts, 2, &findings);
    for (size_t i = 0; i < findings.count; i++)
        must_be_printable(findings.item[i].text, FINDING_TEXT_MAX);
    findings_free(&findings);
    report_free(&reports[0]);
    report_free(&reports[1]);
}

static void ask(const uint8_t *data, size_t size)
{
    char line[2 * REQUEST_LINE_MAX] = "";
    char again[REQUEST_LINE_MAX];
    struct request request, same;

    memcpy(line, data, size < sizeof(line) ? size : sizeof(line) - 1);
    if (!request_read(line, &request))
        return;
    request_print(&request, again);
    must(request_read(again, &same) && same.type == request.type && same.port == request.port);
    must(strcmp(same.address, request.address) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] & 1)
        ask(data + 1, size - 1);
    else
        compare(data + 1, size - 1);
    return 0;
}
