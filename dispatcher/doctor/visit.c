#include "dispatcher/doctor/visit.h"
#include "dispatcher/remote/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VISIT_LOOK_MS 10 /* between two looks whether a process has ended */

static void on_said(void *ctx, const char *line)
{
    (void)ctx;
    (void)line;
}

static void close_input(struct visit *v)
{
    if (v->in_fd >= 0)
        close(v->in_fd);
    v->in_fd = -1;
}

static void on_output(void *ctx)
{
    struct visit *v = ctx;
    char bytes[4096];
    ssize_t n = read(v->output.fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || report_take(&v->report, bytes, (size_t)n, &v->wrong) < 0)
        loop_close(v->loop, &v->output);
}

/* --- its begin --- */

/* ssh takes whole seconds. */
static uint32_t connect_s(uint64_t time_ns)
{
    uint64_t s = (time_ns + 999999999) / 1000000000;

    return s > 0 && s < AGENTS_CONNECT_MAX_S ? (uint32_t)s : AGENTS_CONNECT_MAX_S;
}

int visit_begin(struct visit *v, const struct visit_config *config, const char *host,
                const char *const *words, struct cw_err *err)
{
    struct launch_command command;
    struct launch_command_config how = {.launcher = config->launcher,
                                        .args = config->launcher_args,
                                        .host = host,
                                        .own_host = config->own_host,
                                        .causeway = config->causeway,
                                        .words = words,
                                        .connect_s = connect_s(config->time_ns)};
    int out_fd;

    *v = (struct visit){.in_fd = -1,
                        .output.fd = -1,
                        .time_ns = config->time_ns ? config->time_ns : AGENTS_START_NS};
    report_init(&v->report);
    v->loop = loop_new(err);
    if (!v->loop)
        return err->code;
    agent_child_init(&v->child, v->loop, on_said, v);
    if (launch_command_make(&command, &how, err) < 0 ||
        agent_child_start(&v->child, &command, &v->in_fd, &out_fd, err) < 0)
        return err->code;
    fcntl(v->in_fd, F_SETFL, O_NONBLOCK);
    fcntl(out_fd, F_SETFL, O_NONBLOCK);
    if (loop_watch(v->loop, &v->output, out_fd, EPOLLIN, on_output, v) == 0)
        return CW_OK;
    cw_err_set(err, CW_ESYS, "watching what comes from it: %s", strerror(errno));
    close(out_fd);
    return err->code;
}

/* --- its end --- */

/* Until then, or not at all: then it is killed. */
static void await_process(struct visit *v, uint64_t until_ns)
{
    pid_t pid = v->child.pid;
    int status = 0;

    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        if (loop_look(v->loop) >= until_ns)
            kill(pid, SIGKILL);
        poll(NULL, 0, VISIT_LOOK_MS);
    }
    if (pid > 0)
        agent_child_ended(&v->child, status);
}

void visit_free(struct visit *v)
{
    close_input(v);
    if (v->loop) {
        uint64_t until_ns = loop_look(v->loop) + VISIT_END_NS;

        while (v->output.fd >= 0 && loop_look(v->loop) < until_ns)
            loop_turn(v->loop, until_ns);
        loop_close(v->loop, &v->output);
        await_process(v, until_ns);
        agent_child_kill(&v->child);
    }
    loop_free(v->loop);
    report_free(&v->report);
    *v = (struct visit){.in_fd = -1, .output.fd = -1};
}

const char *visit_why(struct visit *v, char *text, size_t size)
{
    close_input(v);
    await_process(v, loop_look(v->loop) + VISIT_END_NS);
    return agent_child_why(&v->child, text, size);
}

/* --- what it says --- */

/* Until it is ready, or has given so many answers. */
static int await(struct visit *v, bool ready, uint32_t answers, uint64_t time_ns,
                 struct cw_err *err)
{
    uint64_t until_ns = loop_look(v->loop) + time_ns;

    while (v->report.ready < ready || v->report.answers < answers) {
        if (v->wrong.code != CW_OK) {
            *err = v->wrong;
            return err->code;
        }
        if (v->output.fd < 0)
            return cw_err_set(err, CW_ECLOSED, "its connection was closed");
        if (loop_look(v->loop) >= until_ns)
            return cw_err_set(err, CW_ETIME, "it does not answer within %d s",
                              (int)(time_ns / 1000000000));
        loop_turn(v->loop, until_ns);
    }
    return CW_OK;
}

int visit_await_report(struct visit *v, struct cw_err *err)
{
    return await(v, true, 0, v->time_ns, err);
}

int visit_await_end(struct visit *v, struct cw_err *err)
{
    int result = await(v, false, UINT32_MAX, v->time_ns, err);

    return result == CW_ETIME ? result : CW_OK;
}

int visit_ask(struct visit *v, const struct request *request, struct cw_err *err)
{
    uint32_t before = v->report.answers;
    char line[REQUEST_LINE_MAX + 1];
    size_t size;

    request_print(request, line);
    size = strlen(line);
    line[size++] = '\n';
    if (write(v->in_fd, line, size) != (ssize_t)size)
        return cw_err_set(err, CW_ECLOSED, "asking it: %s", strerror(errno));
    if (await(v, true, before + 1, VISIT_ASK_NS, err) < 0)
        return err->code;
    return v->report.answer.well ? CW_OK
                                 : cw_err_set(err, CW_ESYS, "%.400s", v->report.answer.text);
}
