/* Any bytes are what a host says of the services of a grid, in pieces, what ssh says on the way, or
 * what a host is asked: what is kept is bounded, terminated and printable, a request that is read
 * is one, and an answer says the same when it is said again. The first byte says which. */
#include "dispatcher/services/host_talk.h"

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

static void check(const struct service_answer *a)
{
    struct service_answer again;
    struct cw_err err;
    char *text = service_answer_print(a);

    must(a->state < SERVICE_STATES && a->log_lines <= SERVICE_LOG_LINES_MAX);
    must_be_printable(a->version, SERVICE_TEXT_MAX);
    must_be_printable(a->why, SERVICE_TEXT_MAX);
    must_be_printable(a->note, SERVICE_TEXT_MAX);
    must_be_printable(a->address, SERVICE_ADDRESS_MAX);
    for (uint32_t i = 0; i < a->log_lines; i++)
        must_be_printable(a->log[i], SERVICE_TEXT_MAX);
    must(text && service_answer_read(&again, text, strlen(text), &err) == CW_OK);
    must(again.state == a->state && again.pid == a->pid && again.well == a->well);
    must(strcmp(again.note, a->note) == 0 && again.log_lines == a->log_lines);
    free(text);
}

static void take(const uint8_t *data, size_t size)
{
    struct host_talk talk = HOST_TALK_NONE;
    struct cw_err err = {0};
    size_t piece = 1;

    marker_init(&talk.marker, SERVICE_MARKER);
    talk.line = malloc(SERVICE_LINE_MAX);
    must(talk.line);
    must(host_talk_take(&talk, SERVICE_MARKER, strlen(SERVICE_MARKER), &err) == CW_OK);
    for (size_t at = 0; at < size; at += piece, piece = piece * 2 % 97 + 1)
        if (host_talk_take(&talk, data + at, size - at < piece ? size - at : piece, &err) < 0) {
            must(err.code == CW_EPROTO && err.text[0]);
            break;
        }
    must_be_printable(talk.hello.version, SERVICE_TEXT_MAX);
    must_be_printable(talk.hello.host, SERVICE_TEXT_MAX);
    check(&talk.answer);
    free(talk.line);
}

static void hear(const uint8_t *data, size_t size)
{
    struct host_talk talk = HOST_TALK_NONE;
    char line[2 * AGENT_CHILD_LINE_MAX] = "";

    memcpy(line, data, size < sizeof(line) ? size : sizeof(line) - 1);
    for (int i = 0; i < 5; i++)
        host_talk_hear(&talk, line);
    for (uint32_t i = 0; i < HOST_TALK_ERRORS_MAX; i++)
        must(strnlen(talk.error[i], AGENT_CHILD_LINE_MAX + 1) <= AGENT_CHILD_LINE_MAX);
}

static void ask(const uint8_t *data, size_t size)
{
    struct cw_err err = {0};
    json_t *request = service_request_read((const char *)data, size, &err);

    must(request || (err.code == CW_EPROTO && err.text[0]));
    if (request) {
        must(service_text(request, "op") && service_text(request, "grid"));
        must(!strchr(service_text(request, "site"), '/'));
        must(!strchr(service_text(request, "service"), '/'));
    }
    json_decref(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] % 3 == 0)
        ask(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        take(data + 1, size - 1);
    else
        hear(data + 1, size - 1);
    return 0;
}
