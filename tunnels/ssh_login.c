#include "tunnels/ssh_login.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const key_files[] = {"id_ed25519", "id_ecdsa"};

struct tried {
    uint32_t of_agent, files;
};

static const char *user_of(const struct ssh_link *link)
{
    const struct passwd *self;

    if (ssh_link_hop(link)->user[0])
        return ssh_link_hop(link)->user;
    self = getpwuid(getuid());
    return self ? self->pw_name : "root";
}

static bool by_identity(const struct ssh_link *link, LIBSSH2_AGENT *agent,
                        struct libssh2_agent_publickey *key)
{
    int result;

    while ((result = libssh2_agent_userauth(agent, user_of(link), key)) == LIBSSH2_ERROR_EAGAIN &&
           ssh_link_await(link))
        ;
    return result == 0;
}

/* Whether a key of the agent can let anybody in: DSA cannot, and RSA not with SHA-1, which is all
 * that libssh2 knew before 1.11. A gateway counts each key that is offered (MaxAuthTries). */
static bool is_offered(const struct libssh2_agent_publickey *key)
{
    static const char *const useless[] = {
        "ssh-dss",
#if LIBSSH2_VERSION_NUM < 0x010b00
        "ssh-rsa"
#endif
    };

    /* a length of four bytes, then the name of the kind */
    for (size_t i = 0; i < sizeof(useless) / sizeof(*useless); i++)
        if (key->blob_len > 4 + strlen(useless[i]) &&
            memcmp(key->blob + 4, useless[i], strlen(useless[i])) == 0)
            return false;
    return true;
}

static bool by_agent(const struct ssh_link *link, struct tried *tried)
{
    LIBSSH2_AGENT *agent = libssh2_agent_init(link->session);
    struct libssh2_agent_publickey *key = NULL;
    bool in = false;

    if (agent && libssh2_agent_connect(agent) == 0 && libssh2_agent_list_identities(agent) == 0)
        while (!in && tried->of_agent < SSH_KEYS_MAX &&
               libssh2_agent_get_identity(agent, &key, key) == 0)
            if (is_offered(key)) {
                tried->of_agent++;
                in = by_identity(link, agent, key);
            }
    if (agent) {
        libssh2_agent_disconnect(agent);
        libssh2_agent_free(agent);
    }
    return in;
}

static bool by_file(const struct ssh_link *link, const char *path, struct tried *tried)
{
    int result;

    if (tried->files == SSH_KEY_FILES_MAX || access(path, R_OK) < 0)
        return false;
    tried->files++;
    while ((result = libssh2_userauth_publickey_fromfile(link->session, user_of(link), NULL, path,
                                                         NULL)) == LIBSSH2_ERROR_EAGAIN &&
           ssh_link_await(link))
        ;
    return result == 0;
}

/* Those of a list with ':' between them; what begins with ~/ is in the home directory. */
static bool by_files_of(const struct ssh_link *link, const char *list, struct tried *tried)
{
    const struct passwd *self = getpwuid(getuid());
    const char *home = getenv("HOME") ? getenv("HOME") : self ? self->pw_dir : "";
    bool in = false;

    while (!in && list && *(list += strspn(list, ":"))) {
        int size = (int)strcspn(list, ":");
        bool at_home = strncmp(list, "~/", 2) == 0;
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s%.*s", at_home ? home : "", size - at_home,
                     list + at_home) < (int)sizeof(path))
            in = by_file(link, path, tried);
        list += size;
    }
    return in;
}

static bool by_usual_files(const struct ssh_link *link, struct tried *tried)
{
    bool in = false;

    for (size_t i = 0; !in && i < sizeof(key_files) / sizeof(*key_files); i++) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", link->chain->dir, key_files[i]);
        in = by_file(link, path, tried);
    }
    return in;
}

int ssh_login(const struct ssh_link *link, struct cw_err *err)
{
    struct tried tried = {0};

    if (by_files_of(link, getenv(SSH_KEYS_VARIABLE), &tried) || by_agent(link, &tried) ||
        by_usual_files(link, &tried))
        return CW_OK;
    return cw_err_set(err, CW_EAUTH,
                      "gateway %s: it does not let %s in; %u keys of an agent and %u of "
                      "CAUSEWAY_SSH_KEYS and %.160s were "
                      "tried (ed25519 and ecdsa without a passphrase); see to it that 'ssh -p %u "
                      "%s@%s' asks for nothing, by a key of such a kind",
                      ssh_link_hop(link)->host, user_of(link), tried.of_agent, tried.files,
                      link->chain->dir, ssh_link_hop(link)->port, user_of(link),
                      ssh_link_hop(link)->host);
}
