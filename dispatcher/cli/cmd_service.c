#include "dispatcher/cli/commands.h"
#include "dispatcher/services/service_host.h"

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whoever has started us may be gone: what was begun is done all the same. Frees the text. */
static void say(char *text)
{
    if (text) {
        puts(text);
        fflush(stdout);
    }
    free(text);
}

static void greet(void)
{
    struct service_hello hello = {.protocol = SERVICE_PROTOCOL, .version = CAUSEWAY_VERSION};
    char host[SERVICE_TEXT_MAX] = "";

    gethostname(host, sizeof(host) - 1);
    service_text_copy(hello.host, host);
    fputs(SERVICE_MARKER, stdout);
    say(service_hello_print(&hello));
}

static void answer(const char *line, size_t size)
{
    struct service_answer a = {.state = SERVICE_FAILED};
    struct cw_err err = {0};
    json_t *request = service_request_read(line, size, &err);

    if (request)
        service_carry_out(request, &a);
    else
        service_text_copy(a.note, err.text);
    json_decref(request);
    say(service_answer_print(&a));
}

/* Requests have the grid's key in them. */
int cmd_service(int argc, char **argv)
{
    char *line = malloc(SERVICE_LINE_MAX + 2);

    (void)argv;
    if (!line || argc != 1) {
        fputs("causeway service: it is for causeway up, down and status alone\n", stderr);
        free(line);
        return 2;
    }
    signal(SIGCHLD, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdin, NULL, _IONBF, 0);
    greet();
    while (fgets(line, SERVICE_LINE_MAX + 2, stdin))
        answer(line, strlen(line));
    sodium_memzero(line, SERVICE_LINE_MAX + 2);
    free(line);
    return 0;
}
