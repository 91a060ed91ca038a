/* The registry of services. */
#include "dispatcher/services.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

static struct services services;
static struct cw_err err;

static void add(const char *address)
{
    CU_ASSERT_EQUAL(job_service_add(&services, SERVICE_RELAY, address, &err), CW_OK);
}

static void homes(void)
{
    static const uint8_t map[] = {0, 0, 0, 1, 1, 2};

    memset(&services, 0, sizeof(services));
    CU_ASSERT_PTR_NULL(job_home_of(&services, 0));
    add("unix:a");
    add("tcp:b:1");
    CU_ASSERT_STRING_EQUAL(job_home_of(&services, 3)->address, "unix:a");
    services.homes = map;
    CU_ASSERT_STRING_EQUAL(job_home_of(&services, 2)->address, "unix:a");
    CU_ASSERT_STRING_EQUAL(job_home_of(&services, 3)->address, "tcp:b:1");
    CU_ASSERT_EQUAL(job_home_of(&services, 2)->id, 0);
    CU_ASSERT_EQUAL(job_home_of(&services, 4)->id, 1);
    CU_ASSERT_PTR_NULL(job_home_of(&services, 5));
}

static void too_many(void)
{
    memset(&services, 0, sizeof(services));
    for (uint32_t i = 0; i < SERVICES_MAX; i++)
        add("unix:a");
    CU_ASSERT_EQUAL(job_service_add(&services, SERVICE_RELAY, "unix:z", &err), CW_ELIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unix:z"));
}

void add_services_tests(void)
{
    CU_pSuite suite = CU_add_suite("services", NULL, NULL);

    CU_ADD_TEST(suite, homes);
    CU_ADD_TEST(suite, too_many);
}
