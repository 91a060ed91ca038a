/* `causeway top`: how a job stands, again and again. */
#include "dispatcher/cli/cmd_top.h"
#include "common/clock.h"
#include "common/parse.h"
#include "dispatcher/status/status_client.h"
#include "dispatcher/status/status_table.h"

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define INTERVAL_NS 1000000000ull
#define INTERVAL_NS_MIN 100000000ull
#define INTERVAL_NS_MAX (3600 * 1000000000ull)
#define NOTE_LINES 2 /* under the table */
#define CTRL_C 3
#define CTRL_D 4

/* The other screen, without a cursor and without breaking long lines; and back. */
#define SCREEN_OPEN "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_CLOSE "\033[?7h\033[?25h\033[?1049l"
#define SCREEN_HOME "\033[H"
#define LINE_END "\033[K\n"
#define SCREEN_END "\033[J"

static const char usage[] =
    "usage: causeway top [--interval TIME] [JOB]\n"
    "\n"
    "Shows the ranks of a running job as causeway status does, again and again, until the job "
    "ends\n"
    "or q or Ctrl-C is pressed. JOB is the pid of its causeway run, or the beginning of its\n"
    "identifier; it is not needed when one job runs.\n"
    "\n"
    "  --interval TIME      between two looks (default 1s)\n"
    "  --help               this text\n"
    "\n"
    "Exit code: 0, 1 when there is no such job, 2 bad usage.\n";

struct top {
    uint64_t interval_ns;
    const char *job; /* NULL: the one that runs */
    bool help;
    char dir[RUNDIR_MAX];
    json_t *document; /* the last that came; NULL: none yet */
    bool screen;      /* stdout is a terminal: each table takes the place of the last */
    bool keys;        /* stdin is one too */
    int signal_fd;
    struct termios saved;
};

static int parse(struct top *top, int argc, char **argv, struct cw_err *err)
{
    static const struct option options[] = {
        {"interval", required_argument, NULL, 'i'}, {"help", no_argument, NULL, 'h'}, {0}};
    int opt;

    optind = 0;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (opt == '?' || opt == ':')
            return cw_parse_option_error(opt, argv, "causeway top", err);
        top->help |= opt == 'h';
        if (opt == 'i' && cw_parse_duration("--interval", optarg, &top->interval_ns, err) < 0)
            return err->code;
    }
    if (top->interval_ns < INTERVAL_NS_MIN || top->interval_ns > INTERVAL_NS_MAX)
        return cw_err_set(err, CW_EINVAL, "--interval: from 100ms to 1h");
    if (argc - optind > 1)
        return cw_err_set(err, CW_EINVAL, "unexpected argument '%s'; see causeway top --help",
                          argv[optind + 1]);
    top->job = argv[optind];
    return CW_OK;
}

static int choose(struct top *top, struct cw_err *err)
{
    struct status_found *found = calloc(STATUS_JOBS_MAX, sizeof(*found));
    int count = 0;
    int chosen;

    if (!found)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    count = status_find(found);
    chosen = status_choose(found, count, top->job, err);
    if (chosen >= 0)
        strcpy(top->dir, found[chosen].dir);
    status_forget(found, count);
    free(found);
    return chosen;
}

/* Signals come by a descriptor, so that the terminal is put right before the end. */
static int take_terminal(struct top *top)
{
    struct termios raw;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGQUIT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    top->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (top->signal_fd < 0)
        return CW_ESYS;
    top->screen = isatty(STDOUT_FILENO);
    top->keys = top->screen && tcgetattr(STDIN_FILENO, &top->saved) == 0;
    if (top->keys) {
        raw = top->saved;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    if (top->screen)
        fputs(SCREEN_OPEN, stdout);
    return CW_OK;
}

static void give_terminal_back(const struct top *top)
{
    if (top->screen)
        fputs(SCREEN_CLOSE, stdout);
    fflush(stdout);
    if (top->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &top->saved);
    close(top->signal_fd);
}

/* How many ranks have room. */
static size_t room(const struct top *top)
{
    struct winsize size;

    if (!top->screen)
        return SIZE_MAX;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0)
        size.ws_row = 24;
    return size.ws_row > STATUS_TABLE_HEAD + NOTE_LINES
               ? size.ws_row - STATUS_TABLE_HEAD - NOTE_LINES
               : 1;
}

/* Line by line over what stands there already: a screen that is cleared first flickers. */
static void put_over(const char *table)
{
    fputs(SCREEN_HOME, stdout);
    for (const char *line = table; *line;) {
        size_t size = strcspn(line, "\n");

        fwrite(line, 1, size, stdout);
        fputs(LINE_END, stdout);
        line += size + (line[size] == '\n');
    }
    fputs(SCREEN_END, stdout);
}

static void draw(const struct top *top, const char *note)
{
    char *table = NULL;
    size_t size;
    FILE *to = open_memstream(&table, &size);

    if (!to)
        return;
    if (top->document)
        status_table_job(to, top->document, room(top));
    fprintf(to, "%s%s", note, note[0] ? "\n" : "");
    if (fclose(to) == 0) {
        if (top->screen)
            put_over(table);
        else
            printf("%s\n", table);
        fflush(stdout);
    }
    free(table);
}

static bool wants_quit(void)
{
    char key;

    if (read(STDIN_FILENO, &key, 1) != 1)
        return true; /* the terminal is gone */
    return key == 'q' || key == 'Q' || key == CTRL_C || key == CTRL_D;
}

/* Until the next look; true: the user wants no more. */
static bool pause_or_quit(const struct top *top)
{
    uint64_t until_ns = cw_clock_ns() + top->interval_ns;
    uint64_t now_ns;

    while ((now_ns = cw_clock_ns()) < until_ns) {
        struct pollfd p[2] = {{.fd = top->signal_fd, .events = POLLIN},
                              {.fd = top->keys ? STDIN_FILENO : -1, .events = POLLIN}};

        if (poll(p, 2, cw_clock_wait_ms(now_ns, until_ns)) <= 0)
            continue;
        if (p[0].revents || (p[1].revents && wants_quit()))
            return true;
    }
    return false;
}

/* Until the job or the user ends it: 0 with err->code CW_OK for the user. */
static void look(struct top *top, struct cw_err *err)
{
    do {
        pid_t pid;
        json_t *document = status_ask(top->dir, &pid, err);

        /* a dispatcher that is stopped may go on later */
        if (!document && err->code != CW_ELIMIT)
            return;
        if (document) {
            json_decref(top->document);
            top->document = document;
        }
        draw(top, err->text);
    } while (!pause_or_quit(top));
    *err = (struct cw_err){0};
}

static int run_top(struct top *top)
{
    struct cw_err err = {0};
    bool ended;

    if (take_terminal(top) < 0) {
        perror("causeway top: signalfd");
        return 1;
    }
    look(top, &err);
    give_terminal_back(top);
    ended = err.code == CW_ENOTFOUND || err.code == CW_ECLOSED;
    if (ended) {
        if (top->screen && top->document) /* what was seen last stays on the terminal */
            status_table_job(stdout, top->document, SIZE_MAX);
        puts("the job has ended");
    } else if (err.code) {
        fprintf(stderr, "causeway top: %s\n", err.text);
    }
    return err.code && !ended;
}

int cmd_top(int argc, char **argv)
{
    struct top top = {.interval_ns = INTERVAL_NS};
    struct cw_err err = {0};
    int code;

    if (parse(&top, argc, argv, &err) < 0) {
        fprintf(stderr, "causeway top: %s\n", err.text);
        return 2;
    }
    if (top.help) {
        fputs(usage, stdout);
        return 0;
    }
    if (choose(&top, &err) < 0) {
        fprintf(stderr, "causeway top: %s\n", err.text);
        return 1;
    }
    code = run_top(&top);
    json_decref(top.document);
    return code;
}
