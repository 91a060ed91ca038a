#include "dispatcher/wire/launch_command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void add(struct launch_command *c, const char *fmt,
                                                      ...)
{
    size_t room = sizeof(c->text) - c->used;
    va_list ap;
    int size;

    va_start(ap, fmt);
    size = vsnprintf(c->text + c->used, room, fmt, ap);
    va_end(ap);
    if (size < 0 || (size_t)size >= room || c->argc == LAUNCH_COMMAND_ARGS_MAX) {
        c->full = true;
        return;
    }
    c->argv[c->argc++] = c->text + c->used;
    c->used += (size_t)size + 1;
}

static void add_words(struct launch_command *c, const char *words)
{
    while (words && *(words += strspn(words, " \t"))) {
        size_t size = strcspn(words, " \t");

        add(c, "%.*s", (int)size, words);
        words += size;
    }
}

static void put(struct launch_command *c, const char *bytes, size_t size)
{
    if (size > sizeof(c->text) - c->used) {
        c->full = true;
        return;
    }
    memcpy(c->text + c->used, bytes, size);
    c->used += size;
}

/* One word for the shell of the host: in single quotes, of which each is left for one. */
static void put_quoted(struct launch_command *c, const char *word)
{
    put(c, " '", 2);
    for (; *word; word++)
        put(c, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    put(c, "'", 1);
}

static void add_shell_line(struct launch_command *c, const struct launch_command_config *config)
{
    char *line = c->text + c->used;

    put(c, "exec", 4);
    put_quoted(c, config->causeway);
    for (int i = 0; config->words[i]; i++)
        put_quoted(c, config->words[i]);
    put(c, "", 1);
    if (c->argc == LAUNCH_COMMAND_ARGS_MAX)
        c->full = true;
    else
        c->argv[c->argc++] = line;
}

static bool is_named(const char *launcher, const char *name)
{
    const char *slash = strrchr(launcher, '/');

    return strcmp(slash ? slash + 1 : launcher, name) == 0;
}

static bool is_here(const struct launch_command_config *config)
{
    return strcmp(config->host, "localhost") == 0 ||
           (config->own_host && strcmp(config->host, config->own_host) == 0);
}

/* ssh(1) has the user's configuration, keys and agent; it must not ask for a password, and what is
 * forwarded for a login is not for Causeway. */
static void add_ssh(struct launch_command *c, const struct launch_command_config *config)
{
    add(c, "%s", config->launcher);
    add(c, "-T");
    add(c, "-oBatchMode=yes");
    add(c, "-oConnectTimeout=%u", config->connect_s);
    add(c, "-oClearAllForwardings=yes");
    /* what is right for a login by hand only */
    add(c, "-oRemoteCommand=none");
    add(c, "-oStdinNull=no");
    add(c, "-oForkAfterAuthentication=no");
    add_words(c, config->args);
    add(c, "--");
    add(c, "%s", config->host);
    add_shell_line(c, config);
}

static void add_causeway(struct launch_command *c, const struct launch_command_config *config)
{
    add(c, "%s", config->causeway);
    for (int i = 0; config->words[i]; i++)
        add(c, "%s", config->words[i]);
}

static void add_srun(struct launch_command *c, const struct launch_command_config *config)
{
    add(c, "%s", config->launcher);
    add(c, "--nodelist=%s", config->host);
    add(c, "--nodes=1");
    add(c, "--ntasks=1");
    add(c, "--overlap");
    add(c, "--unbuffered");
    add_words(c, config->args);
    add_causeway(c, config);
}

int launch_command_make(struct launch_command *c, const struct launch_command_config *config,
                        struct cw_err *err)
{
    c->argc = 0;
    c->used = 0;
    c->full = false;
    if (is_named(config->launcher, "ssh") && is_here(config)) {
        add_causeway(c, config);
    } else if (is_named(config->launcher, "ssh")) {
        add_ssh(c, config);
    } else if (is_named(config->launcher, "srun")) {
        add_srun(c, config);
    } else {
        add(c, "%s", config->launcher);
        add_words(c, config->args);
        add(c, "%s", config->host);
        add_causeway(c, config);
    }
    c->argv[c->argc] = NULL;
    return c->full ? cw_err_set(err, CW_EINVAL, "the command of --launcher is too long") : CW_OK;
}
