/* Lines that ssh-keygen finds in known_hosts. That it finds the right ones is OpenSSH's own matter;
 * tests/system/tunnels.sh has it run. */
#include "tests/unit/suites.h"
#include "tunnels/known_hosts.h"

#include <CUnit/CUnit.h>
#include <stdio.h>

SUITE("known hosts");

static const char *const kinds[] = {"ssh-ed25519", "ecdsa-sha2-nistp256", NULL};
static struct known_hosts known;

static void begin(const char *key)
{
    known = (struct known_hosts){.kinds = kinds, .key = key};
}

static void take(const char *text)
{
    char line[200];

    snprintf(line, sizeof(line), "%s", text);
    known_hosts_take(&known, line);
}

TEST(the_key_is_known)
{
    begin("AAAAone");
    take("# Host gate found: line 1\n");
    take("gate,gate2 ssh-ed25519 AAAAother comment\n");
    CU_ASSERT_TRUE(known.has_any && known.has_kind[0] && !known.has_key && !known.has_kind[1]);
    take("  \tgate\tecdsa-sha2-nistp256  AAAAone\r\n");
    CU_ASSERT_TRUE(known.has_key && known.has_kind[1] && !known.is_revoked);
}

TEST(revoked_counts_for_more)
{
    begin("AAAAone");
    take("@revoked gate ssh-ed25519 AAAAother\n");
    CU_ASSERT_FALSE(known.is_revoked || known.has_any);
    take("@revoked * ssh-ed25519 AAAAone\n");
    take("gate ssh-ed25519 AAAAone");
    CU_ASSERT_TRUE(known.is_revoked && known.has_key);
}

TEST(others_say_nothing)
{
    begin("AAAAone");
    take("");
    take("\n");
    take("gate\n");
    take("gate ssh-ed25519");
    take("@cert-authority * ssh-ed25519 AAAAone\n");
    take("gate ssh-rsa AAAAone2\n");
    take("@");
    CU_ASSERT_FALSE(known.has_any || known.has_key || known.is_revoked);
}
