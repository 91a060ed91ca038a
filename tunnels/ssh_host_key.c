#include "tunnels/ssh_host_key.h"
#include "tunnels/known_hosts.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

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
