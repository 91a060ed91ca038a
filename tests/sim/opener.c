#include "tests/sim/opener.h"
#include "common/keyfile.h"
#include "tests/sim/sim.h"
#include <stdlib.h>
#include <string.h>

#define OPENED_MAX 16

static struct opener {
    opener_opened *opened;
    void *ctx;
    struct cw_dial *dial;
    struct cw_dial_request request[OPENED_MAX];
    struct cw_dial_result result[OPENED_MAX];
    int count;
} the;

static void on_done(void *ctx, const struct cw_dial_result *result)
{
    (void)ctx;
    if (the.count == OPENED_MAX)
        abort();
    the.request[the.count] = *result->request;
    the.result[the.count++] = *result;
}

struct opener *opener_new(struct loop *loop, opener_opened *opened, void *ctx, struct cw_err *err)
{
    (void)loop;
    (void)err;
    the = (struct opener){.opened = opened, .ctx = ctx};
    the.dial = cw_dial_open(on_done, NULL);
    if (!the.dial)
        abort();
    return &the;
}

void opener_free(struct opener *opener)
{
    cw_dial_close(opener->dial);
    opener->count = 0;
}

bool opener_add(struct opener *opener, const struct cw_dial_request *request)
{
    return cw_dial_add(opener->dial, request);
}

bool opener_can(void)
{
    return the.count > 0;
}

void opener_step(void)
{
    struct cw_dial_request request = the.request[0];
    struct cw_dial_result result = the.result[0];

    the.count--;
    memmove(the.request, the.request + 1, (size_t)the.count * sizeof(*the.request));
    memmove(the.result, the.result + 1, (size_t)the.count * sizeof(*the.result));
    result.request = &request;
    the.opened(the.ctx, &result);
}

/* --- what the dispatcher does with relays of its own, which there are none
 * ------------------------
 */

int cw_key_load(const char *path, uint8_t key[CW_KEY_SIZE], struct cw_err *err)
{
    (void)path;
    (void)err;
    memcpy(key, sim.relay_key, CW_KEY_SIZE);
    return CW_OK;
}

void cw_key_random(uint8_t key[CW_KEY_SIZE])
{
    (void)key;
    abort();
}
