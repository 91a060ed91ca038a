/* Keys and MACs: each depends on everything it should, and equals what another implementation of
 * keyed BLAKE2b gives. */
#include "common/cred.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("cred");

#define MAC_OFFSET (CW_HELLO_SIZE - CW_MAC_SIZE - 16)          /* in an encoded HELLO */
#define WELCOME_MAC_OFFSET (CW_WELCOME_SIZE - CW_MAC_SIZE - 8) /* ... and a WELCOME */
#define WELCOME_PAD 36                                         /* 4 bytes of a WELCOME */

static const uint8_t relay_key[CW_KEY_SIZE] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
                                               7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
static const uint8_t job[CW_ID_SIZE] = {'t', 'h', 'e', ' ', 'j', 'o', 'b', ' ',
                                        'o', 'f', ' ', 't', 'e', 's', 't', 's'};

static bool is_hex(const uint8_t *bytes, const char *hex)
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < CW_KEY_SIZE; i++)
        if (hex[2 * i] != digits[bytes[i] >> 4] || hex[2 * i + 1] != digits[bytes[i] & 15])
            return false;
    return true;
}

static struct cw_hello some_hello(void)
{
    struct cw_hello hello = {.magic = CW_PROTOCOL_MAGIC,
                             .version = CW_PROTOCOL_VERSION,
                             .role = CW_ROLE_RANK,
                             .rank = 3,
                             .incarnation = 2,
                             .event = 11,
                             .poll_clock = 12,
                             .acts = 13,
                             .flags = CW_HELLO_RESUME,
                             .resume_ms = 14,
                             .received = 15};

    memcpy(hello.job, job, sizeof(job));
    memset(hello.nonce, 0x5a, sizeof(hello.nonce));
    return hello;
}

/* Computed by Python's hashlib.blake2b(key=..., digest_size=32). */
TEST(known_answers)
{
    uint8_t job_key[CW_KEY_SIZE];
    uint8_t rank_key[CW_KEY_SIZE];
    uint8_t link_key[CW_KEY_SIZE];
    uint8_t mac[CW_MAC_SIZE];
    uint8_t nonce[CW_NONCE_SIZE];
    struct cw_hello hello = some_hello();
    struct cw_welcome welcome = {.acts = 21,
                                 .event = 22,
                                 .missing = 23,
                                 .clock = 24,
                                 .flags = CW_WELCOME_RESUMED,
                                 .received = 25};

    memset(nonce, 9, sizeof(nonce));
    cw_cred_job_key(job_key, relay_key, job);
    CU_ASSERT_TRUE(
        is_hex(job_key, "d2c561afd87793410dafca818d733e91704b6c5d349bae718738fd73fd4aed49"));
    cw_cred_rank_key(rank_key, job_key, 3, 2);
    CU_ASSERT_TRUE(
        is_hex(rank_key, "c911e97b9f9eb24509652232331d39ea1f6422623ba750135d229da70baa57b1"));
    cw_cred_link_key(link_key, job_key, 5);
    CU_ASSERT_TRUE(
        is_hex(link_key, "c47907198396ab6fab0f39f99cd59d44a96e2d749a350121c20b7f8234bc8bd2"));
    cw_cred_mac_hello(mac, rank_key, &hello, nonce);
    CU_ASSERT_TRUE(is_hex(mac, "dadbd13126d17f114a1127b73c21be65c677ab4482e8d244a8892691cf7845bf"));
    cw_cred_mac_welcome(mac, rank_key, &welcome, &hello, nonce);
    CU_ASSERT_TRUE(is_hex(mac, "0f2ddcb16b31573983230f5ecae261292a68d97b7ac560395ee8e18400b19b6b"));
}

/* A sealed key opens under the key that sealed it, and not when any bit was changed on the way. */
TEST(sealed_keys)
{
    uint8_t sealed[CW_SEALED_SIZE];
    uint8_t again[CW_SEALED_SIZE];
    uint8_t under[CW_KEY_SIZE];
    uint8_t key[CW_KEY_SIZE];

    memcpy(under, relay_key, sizeof(under));
    cw_cred_job_key(key, relay_key, job);
    cw_cred_seal(sealed, key, under);
    cw_cred_seal(again, key, under);
    CU_ASSERT_NOT_EQUAL(memcmp(sealed, again, sizeof(sealed)), 0);
    memset(again, 0, sizeof(again));
    CU_ASSERT_EQUAL(cw_cred_open(again, sealed, under), CW_OK);
    CU_ASSERT_EQUAL(memcmp(again, key, sizeof(key)), 0);
    for (size_t i = 0; i < sizeof(sealed); i++) {
        sealed[i] ^= 1;
        CU_ASSERT_EQUAL(cw_cred_open(again, sealed, under), CW_EAUTH);
        sealed[i] ^= 1;
    }
    under[0] ^= 1;
    CU_ASSERT_EQUAL(cw_cred_open(again, sealed, under), CW_EAUTH);
}

TEST(keys_differ)
{
    uint8_t keys[6][CW_KEY_SIZE];
    uint8_t other_key[CW_KEY_SIZE];
    uint8_t other_job[CW_ID_SIZE];

    memcpy(other_key, relay_key, sizeof(other_key));
    other_key[31] ^= 0x80;
    memcpy(other_job, job, sizeof(other_job));
    other_job[15] ^= 1;
    cw_cred_job_key(keys[0], relay_key, job);
    cw_cred_job_key(keys[1], relay_key, other_job);
    cw_cred_job_key(keys[2], other_key, job);
    cw_cred_rank_key(keys[3], keys[0], 1, 2);
    cw_cred_rank_key(keys[4], keys[0], 2, 1);
    cw_cred_rank_key(keys[5], keys[1], 1, 2);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++)
            CU_ASSERT_FALSE(cw_cred_equal(keys[i], keys[j]));
}

TEST(rank_keys_differ)
{
    static uint8_t keys[1024][CW_KEY_SIZE];
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < 32; rank++)
        for (uint32_t incarnation = 1; incarnation <= 32; incarnation++)
            cw_cred_rank_key(keys[count++], relay_key, rank, incarnation);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (cw_cred_equal(keys[i], keys[j]))
                CU_FAIL("two ranks share a key");
}

/* Any byte of a HELLO that is changed, but for its MAC, changes the MAC. */
TEST(mac_depends_on_every_field)
{
    uint8_t nonce[CW_NONCE_SIZE] = {1, 2, 3};
    uint8_t encoded[CW_HELLO_SIZE];
    uint8_t mac[CW_MAC_SIZE];
    uint8_t other[CW_MAC_SIZE];
    struct cw_hello hello = some_hello();
    struct cw_hello changed;

    cw_cred_mac_hello(mac, relay_key, &hello, nonce);
    for (size_t i = 0; i < CW_HELLO_SIZE; i++) {
        if (i >= MAC_OFFSET && i < MAC_OFFSET + CW_MAC_SIZE)
            continue;
        cw_hello_put(encoded, &hello);
        encoded[i] ^= 0x10;
        cw_hello_get(encoded, &changed); /* fills every field, also when it does not like one */
        cw_cred_mac_hello(other, relay_key, &changed, nonce);
        CU_ASSERT_FALSE(cw_cred_equal(mac, other));
    }
    memset(hello.mac, 0xee, sizeof(hello.mac));
    cw_cred_mac_hello(other, relay_key, &hello, nonce);
    CU_ASSERT_TRUE(cw_cred_equal(mac, other));
}

TEST(mac_of_a_welcome_depends_on_every_field)
{
    uint8_t nonce[CW_NONCE_SIZE] = {1, 2, 3};
    uint8_t encoded[CW_WELCOME_SIZE];
    uint8_t mac[CW_MAC_SIZE];
    uint8_t other[CW_MAC_SIZE];
    struct cw_hello hello = some_hello();
    struct cw_welcome welcome = {.acts = 3, .event = 4, .clock = 5, .received = 6};
    struct cw_welcome changed;

    cw_cred_mac_welcome(mac, relay_key, &welcome, &hello, nonce);
    for (size_t i = 0; i < CW_WELCOME_SIZE; i++) {
        bool covered = (i < WELCOME_MAC_OFFSET || i >= WELCOME_MAC_OFFSET + CW_MAC_SIZE) &&
                       (i < WELCOME_PAD || i >= WELCOME_PAD + 4);

        cw_welcome_put(encoded, &welcome);
        encoded[i] ^= 0x10;
        cw_welcome_get(encoded, &changed);
        cw_cred_mac_welcome(other, relay_key, &changed, &hello, nonce);
        CU_ASSERT_EQUAL(cw_cred_equal(mac, other), !covered);
    }
    hello.received++;
    cw_cred_mac_welcome(other, relay_key, &welcome, &hello, nonce);
    CU_ASSERT_FALSE(cw_cred_equal(mac, other));
}

TEST(mac_depends_on_all_else)
{
    uint8_t nonce[CW_NONCE_SIZE] = {1, 2, 3};
    uint8_t key[CW_KEY_SIZE];
    uint8_t mac[CW_MAC_SIZE];
    uint8_t other[CW_MAC_SIZE];
    struct cw_hello hello = some_hello();
    struct cw_welcome welcome = {0};

    memcpy(key, relay_key, sizeof(key));
    cw_cred_mac_hello(mac, key, &hello, nonce);
    cw_cred_mac_welcome(other, key, &welcome, &hello, nonce);
    CU_ASSERT_FALSE(cw_cred_equal(mac, other));
    for (int i = 0; i < CW_NONCE_SIZE; i++) {
        nonce[i] ^= 1;
        cw_cred_mac_hello(other, key, &hello, nonce);
        CU_ASSERT_FALSE(cw_cred_equal(mac, other));
        nonce[i] ^= 1;
    }
    for (int i = 0; i < CW_KEY_SIZE; i++) {
        key[i] ^= 1;
        cw_cred_mac_hello(other, key, &hello, nonce);
        CU_ASSERT_FALSE(cw_cred_equal(mac, other));
        key[i] ^= 1;
    }
}

TEST(equal_looks_at_every_byte)
{
    uint8_t a[CW_MAC_SIZE] = {0};
    uint8_t b[CW_MAC_SIZE] = {0};

    CU_ASSERT_TRUE(cw_cred_equal(a, b));
    for (int i = 0; i < CW_MAC_SIZE; i++) {
        b[i] = 1;
        CU_ASSERT_FALSE(cw_cred_equal(a, b));
        b[i] = 0;
    }
}
