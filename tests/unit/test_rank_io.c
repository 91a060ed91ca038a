/* What ranks say over both descriptors: the order of reports and PMI requests. */
#include "common/clock.h"
#include "dispatcher/ranks/places.h"
#include "dispatcher/ranks/rank_io.h"
#include "tests/lib/said.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

SUITE("what ranks say");

#define RANKS 2
#define INIT "cmd=init pmi_version=1 pmi_subversion=1\n"
#define BARRIER "cmd=barrier_in\n"

static struct cw_err err;
static struct loop *loop;
static struct rank_io *io;
static struct places places[RANKS];
static struct channels channels;
static struct said pmi[RANKS], control[RANKS];
static char story[1024]; /* of events */
static bool closes;      /* on a report, as when a rank is let go of */

static void tell(const char *what, uint32_t rank)
{
    size_t size = strlen(story);

    snprintf(story + size, sizeof(story) - size, "%u %s\n", rank, what);
}

static void on_asked(void *ctx, uint32_t rank, const struct pmi_request *request)
{
    (void)ctx;
    if (request->what == PMI_INIT)
        tell("initialized", rank);
    else if (request->what == PMI_FINALIZE)
        tell("finalized", rank);
}

static void on_without_device(void *ctx, uint32_t rank)
{
    (void)ctx;
    tell("without device", rank);
}

static void on_forgotten(void *ctx, uint32_t rank)
{
    (void)ctx;
    tell("forgotten", rank);
}

static void on_broken(void *ctx, const struct cw_err *e)
{
    (void)ctx;
    tell(e->text, RANKS);
}

static void on_report(void *ctx, uint32_t rank, const struct cw_report *report)
{
    (void)ctx;
    tell("report", rank);
    if (report->kind == CW_REPORT_IMAGE_TAKEN)
        tell(places_at(&places[rank], report->image.number, PLACE_PMI) ? "with a place" : "without",
             rank);
    if (closes) {
        rank_io_hear(io, (struct cw_process){.rank = rank});
        rank_io_close(io, (struct cw_process){.rank = rank});
    }
}

static void on_no_report(void *ctx, uint32_t rank)
{
    (void)ctx;
    tell("no report", rank);
}

static const struct rank_io_events events = {on_asked,  on_without_device, on_forgotten,
                                             on_broken, on_report,         on_no_report};

static void say_device(uint32_t rank)
{
    uint8_t bytes[64];
    size_t size = cw_report_put(bytes, CW_REPORT_SETUP_READ, "", 0);

    CU_ASSERT_EQUAL(said_put(&control[rank], bytes, size), size);
}

/* A process of the rank. */
static void start(uint32_t rank, uint32_t number, bool again)
{
    said_open(&pmi[rank], &channels, false);
    said_open(&control[rank], &channels, true);
    rank_io_open(io, (struct cw_process){.rank = rank, .incarnation = again ? 2 : 1}, number,
                 pmi[rank].channel, control[rank].channel);
}

static void end(uint32_t rank)
{
    rank_io_close(io, (struct cw_process){.rank = rank});
    said_close(&pmi[rank]);
    said_close(&control[rank]);
}

static void open_io(void)
{
    static const uint8_t id[CW_ID_SIZE] = {1};
    struct rank_io_config config = {
        .ranks = RANKS, .job_id = id, .places = places, .events = &events};

    memset(places, 0, sizeof(places));
    loop = loop_new(&err);
    channels_init(&channels, loop);
    io = rank_io_new(&config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(io);
    story[0] = '\0';
    closes = false;
    for (uint32_t rank = 0; rank < RANKS; rank++)
        start(rank, 0, false);
}

static void close_io(void)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        end(rank);
    rank_io_free(io);
    channels_end(&channels);
    loop_free(loop);
}

static void turns(void)
{
    for (int i = 0; i < 4; i++)
        loop_turn(loop, cw_clock_ns());
}

static void ask(uint32_t rank, const char *lines)
{
    CU_ASSERT_EQUAL(said_put(&pmi[rank], lines, strlen(lines)), strlen(lines));
}

static void answered(uint32_t rank, const char *text)
{
    CU_ASSERT_STRING_EQUAL(said_answers(&pmi[rank]), text);
}

static void take_image(uint32_t rank, uint32_t number)
{
    struct cw_image_report image = {.number = number};
    uint8_t bytes[1024];
    size_t size = cw_report_put_image(bytes, CW_REPORT_IMAGE_TAKEN, &image, "");

    CU_ASSERT_EQUAL(said_put(&control[rank], bytes, size), size);
}

static void tells(const char *text)
{
    CU_ASSERT_STRING_EQUAL(story, text);
    story[0] = '\0';
}

static void begin_both(void)
{
    say_device(0);
    say_device(1);
    ask(0, INIT);
    ask(1, INIT);
    turns();
    answered(0, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
    answered(1, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
    story[0] = '\0';
}

/* Both are there when the dispatcher looks, whichever it looks at. */
TEST(image_before_a_request)
{
    for (int which = 0; which < 2; which++) {
        open_io();
        begin_both();
        take_image(0, 1);
        ask(0, BARRIER);
        if (which)
            rank_io_hear(io, (struct cw_process){0});
        else
            turns();
        tells("0 report\n0 with a place\n");
        ask(1, BARRIER);
        turns();
        answered(0, "cmd=barrier_out\n");
        end(0);
        start(0, 1, true); /* it asks for the barrier that has been passed */
        ask(0, BARRIER);
        turns();
        answered(0, "cmd=barrier_out\n");
        ask(0, BARRIER);
        turns();
        answered(0, "");
        close_io();
    }
}

TEST(image_after_an_answer)
{
    open_io();
    begin_both();
    ask(0, BARRIER);
    ask(1, BARRIER);
    turns();
    answered(0, "cmd=barrier_out\n");
    take_image(0, 1);
    turns();
    take_image(0, 0); /* there is no such image */
    turns();
    tells("0 report\n0 with a place\n0 report\n0 with a place\n");
    end(0);
    start(0, 1, true);
    ask(0, BARRIER);
    turns();
    answered(0, "");
    close_io();
}

/* A report that ends the interest in a rank: what it asked is heard first, and once. */
TEST(report_that_closes)
{
    open_io();
    begin_both();
    closes = true;
    take_image(0, 1);
    ask(0, "cmd=finalize\n");
    rank_io_hear(io, (struct cw_process){0});
    turns();
    tells("0 report\n0 with a place\n0 finalized\n");
    close_io();
}

/* The R-device says that it is there; one that goes on from an image was. */
TEST(device_is_there)
{
    open_io();
    ask(0, INIT BARRIER);
    turns();
    tells("0 initialized\n0 without device\n");
    end(0);
    start(0, 0, true);
    say_device(0);
    take_image(0, 1);
    ask(0, INIT BARRIER);
    turns();
    tells("0 report\n0 with a place\n0 initialized\n");
    end(0);
    start(0, 1, true);
    ask(0, INIT BARRIER);
    turns();
    tells("0 initialized\n");
    close_io();
}

/* The last report of a process, a restorer, is not lost. */
TEST(report_before_the_end)
{
    uint8_t bytes[1024];
    size_t size = cw_report_put(bytes, CW_REPORT_NOT_RESTORED, "damaged", 7);

    open_io();
    end(0);
    start(0, 1, true);
    CU_ASSERT_EQUAL(said_put(&control[0], bytes, size), size);
    said_end(&control[0]);
    rank_io_hear(io, (struct cw_process){0});
    tells("0 report\n");
    close_io();
}

/* A rank that never stops talking takes its turn, and no more; all of it is heard at its end. */
TEST(talks_without_end)
{
    uint8_t bytes[1024];
    size_t size = cw_report_put(bytes, CW_REPORT_RELAY_LOST, "lost", 4);
    uint32_t heard;

    open_io();
    for (uint32_t i = 0; i < 2 * RANK_IO_READS_A_TURN; i++)
        CU_ASSERT_EQUAL(said_put(&control[0], bytes, size), size);
    loop_turn(loop, cw_clock_ns());
    heard = (uint32_t)(strlen(story) / strlen("0 report\n"));
    CU_ASSERT_EQUAL(heard, RANK_IO_READS_A_TURN);
    rank_io_hear(io, (struct cw_process){0});
    heard = (uint32_t)(strlen(story) / strlen("0 report\n"));
    CU_ASSERT_EQUAL(heard, 2 * RANK_IO_READS_A_TURN);
    close_io();
}
