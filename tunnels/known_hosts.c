#include "tunnels/known_hosts.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SSH_PORT 22
#define SYSTEM_FILE "/etc/ssh/ssh_known_hosts"
#define KNOWN_NAME_BYTES 300 /* of a host with its port */
#define KNOWN_LINES_MAX 4096 /* of one gateway that are looked at */

void known_hosts_take(struct known_hosts *known, char *line)
{
    char *rest = line;
    char *word[3] = {NULL};
    bool marked = line[0] == '@';
    const char *marker = marked ? strsep(&rest, " \t") : "";
    bool same;

    if (line[0] == '#')
        return;
    for (int i = 0; i < 3 && rest; i++) {
        rest += strspn(rest, " \t");
        word[i] = strsep(&rest, " \t\r\n");
    }
    if (!word[2] || (marked && strcmp(marker, "@revoked") != 0))
        return; /* nothing, or an authority's: we take no certificates */
    same = known->key && strcmp(known->key, word[2]) == 0;
    if (marked) {
        known->is_revoked = known->is_revoked || same;
        return;
    }
    known->has_key = known->has_key || same;
    for (int i = 0; known->kinds[i]; i++)
        if (strcmp(known->kinds[i], word[1]) == 0)
            known->has_any = known->has_kind[i] = true;
}

/* As ssh(1) looks for it: in small letters. */
static void name_of(const struct known_hosts *known, bool with_port, char name[KNOWN_NAME_BYTES])
{
    if (!with_port)
        snprintf(name, KNOWN_NAME_BYTES, "%s", known->host);
    else
        snprintf(name, KNOWN_NAME_BYTES, "[%s]:%u", known->host, known->port);
    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
}

static void take_lines(struct known_hosts *known, FILE *lines)
{
    char *line = NULL;
    size_t room = 0;

    for (int i = 0; i < KNOWN_LINES_MAX && getline(&line, &room, lines) > 0; i++)
        known_hosts_take(known, line);
    free(line);
}

/* In the child: nothing of it reaches the tunnel but lines. */
static _Noreturn void find(const char *name, const char *file, int to)
{
    dup2(to, STDOUT_FILENO);
    execlp("ssh-keygen", "ssh-keygen", "-q", "-F", name, "-f", file, (char *)NULL);
    _exit(127);
}

static int ask_file(struct known_hosts *known, const char *name, const char *file,
                    struct cw_err *err)
{
    int fd[2], status = 0;
    FILE *lines;
    pid_t child;

    if (access(file, R_OK) < 0)
        return CW_OK;
    if (pipe(fd) < 0)
        return cw_err_set(err, CW_ESYS, "looking for %s in %s: %s", name, file, strerror(errno));
    child = fork();
    if (child == 0)
        find(name, file, fd[1]);
    close(fd[1]);
    lines = child > 0 ? fdopen(fd[0], "r") : NULL;
    if (lines) {
        take_lines(known, lines);
        fclose(lines);
    } else {
        close(fd[0]);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
        return cw_err_set(err, CW_ESYS,
                          "looking for %s in %s: ssh-keygen cannot be started; install OpenSSH's "
                          "client (Debian: openssh-client)",
                          name, file);
    return CW_OK;
}

static int ask_as(struct known_hosts *known, bool with_port, struct cw_err *err)
{
    char name[KNOWN_NAME_BYTES];
    char own[PATH_MAX];

    name_of(known, with_port, name);
    snprintf(own, sizeof(own), "%s/known_hosts", known->dir);
    return ask_file(known, name, own, err) < 0 ? err->code
                                               : ask_file(known, name, SYSTEM_FILE, err);
}

/* ssh(1) takes a key of the host without a port where none is known of the port. */
int known_hosts_ask(struct known_hosts *known, struct cw_err *err)
{
    int asked = known->port == SSH_PORT ? CW_OK : ask_as(known, true, err);

    return asked < 0 || known->has_any || known->is_revoked ? asked : ask_as(known, false, err);
}
