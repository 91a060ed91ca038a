#include "dispatcher/remote/launch_command.h"

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

/* One word for the shell of the host: in single quotes, of which each is left for one. */
static void quote(const char *word, char *to, size_t size)
{
    size_t used = 0;

    for (to[used++] = '\''; *word && used + 6 < size; word++) {
        if (*word == '\'') {
            memcpy(to + used, "'\\''", 4);
            used += 4;
        } else {
            to[used++] = *word;
        }
    }
    to[used++] = '\'';
    to[used] = '\0';
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
 * forwarded for a login is not for an agent. */
static void add_ssh(struct launch_command *c, const struct launch_command_config *config)
{
    char causeway[2 * LAUNCH_COMMAND_TEXT_MAX / 8], attach[LAUNCH_COMMAND_TEXT_MAX / 8];

    add(c, "%s", config->launcher);
    add(c, "-T");
    add(c, "-oBatchMode=yes");
    add(c, "-oConnectTimeout=%u", config->connect_s);
    add(c, "-oClearAllForwardings=yes");
    add_words(c, config->args);
    add(c, "--");
    add(c, "%s", config->host);
    quote(config->causeway, causeway, sizeof(causeway));
    quote(config->attach ? config->attach : "", attach, sizeof(attach));
    if (config->attach)
        add(c, "exec %s agent --attach %s", causeway, attach);
    else
        add(c, "exec %s agent", causeway);
}

static void add_agent(struct launch_command *c, const struct launch_command_config *config)
{
    add(c, "%s", config->causeway);
    add(c, "agent");
    if (config->attach) {
        add(c, "--attach");
        add(c, "%s", config->attach);
    }
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
    add_agent(c, config);
}

int launch_command_make(struct launch_command *c, const struct launch_command_config *config,
                        struct cw_err *err)
{
    c->argc = 0;
    c->used = 0;
    c->full = false;
    if (is_named(config->launcher, "ssh") && is_here(config)) {
        add_agent(c, config);
    } else if (is_named(config->launcher, "ssh")) {
        add_ssh(c, config);
    } else if (is_named(config->launcher, "srun")) {
        add_srun(c, config);
    } else {
        add(c, "%s", config->launcher);
        add_words(c, config->args);
        add(c, "%s", config->host);
        add_agent(c, config);
    }
    c->argv[c->argc] = NULL;
    return c->full ? cw_err_set(err, CW_EINVAL, "the command of --launcher is too long") : CW_OK;
}
