#include "tunnels/ssh_host_key.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define FINGERPRINT_BYTES 32u /* SHA-256 */
#define KINDS_BYTES 256u

/* What we take, the best first. RSA is not among them: with it libssh2 knows only SHA-1. */
static const struct {
    const char *name;
    int type;
} kinds[] = {{"ssh-ed25519", LIBSSH2_KNOWNHOST_KEY_ED25519},
             {"ecdsa-sha2-nistp256", LIBSSH2_KNOWNHOST_KEY_ECDSA_256},
             {"ecdsa-sha2-nistp384", LIBSSH2_KNOWNHOST_KEY_ECDSA_384},
             {"ecdsa-sha2-nistp521", LIBSSH2_KNOWNHOST_KEY_ECDSA_521}};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void known_path(const struct ssh_link *link, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/known_hosts", link->chain->dir);
}

/* A file that is not there, or has lines that libssh2 does not take, knows of nothing more. */
static LIBSSH2_KNOWNHOSTS *read_known(const struct ssh_link *link)
{
    LIBSSH2_KNOWNHOSTS *known = libssh2_knownhost_init(link->session);
    char path[PATH_MAX], line[8192];
    FILE *file;

    known_path(link, path);
    file = known ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof(line), file))
        libssh2_knownhost_readline(known, line, strlen(line), LIBSSH2_KNOWNHOST_FILE_OPENSSH);
    if (file)
        fclose(file);
    return known;
}

/* Whether a key of this kind is known for it: a check of any key then says that it is another one.
 */
static bool knows_kind(LIBSSH2_KNOWNHOSTS *known, const struct ssh_hop *hop, size_t kind)
{
    static const char no_key[] = "AAAA";
    struct libssh2_knownhost *found = NULL;

    return libssh2_knownhost_checkp(known, hop->host, hop->port, no_key, sizeof(no_key) - 1,
                                    LIBSSH2_KNOWNHOST_TYPE_PLAIN | LIBSSH2_KNOWNHOST_KEYENC_BASE64 |
                                        kinds[kind].type,
                                    &found) == LIBSSH2_KNOWNHOST_CHECK_MISMATCH;
}

int ssh_host_key_prefer(const struct ssh_link *link, struct cw_err *err)
{
    LIBSSH2_KNOWNHOSTS *known = read_known(link);
    char text[KINDS_BYTES] = "";

    if (!known)
        return cw_err_set(err, CW_ENOMEM, "no memory for known_hosts");
    for (int is_known = 1; is_known >= 0; is_known--)
        for (size_t i = 0; i < KINDS; i++)
            if (knows_kind(known, ssh_link_hop(link), i) == is_known)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                         text[0] ? "," : "", kinds[i].name);
    libssh2_knownhost_free(known);
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

static int type_of(LIBSSH2_SESSION *session)
{
    const char *name = libssh2_session_methods(session, LIBSSH2_METHOD_HOSTKEY);

    for (size_t i = 0; name && i < KINDS; i++)
        if (strcmp(name, kinds[i].name) == 0)
            return kinds[i].type;
    return LIBSSH2_KNOWNHOST_KEY_UNKNOWN;
}

static int refuse(const struct ssh_link *link, bool is_known, struct cw_err *err)
{
    const struct ssh_hop *hop = ssh_link_hop(link);
    char print[64], path[PATH_MAX];

    fingerprint(link, print, sizeof(print));
    known_path(link, path);
    if (is_known)
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
    const struct ssh_hop *hop = ssh_link_hop(link);
    LIBSSH2_KNOWNHOSTS *known = read_known(link);
    struct libssh2_knownhost *found = NULL;
    size_t size;
    int type, checked;
    const char *key = libssh2_session_hostkey(link->session, &size, &type);

    if (!known || !key) {
        if (known)
            libssh2_knownhost_free(known);
        return ssh_link_fail(link, CW_EPROTO, "looking at its key", err);
    }
    checked = libssh2_knownhost_checkp(known, hop->host, hop->port, key, size,
                                       LIBSSH2_KNOWNHOST_TYPE_PLAIN | LIBSSH2_KNOWNHOST_KEYENC_RAW |
                                           type_of(link->session),
                                       &found);
    libssh2_knownhost_free(known);
    return checked == LIBSSH2_KNOWNHOST_CHECK_MATCH
               ? CW_OK
               : refuse(link, checked == LIBSSH2_KNOWNHOST_CHECK_MISMATCH, err);
}
