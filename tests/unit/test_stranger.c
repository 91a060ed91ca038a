/* Those who have not proved who they are. */
#include "common/cred.h"
#include "common/stranger.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

SUITE("strangers");

static const uint8_t key[CW_KEY_SIZE] = {1};
static struct cw_strangers all;
static struct cw_stranger stranger[3];

/* Each has a nonce of its own. */
static struct cw_challenge enter(uint8_t number)
{
    uint8_t nonce[CW_NONCE_SIZE] = {number};

    return cw_stranger_enter(&all, &stranger[number], &stranger[number], nonce);
}

TEST(who_came_first_has_to_go)
{
    cw_strangers_init(&all);
    for (uint8_t i = 0; i < 3; i++) {
        CU_ASSERT_PTR_NULL(cw_strangers_first(&all, i + 1));
        enter(i);
    }
    CU_ASSERT_PTR_EQUAL(cw_strangers_first(&all, 3), &stranger[0]);
    cw_stranger_leave(&stranger[1]);
    cw_stranger_leave(&stranger[1]);
    CU_ASSERT_EQUAL(all.count, 2);
    cw_stranger_leave(&stranger[0]);
    CU_ASSERT_PTR_EQUAL(cw_strangers_first(&all, 1), &stranger[2]);
    cw_stranger_leave(&stranger[2]);
    CU_ASSERT_EQUAL(all.count, 0);
}

/* A HELLO proves nothing to another one, nor under another key, nor once it is changed. */
TEST(proof_is_of_a_challenge)
{
    struct cw_hello hello = {.role = CW_ROLE_DISPATCHER, .rank = 4};
    uint8_t other[CW_KEY_SIZE] = {2};
    struct cw_challenge challenge;

    cw_strangers_init(&all);
    enter(0);
    challenge = enter(1);
    CU_ASSERT_EQUAL(challenge.magic, CW_PROTOCOL_MAGIC);
    CU_ASSERT_EQUAL(challenge.version, CW_PROTOCOL_VERSION);
    cw_cred_mac_hello(hello.mac, key, &hello, challenge.nonce);
    CU_ASSERT_TRUE(cw_stranger_proves(&stranger[1], &hello, key));
    CU_ASSERT_FALSE(cw_stranger_proves(&stranger[0], &hello, key));
    CU_ASSERT_FALSE(cw_stranger_proves(&stranger[1], &hello, other));
    hello.rank++;
    CU_ASSERT_FALSE(cw_stranger_proves(&stranger[1], &hello, key));
}

TEST(what_speaks_something_else_is_refused)
{
    struct cw_hello hello = {
        .magic = CW_PROTOCOL_MAGIC, .version = CW_PROTOCOL_VERSION + 1, .role = CW_ROLE_RANK};
    uint8_t body[CW_HELLO_SIZE];
    struct cw_hello got;
    struct cw_err err;

    cw_hello_put(body, &hello);
    CU_ASSERT_EQUAL(cw_stranger_hello(body, "relay", &got, &err), CW_REFUSED_VERSION);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, ", the relay speaks "));
    hello.version--;
    cw_hello_put(body, &hello);
    CU_ASSERT_EQUAL(cw_stranger_hello(body, "relay", &got, &err), 0);
    hello.magic++;
    cw_hello_put(body, &hello);
    CU_ASSERT_EQUAL(cw_stranger_hello(body, "relay", &got, &err), CW_REFUSED_PROTOCOL);
}
