#include "tests/trace/killed.h"

#include <CUnit/CUnit.h>

static void client_die(struct client *c)
{
    if (c->conn)
        relay_conn_close(c->conn, "the relay is killed");
    c->conn = NULL;
}

static void clients_die(struct fixture *f)
{
    client_die(&f->dispatcher);
    for (int i = 0; i < FIXTURE_RANKS; i++)
        client_die(&f->rank[i]);
    for (int i = 0; i < FIXTURE_OTHERS; i++)
        client_die(&f->other[i]);
}

/* What the core asks of its disk while it reads what was left. False: nothing. */
static bool serve_disk(struct fixture *f)
{
    struct relay_log_done done;
    struct relay_log_io io;

    while (relay_core_next_io(f->core, &io))
        fake_disk_take(&f->disk, &io);
    if (!fake_disk_done(&f->disk, &done))
        return false;
    relay_core_io_done(f->core, &done);
    return true;
}

static struct relay_returned take_up(struct fixture *f)
{
    struct relay_returned returned = {0};

    while (!relay_core_return(f->core, &returned))
        CU_ASSERT_TRUE_FATAL(serve_disk(f));
    return returned;
}

static struct relay_returned replace(struct fixture *f, struct ledger_memory *copy)
{
    struct relay_returned returned;

    clients_die(f);
    f->disk.count = 0;
    relay_core_free(f->core);
    left_free(f->left);
    f->left = f->config.ledger = copy;
    f->config.region.start = left_region(copy);
    f->core = relay_core_new(&f->config);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->core);
    returned = take_up(f);
    fixture_collect(f);
    return returned;
}

struct relay_returned fixture_kill(struct fixture *f)
{
    return replace(f, left_copy(f->left));
}

/* Nothing of what follows from it is collected. */
static void say_all(struct client *c)
{
    struct codec_bytes *out = &c->codec.out;

    while (codec_left(out) > 0) {
        size_t size = codec_left(out);
        size_t room;
        void *at;

        CU_ASSERT_EQUAL_FATAL(relay_conn_space(c->conn, &at, &room), CW_OK);
        size = size < room ? size : room;
        memcpy(at, out->at + out->start, size);
        memcpy(codec_room(&c->log, size), at, size);
        codec_take(out, size);
        relay_conn_input(c->conn, size);
    }
}

struct relay_returned fixture_kill_amid(struct client *c)
{
    struct ledger_memory *copy;

    say_all(c);
    copy = left_copy(c->fixture->left);
    copy->header.done--;
    return replace(c->fixture, copy);
}

struct relay_returned fixture_kill_after(struct client *c)
{
    say_all(c);
    return fixture_kill(c->fixture);
}

void fixture_come_back(struct client *c)
{
    c->hello.event = c->event;
    fixture_resume(c, c->received);
}

void fixture_all_come_back(struct fixture *f, uint32_t ranks)
{
    fixture_come_back(&f->dispatcher);
    for (uint32_t i = 0; i < ranks; i++)
        fixture_come_back(&f->rank[i]);
}

void fixture_kill_whole(struct fixture *f, uint32_t ranks)
{
    struct relay_returned returned = fixture_kill(f);

    CU_ASSERT_EQUAL(returned.jobs, 1);
    CU_ASSERT_EQUAL(returned.lost, 0);
    CU_ASSERT_STRING_EQUAL(returned.why, "");
    fixture_forget(f);
    fixture_all_come_back(f, ranks);
}

void fixture_crash_from(struct client *c, const struct cw_point *point)
{
    fixture_close(c, "crash");
    fixture_forget(c->fixture);
    fixture_again_from(c, point);
}
