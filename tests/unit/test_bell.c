/* The bells of ranks that sleep at their relay, too. */
#include "rdevice/bell.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <unistd.h>

SUITE("bells");

static uint8_t job[CW_ID_SIZE];

/* Names are the machine's: tests that run beside each other have jobs of their own. */
static void start(void)
{
    randombytes_buf(job, sizeof(job));
}

static bool rings(const struct bell *bell)
{
    struct pollfd p = {.fd = bell->fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* Who is meant is woken, however often; the next incarnation is another one. */
TEST(wake_whom_they_mean)
{
    struct bell one, two, next;

    start();
    bell_open(&one, job, 1, 1, -1);
    bell_open(&two, job, 2, 1, -1);
    bell_open(&next, job, 2, 2, -1);
    CU_ASSERT_TRUE_FATAL(one.fd >= 0 && two.fd >= 0 && next.fd >= 0);
    for (int i = 0; i < 10000; i++)
        bell_ring(&one, 2, 1);
    CU_ASSERT_TRUE(rings(&two) && !rings(&one) && !rings(&next));
    bell_hear(&two);
    CU_ASSERT_FALSE(rings(&two));
    bell_ring(&one, 2, 2);
    bell_ring(&one, 3, 1); /* nobody */
    CU_ASSERT_TRUE(rings(&next) && !rings(&two));
    close(one.fd);
    close(two.fd);
    close(next.fd);
}

TEST(keep_their_number)
{
    struct bell bell;
    int number;

    start();
    bell_open(&bell, job, 1, 1, -1);
    number = bell.fd;
    close(number);
    bell_open(&bell, job, 1, 2, 200);
    CU_ASSERT_EQUAL(bell.fd, 200);
    CU_ASSERT_TRUE(fcntl(number, F_GETFD) < 0);
    number = bell.fd;
    bell_open(&bell, job, 1, 3, number); /* it is not free */
    CU_ASSERT_TRUE(bell.fd >= 0 && bell.fd != number);
    close(number);
    number = bell.fd;
    bell_open(&bell, job, 1, 3, -1); /* its name is taken */
    CU_ASSERT_EQUAL(bell.fd, -1);
    close(number);
}
