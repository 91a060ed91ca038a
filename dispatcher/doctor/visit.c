#include "dispatcher/doctor/visit.h"
#include "dispatcher/remote/agents.h"

#include <string.h>

static int take(void *ctx, const void *bytes, size_t size, struct cw_err *err)
{
    struct visit *v = ctx;

    return report_take(&v->report, bytes, size, err);
}

/* ssh takes whole seconds. */
static uint32_t connect_s(uint64_t time_ns)
{
    uint64_t s = (time_ns + 999999999) / 1000000000;

    return s > 0 && s < AGENTS_CONNECT_MAX_S ? (uint32_t)s : AGENTS_CONNECT_MAX_S;
}

int visit_begin(struct visit *v, const struct visit_config *config, const char *host,
                const char *const *words, struct cw_err *err)
{
    const struct launch_command_config how = {.launcher = config->launcher,
                                              .args = config->launcher_args,
                                              .host = host,
                                              .own_host = config->own_host,
                                              .causeway = config->causeway,
                                              .words = words,
                                              .connect_s = connect_s(config->time_ns)};
    const struct talk_side side = {.take = take, .ctx = v};

    *v = VISIT_NONE;
    v->time_ns = config->time_ns ? config->time_ns : AGENTS_START_NS;
    report_init(&v->report);
    return talk_begin(&v->talk, &how, &side, err);
}

void visit_free(struct visit *v)
{
    talk_free(&v->talk);
    report_free(&v->report);
    *v = VISIT_NONE;
}

const char *visit_why(struct visit *v, char *text, size_t size)
{
    return talk_why(&v->talk, text, size);
}

/* --- what it says --- */

static bool has_reported(void *ctx)
{
    const struct visit *v = ctx;

    return v->report.ready;
}

static bool has_answered(void *ctx)
{
    const struct visit *v = ctx;

    return v->report.ready && v->report.answers > v->answered;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

int visit_await_report(struct visit *v, struct cw_err *err)
{
    return talk_await(&v->talk, has_reported, v->time_ns, err);
}

int visit_await_end(struct visit *v, struct cw_err *err)
{
    int result = talk_await(&v->talk, never, v->time_ns, err);

    return result == CW_ETIME ? result : CW_OK;
}

int visit_ask(struct visit *v, const struct request *request, struct cw_err *err)
{
    char line[REQUEST_LINE_MAX + 1];
    size_t size;

    v->answered = v->report.answers;
    request_print(request, line);
    size = strlen(line);
    line[size++] = '\n';
    if (talk_say(&v->talk, line, size, err) < 0 ||
        talk_await(&v->talk, has_answered, VISIT_ASK_NS, err) < 0)
        return err->code;
    return v->report.answer.well ? CW_OK
                                 : cw_err_set(err, CW_ESYS, "%.400s", v->report.answer.text);
}
