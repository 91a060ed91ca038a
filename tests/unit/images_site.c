#include "tests/unit/images_site.h"

#include <CUnit/CUnit.h>
#include <string.h>

struct images im;
struct images_rank im_ranks[64];
struct images_order im_order;
uint64_t im_now;

void im_begin(uint32_t count, uint32_t servers, uint64_t every_ns)
{
    struct images_config config = {
        .ranks = count,
        .servers = servers,
        .policy = {.every_ns = every_ns, .log_much = IMAGE_LOG_MUCH, .log_urgent = UINT64_MAX}};

    memset(im_ranks, 0, sizeof(im_ranks));
    im_now = 100 * S;
    images_init(&im, &config, im_ranks, im_now);
    for (uint32_t i = 0; i < servers; i++) {
        images_server_opens(&im, i);
        images_held_end(&im, i);
    }
}

void im_all_live(void)
{
    for (uint32_t rank = 0; rank < im.config.ranks; rank++)
        images_rank_live(&im, rank, 1, im_now);
}

void im_begin_due(uint32_t count, uint32_t servers, uint64_t every_ns)
{
    im_begin(count, servers, every_ns);
    im_all_live();
    im_now += every_ns;
}

struct cw_point im_point(uint32_t number)
{
    return (struct cw_point){.event = 10 * number, .clock = 100 * number, .acts = 5 * number};
}

enum images_action im_next(void)
{
    return images_next(&im, im_now, &im_order);
}

enum images_action im_settle(void)
{
    enum images_action action;

    do
        action = im_next();
    while (action == IMAGES_NOTHING && images_deadline_ns(&im) == 0);
    return action;
}

bool im_taken(uint32_t rank, uint32_t number)
{
    struct cw_image_report report = {.number = number, .point = im_point(number)};

    return images_taken(&im, rank, &report, im_now);
}

bool im_ended(uint32_t rank, uint32_t number, bool stored)
{
    struct cw_image_report report = {
        .number = number, .stored = stored, .stall_ns = S / 100, .sent = 20 * MIB};

    return images_ended(&im, rank, &report, "it failed", im_now);
}

bool im_stored_at(uint32_t server, uint32_t rank, uint32_t number)
{
    struct cw_stored s = {
        .rank = rank, .incarnation = 1, .number = number, .point = im_point(number)};

    return images_stored(&im, server, &s, im_now);
}

bool im_stored(uint32_t rank, uint32_t number)
{
    bool stored = false;

    for (uint32_t i = 0; i < im.config.servers; i++)
        if (im_ranks[rank].asked >> i & 1)
            stored = im_stored_at(i, rank, number);
    return stored;
}

uint32_t im_trimmed(uint32_t rank, uint32_t number, bool known)
{
    return images_trimmed(
        &im, &(struct cw_trim){.rank = rank, .known = known, .point = im_point(number)});
}

uint32_t im_transfers(uint32_t server)
{
    return im.server[server].requests[IMAGES_ASKED] + im.server[server].requests[IMAGES_TAKEN];
}

uint32_t im_late(uint32_t server)
{
    return im.server[server].requests[IMAGES_LATE];
}

int im_choice(uint32_t rank)
{
    uint32_t number;

    return images_choose(&im, rank, &number) ? (int)number : -1;
}

void im_one_image(uint32_t number)
{
    CU_ASSERT_EQUAL_FATAL(im_next(), IMAGES_ASK);
    CU_ASSERT_EQUAL_FATAL(im_order.number, number);
    CU_ASSERT_TRUE(im_taken(0, number));
    CU_ASSERT_TRUE(im_stored(0, number));
    CU_ASSERT_TRUE(im_ended(0, number, true));
    images_placed(&im, 0, number);
    CU_ASSERT_EQUAL(im_next(), IMAGES_TRIM);
    CU_ASSERT_EQUAL(im_order.number, number);
}
