#include "dispatcher/services/host_talk.h"
#include "dispatcher/services/ssh_says.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what comes --- */

static int end_line(struct host_talk *t, struct cw_err *err)
{
    size_t size = t->used;

    t->used = 0;
    if (t->greeted) {
        t->answers++;
        return service_answer_read(&t->answer, t->line, size, err);
    }
    t->greeted = service_hello_read(&t->hello, t->line, size, err) == CW_OK;
    return t->greeted ? CW_OK : err->code;
}

int host_talk_take(struct host_talk *t, const void *bytes, size_t size, struct cw_err *err)
{
    const char *at = bytes;

    for (; size > 0 && !t->begun; at++, size--) {
        t->begun = marker_take(&t->marker, (uint8_t)*at);
        if (t->marker.noise > MARKER_NOISE_MAX)
            return cw_err_set(err, CW_EPROTO, "more than %u bytes came, none of them of Causeway",
                              MARKER_NOISE_MAX);
    }
    if (size > HOST_TALK_BYTES_MAX - t->bytes)
        return cw_err_set(err, CW_EPROTO, "it says more than %u bytes", HOST_TALK_BYTES_MAX);
    t->bytes += size;
    for (; size > 0; at++, size--) {
        if (*at == '\n' && end_line(t, err) < 0)
            return err->code;
        if (*at == '\n')
            continue;
        if (t->used == SERVICE_LINE_MAX)
            return cw_err_set(err, CW_EPROTO, "it says a line of more than %u bytes",
                              SERVICE_LINE_MAX);
        t->line[t->used++] = *at;
    }
    return CW_OK;
}

static int take(void *ctx, const void *bytes, size_t size, struct cw_err *err)
{
    return host_talk_take(ctx, bytes, size, err);
}

/* Each ssh on the way, and the last one, says when it is logged in. */
void host_talk_hear(struct host_talk *t, const char *line)
{
    enum ssh_said said = ssh_says(line);

    if (said == SSH_SAID_LOGIN)
        t->logins++;
    else if (said == SSH_SAID_OTHER)
        snprintf(t->error[t->errors++ % HOST_TALK_ERRORS_MAX], AGENT_CHILD_LINE_MAX + 1, "%s",
                 line);
}

static void said(void *ctx, const char *line)
{
    host_talk_hear(ctx, line);
}

/* --- the talk --- */

static bool has_greeted(void *ctx)
{
    return ((const struct host_talk *)ctx)->greeted;
}

static bool has_answered(void *ctx)
{
    const struct host_talk *t = ctx;

    return t->answers >= t->asked;
}

int host_talk_begin(struct host_talk *t, const struct launch_command_config *how,
                    struct cw_err *err)
{
    const struct talk_side side = {.take = take, .said = said, .ctx = t};

    *t = HOST_TALK_NONE;
    marker_init(&t->marker, SERVICE_MARKER);
    t->line = malloc(SERVICE_LINE_MAX);
    if (!t->line)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    if (talk_begin(&t->talk, how, &side, err) < 0)
        return err->code;
    return talk_await(&t->talk, has_greeted, HOST_TALK_HELLO_NS, err);
}

/* The text may have a key in it. */
int host_talk_ask(struct host_talk *t, const json_t *request, struct cw_err *err)
{
    char *text = json_dumps(request, JSON_COMPACT);
    size_t size = text ? strlen(text) : 0;
    int result;

    if (!text)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    t->asked++;
    text[size] = '\n'; /* in place of its end */
    result = talk_say(&t->talk, text, size + 1, err);
    sodium_memzero(text, size + 1);
    free(text);
    return result < 0 ? result : talk_await(&t->talk, has_answered, HOST_TALK_ANSWER_NS, err);
}

const char *host_talk_why(struct host_talk *t, char *text, size_t size)
{
    uint32_t first;
    size_t used = 0;

    talk_why(&t->talk, text, size);
    first = t->errors > HOST_TALK_ERRORS_MAX ? t->errors - HOST_TALK_ERRORS_MAX : 0;
    for (uint32_t i = first; i < t->errors && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "; " : "",
                                 t->error[i % HOST_TALK_ERRORS_MAX]);
    return text;
}

void host_talk_free(struct host_talk *t)
{
    talk_free(&t->talk);
    free(t->line);
    *t = HOST_TALK_NONE;
}
