/* The registry of services. */
#include "dispatcher/services.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>

static struct services services;
static struct cw_err err;

static void add(const char *address, uint32_t first, uint32_t count)
{
    CU_ASSERT_EQUAL(job_service_add(&services, SERVICE_RELAY, address, first, count, &err), CW_OK);
}

static void homes(void)
{
    memset(&services, 0, sizeof(services));
    CU_ASSERT_PTR_NULL(job_home_of(&services, 0));
    add("unix:a", 0, 3);
    add("tcp:b:1", 3, 2);
    CU_ASSERT_STRING_EQUAL(job_home_of(&services, 0)->address, "unix:a");
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
        add("unix:a", i, 1);
    CU_ASSERT_EQUAL(job_service_add(&services, SERVICE_RELAY, "unix:z", 0, 1, &err), CW_ELIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unix:z"));
}

void add_services_tests(void)
{
    CU_pSuite suite = CU_add_suite("services", NULL, NULL);

    CU_ADD_TEST(suite, homes);
    CU_ADD_TEST(suite, too_many);
}
