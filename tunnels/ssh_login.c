#include "tunnels/ssh_login.h"
#include "tunnels/known_hosts.h"

#include <limits.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FINGERPRINT_BYTES 32u /* SHA-256 */
#define KINDS_BYTES 256u
#define KEY_TEXT_BYTES 2048u /* of a key in base64 */

/* What we take, the best first. RSA is not among them: with it libssh2 knows only SHA-1. */
static const char *const kinds[] = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                    "ecdsa-sha2-nistp521", NULL};

static struct known_hosts question(const struct ssh_link *link)
{
    const struct ssh_hop *hop = ssh_link_hop(link);

    return (struct known_hosts){
        .dir = link->chain->dir, .host = hop->host, .port = hop->port, .kinds = kinds};
}

int ssh_host_key_prefer(const struct ssh_link *link, struct cw_err *err)
{
    struct known_hosts known = question(link);
    char text[KINDS_BYTES] = "";

    if (known_hosts_ask(&known, err) < 0)
        return err->code;
    for (int is_known = 1; is_known >= 0; is_known--)
        for (size_t i = 0; kinds[i]; i++)
            if (known.has_kind[i] == is_known)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                         text[0] ? "," : "", kinds[i]);
    return libssh2_session_method_pref(link->session, LIBSSH2_METHOD_HOSTKEY, text) == 0
               ? CW_OK
               : ssh_link_fail(link, CW_EPROTO, "choosing kinds of keys", err);
}

static void fingerprint(const struct ssh_link *link, char *text, size_t size)
{
    const char *hash = libssh2_hostkey_hash(link->session, LIBSSH2_HOSTKEY_HASH_SHA256);

    text[0] = '\0';
    if (hash)
        sodium_bin2base64(text, size, (const unsigned char *)hash, FINGERPRINT_BYTES,
                          sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
}

static int refuse(const struct ssh_link *link, const struct known_hosts *known, struct cw_err *err)
{
    const struct ssh_hop *hop = ssh_link_hop(link);
    char print[64], path[PATH_MAX];

    fingerprint(link, print, sizeof(print));
    snprintf(path, sizeof(path), "%s/known_hosts", link->chain->dir);
    if (known->is_revoked)
        return cw_err_set(err, CW_EAUTH,
                          "gateway %s: its key, SHA256:%s, is revoked (@revoked in %.200s or the "
                          "system's file): somebody may be in between; ask who runs it",
                          hop->host, print, path);
    if (known->has_any)
        return cw_err_set(
            err, CW_EAUTH,
            "gateway %s: its key is not the one that is known, but SHA256:%s: somebody may be in "
            "between, or it was set up anew; ask who runs it, then 'ssh-keygen -f %.200s -R "
            "\"[%s]:%u\"' (or its plain name) forgets the old one",
            hop->host, print, path, hop->host, hop->port);
    return cw_err_set(err, CW_ENOTFOUND,
                      "gateway %s: its key, SHA256:%s, is not known (%.200s); if that is right, "
                      "'ssh -p %u %s' once "
                      "takes it",
                      hop->host, print, path, hop->port, hop->host);
}

int ssh_host_key_check(const struct ssh_link *link, struct cw_err *err)
{
    struct known_hosts known = question(link);
    char text[KEY_TEXT_BYTES];
    size_t size;
    int type;
    const char *key = libssh2_session_hostkey(link->session, &size, &type);

    if (!key || sodium_base64_encoded_len(size, sodium_base64_VARIANT_ORIGINAL) > sizeof(text))
        return ssh_link_fail(link, CW_EPROTO, "looking at its key", err);
    sodium_bin2base64(text, sizeof(text), (const unsigned char *)key, size,
                      sodium_base64_VARIANT_ORIGINAL);
    known.key = text;
    if (known_hosts_ask(&known, err) < 0)
        return err->code;
    return known.has_key && !known.is_revoked ? CW_OK : refuse(link, &known, err);
}

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
