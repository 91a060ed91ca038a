/* The dispatcher's sessions with checkpoint servers: a fake server, in this process. */
#include "common/cred.h"
#include "common/keyfile.h"
#include "common/transport.h"
#include "common/tree.h"
#include "dispatcher/servers/image_dir.h"
#include "dispatcher/servers/servers.h"
#include "tests/lib/scratch.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("checkpoint servers");

#define WAIT_MS 5000
#define RANKS 3u

static struct cw_err err;
static struct loop *loop;
static struct servers *servers;
static struct cw_address address;
static int listener;
static char key_path[80];
static uint8_t job_id[CW_ID_SIZE] = "the job of test";
static uint8_t job_key[CW_KEY_SIZE];

/* What was told, one character each: o(pens) h(eld) e(nd) s(tored) l(ost) f(etched) x (not fetched)
 */
static char story[64];
static struct cw_stored last;
static char why[CW_ERR_TEXT_MAX];
static int fetched_fd;

static void note(char what)
{
    size_t used = strlen(story);

    CU_ASSERT_FATAL(used + 1 < sizeof(story));
    story[used] = what;
    story[used + 1] = '\0';
}

static void on_opens(void *ctx, uint32_t server)
{
    (void)ctx;
    CU_ASSERT_EQUAL(server, 0);
    note('o');
}

static void on_held(void *ctx, uint32_t server, const struct cw_stored *held)
{
    (void)ctx;
    CU_ASSERT_EQUAL(server, 0);
    last = *held;
    note('h');
}

static void on_held_end(void *ctx, uint32_t server)
{
    (void)ctx;
    (void)server;
    note('e');
}

static void on_stored(void *ctx, uint32_t server, const struct cw_stored *stored)
{
    (void)ctx;
    (void)server;
    last = *stored;
    note('s');
}

static void on_lost(void *ctx, uint32_t server, const struct cw_err *cause)
{
    (void)ctx;
    (void)server;
    snprintf(why, sizeof(why), "%s", cause->text);
    note('l');
}

static void on_fetched(void *ctx, uint32_t rank, uint32_t number, int fd,
                       const struct cw_err *cause)
{
    (void)ctx;
    CU_ASSERT_EQUAL(rank, 2);
    CU_ASSERT_EQUAL(number, 7);
    fetched_fd = fd;
    if (fd < 0)
        snprintf(why, sizeof(why), "%s", cause->text);
    note(fd < 0 ? 'x' : 'f');
}

static const struct servers_events events = {on_opens,  on_held, on_held_end,
                                             on_stored, on_lost, on_fetched};

/* --- the fake server --- */

struct peer {
    int fd;
    struct cw_session session;
};

static void await(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    CU_ASSERT_EQUAL_FATAL(poll(&p, 1, WAIT_MS), 1);
}

static void take(struct peer *p, uint8_t *to, size_t size)
{
    while (size) {
        ssize_t n;

        await(p->fd);
        n = read(p->fd, to, size);
        CU_ASSERT_FATAL(n > 0);
        to += n;
        size -= (size_t)n;
    }
}

static void say(struct peer *p, uint8_t type, const void *body, uint32_t size)
{
    uint8_t frame[CW_FRAME_HEADER + CW_FRAME_BODY_MAX];

    cw_frame_begin(&p->session, frame, type, size);
    if (size)
        memcpy(frame + CW_FRAME_HEADER, body, size);
    CU_ASSERT_EQUAL_FATAL(write(p->fd, frame, CW_FRAME_HEADER + size),
                          (ssize_t)(CW_FRAME_HEADER + size));
}

static void hear(struct peer *p, uint8_t type, uint8_t *body, uint32_t size)
{
    uint8_t header[CW_FRAME_HEADER];
    struct cw_header got;

    take(p, header, sizeof(header));
    CU_ASSERT_EQUAL_FATAL(cw_frame_accept(&p->session, header, &got, &err), CW_OK);
    CU_ASSERT_EQUAL_FATAL(got.type, type);
    CU_ASSERT_EQUAL_FATAL(got.length, size);
    take(p, body, size);
}

static struct peer shake_hands(void)
{
    struct peer p = {0};
    struct cw_challenge challenge = {.magic = CW_PROTOCOL_MAGIC, .version = CW_PROTOCOL_VERSION};
    struct cw_welcome welcome = {0};
    struct cw_hello hello;
    uint8_t body[CW_FRAME_BODY_MAX];
    uint8_t mac[CW_MAC_SIZE];

    await(listener);
    p.fd = cw_accept(listener, &address);
    CU_ASSERT_FATAL(p.fd >= 0);
    cw_challenge_put(body, &challenge);
    say(&p, CW_FRAME_CHALLENGE, body, CW_CHALLENGE_SIZE);
    hear(&p, CW_FRAME_HELLO, body, CW_HELLO_SIZE);
    CU_ASSERT_FATAL(cw_hello_get(body, &hello));
    CU_ASSERT_EQUAL(hello.role, CW_ROLE_DISPATCHER);
    CU_ASSERT_EQUAL(hello.rank, RANKS);
    CU_ASSERT_EQUAL(memcmp(hello.job, job_id, CW_ID_SIZE), 0);
    cw_cred_mac_hello(mac, job_key, &hello, challenge.nonce);
    CU_ASSERT_TRUE(cw_cred_equal(mac, hello.mac));
    cw_cred_mac_welcome(welcome.mac, job_key, &welcome, &hello, challenge.nonce);
    cw_welcome_put(body, &welcome);
    say(&p, CW_FRAME_WELCOME, body, CW_WELCOME_SIZE);
    return p;
}

static void say_stored(struct peer *p, uint8_t type, uint32_t number)
{
    struct cw_stored stored = {.rank = 2, .incarnation = 1, .number = number};
    uint8_t body[CW_STORED_SIZE];

    cw_stored_put(body, &stored);
    say(p, type, body, sizeof(body));
}

static void refuse(struct peer *p, const char *text)
{
    struct cw_notice_body notice = {.code = CW_REFUSED_LIMIT};
    uint8_t body[CW_NOTICE_SIZE + CW_TEXT_MAX];

    snprintf(notice.text, sizeof(notice.text), "%s", text);
    say(p, CW_FRAME_REFUSED, body, (uint32_t)cw_notice_put(body, &notice));
}

/* --- */

static void turn_until(const char *expected)
{
    for (int i = 0; i < 1000 && strlen(story) < strlen(expected); i++)
        loop_turn(loop, loop_look(loop) + 10000000);
    CU_ASSERT_STRING_EQUAL_FATAL(story, expected);
}

/* The session is tried again, after a pause. */
static void turn_until_dialed(void)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};

    for (int i = 0; i < 1000 && poll(&p, 1, 0) == 0; i++)
        loop_turn(loop, loop_look(loop) + 10000000);
}

static void begin(void)
{
    static const char *addresses[1];
    char text[CW_ADDRESS_MAX];
    uint8_t key[CW_KEY_SIZE];
    bool made;
    struct servers_config config = {
        .job_id = job_id, .ranks = RANKS, .addresses = addresses, .count = 1, .events = &events};

    story[0] = why[0] = '\0';
    fetched_fd = -1;
    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    snprintf(key_path, sizeof(key_path), "%s", scratch_path("s.key"));
    CU_ASSERT_EQUAL_FATAL(cw_key_load_or_make(key_path, key, &made, &err), CW_OK);
    cw_cred_job_key(job_key, key, job_id);
    snprintf(text, sizeof(text), "unix:%s/s", scratch_dir);
    CU_ASSERT_EQUAL_FATAL(cw_address_parse(&address, text, &err), CW_OK);
    listener = cw_listen(&address, &err);
    CU_ASSERT_FATAL(listener >= 0);
    config.loop = loop = loop_new(&err);
    addresses[0] = address.text;
    servers = servers_new(&config, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(servers);
}

static void end(void)
{
    servers_free(servers);
    loop_free(loop);
    cw_unlisten(listener, &address);
    unlink(key_path);
    CU_ASSERT_EQUAL(scratch_end(), 0);
}

TEST(what_it_holds_and_stores_is_told)
{
    struct peer p;

    begin();
    p = shake_hands();
    turn_until("o");
    say_stored(&p, CW_FRAME_HELD, 3);
    say(&p, CW_FRAME_HELD_END, NULL, 0);
    turn_until("ohe");
    CU_ASSERT_EQUAL(last.number, 3);
    say_stored(&p, CW_FRAME_STORED, 4);
    turn_until("ohes");
    CU_ASSERT_EQUAL(last.number, 4);
    close(p.fd);
    end();
}

TEST(it_is_told_what_to_drop)
{
    uint8_t body[CW_IMAGE_REF_SIZE];
    struct cw_image_ref ref;
    struct peer p;

    begin();
    p = shake_hands();
    turn_until("o");
    servers_drop(servers, 0, 2, 9);
    hear(&p, CW_FRAME_DROP, body, sizeof(body));
    cw_image_ref_get(body, &ref);
    CU_ASSERT_EQUAL(ref.rank, 2);
    CU_ASSERT_EQUAL(ref.number, 9);
    close(p.fd);
    end();
}

TEST(a_session_that_breaks_is_opened_again)
{
    struct peer p;

    begin();
    p = shake_hands();
    turn_until("o");
    close(p.fd);
    turn_until("ol");
    turn_until_dialed();
    p = shake_hands();
    turn_until("olo");
    /* what it does not expect ends it, too */
    say(&p, CW_FRAME_HINT, NULL, 0);
    turn_until("olol");
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "HINT frame, which a dispatcher does not expect"));
    close(p.fd);
    end();
}

TEST(an_image_is_fetched_over_a_connection_of_its_own)
{
    uint8_t body[CW_IMAGE_SIZE] = {5};
    struct cw_image_ref ref;
    char bytes[8] = "";
    struct peer p, q;

    begin();
    p = shake_hands();
    turn_until("o");
    servers_fetch(servers, 0, 2, 7);
    q = shake_hands();
    say(&q, CW_FRAME_HELD_END, NULL, 0); /* of no concern here */
    for (int i = 0; i < 20; i++)
        loop_turn(loop, loop_look(loop) + 1000000);
    hear(&q, CW_FRAME_FETCH, body, CW_IMAGE_REF_SIZE);
    cw_image_ref_get(body, &ref);
    CU_ASSERT_EQUAL(ref.number, 7);
    memset(body, 0, sizeof(body));
    body[0] = 5;
    say(&q, CW_FRAME_IMAGE, body, sizeof(body));
    CU_ASSERT_EQUAL(write(q.fd, "image", 5), 5);
    turn_until("of");
    close(q.fd);
    /* not one byte of it is lost */
    CU_ASSERT_EQUAL(read(fetched_fd, bytes, sizeof(bytes)), 5);
    CU_ASSERT_STRING_EQUAL(bytes, "image");
    close(fetched_fd);
    close(p.fd);
    end();
}

TEST(a_fetch_that_is_refused_says_why)
{
    uint8_t body[CW_IMAGE_REF_SIZE];
    struct peer p, q;

    begin();
    p = shake_hands();
    turn_until("o");
    servers_fetch(servers, 0, 2, 7);
    q = shake_hands();
    for (int i = 0; i < 20; i++)
        loop_turn(loop, loop_look(loop) + 1000000);
    hear(&q, CW_FRAME_FETCH, body, sizeof(body));
    refuse(&q, "block 9 is damaged");
    turn_until("ox");
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "refused: block 9 is damaged"));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, address.text));
    close(q.fd);
    close(p.fd);
    end();
}

TEST(a_server_without_a_key_is_an_error)
{
    const char *addresses[] = {"unix:/nowhere/at/all"};
    struct servers_config config = {
        .job_id = job_id, .ranks = RANKS, .addresses = addresses, .count = 1, .events = &events};

    config.loop = loop_new(&err);
    CU_ASSERT_PTR_NULL(servers_new(&config, &err));
    CU_ASSERT_EQUAL(err.code, CW_ENOTFOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--ckpt-server unix:/nowhere/at/all: no key"));
    addresses[0] = "tcp:somewhere:1";
    CU_ASSERT_PTR_NULL(servers_new(&config, &err));
    CU_ASSERT_EQUAL(err.code, CW_EINVAL);
    loop_free(config.loop);
}

TEST(a_directory_is_chosen)
{
    struct image_dir chosen;
    struct stat st;
    char file[IMAGE_DIR_MAX + 8];

    CU_ASSERT_EQUAL(image_dir_choose(&chosen, NULL, job_id, false, &err), CW_OK);
    CU_ASSERT_TRUE(chosen.chosen);
    CU_ASSERT_TRUE(chosen.bytes_max > 0);
    CU_ASSERT_TRUE(stat(chosen.path, &st) < 0);
    CU_ASSERT_EQUAL_FATAL(mkdir(chosen.path, 0700), 0);
    snprintf(file, sizeof(file), "%s/x", chosen.path);
    CU_ASSERT_EQUAL(mkdir(file, 0700), 0);
    image_dir_remove(&chosen);
    CU_ASSERT_TRUE(stat(chosen.path, &st) < 0);
    CU_ASSERT_EQUAL(image_dir_choose(&chosen, "/tmp", job_id, false, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(chosen.path, "/tmp");
    CU_ASSERT_FALSE(chosen.chosen);
    image_dir_remove(&chosen); /* not ours to remove */
    CU_ASSERT_EQUAL(stat("/tmp", &st), 0);
    CU_ASSERT_EQUAL(image_dir_choose(&chosen, "/nowhere/x", job_id, false, &err), CW_EINVAL);
}

/* A directory that has a lock, which nobody holds. */
static void leave(const struct image_dir *dir)
{
    char lock[IMAGE_DIR_MAX + 8];
    int fd;

    CU_ASSERT_EQUAL_FATAL(mkdir(dir->path, 0700), 0);
    snprintf(lock, sizeof(lock), "%s/lock", dir->path);
    fd = open(lock, O_RDWR | O_CREAT, 0600);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    close(fd);
}

TEST(what_nobody_holds_is_removed)
{
    struct image_dir held, left, chosen;
    struct stat st;

    CU_ASSERT_EQUAL(image_dir_choose(&held, NULL, job_id, false, &err), CW_OK);
    CU_ASSERT_EQUAL(image_dir_choose(&left, NULL, job_id, false, &err), CW_OK);
    leave(&held);
    leave(&left);
    image_dir_hold(&held);
    CU_ASSERT_EQUAL(image_dir_choose(&chosen, NULL, job_id, false, &err), CW_OK);
    CU_ASSERT_EQUAL(stat(held.path, &st), 0);
    CU_ASSERT_TRUE(stat(left.path, &st) < 0);
    image_dir_remove(&held);
    CU_ASSERT_TRUE(stat(held.path, &st) < 0);
}

TEST(a_directory_must_be_one)
{
    struct image_dir chosen;

    CU_ASSERT_EQUAL(image_dir_choose(&chosen, "/dev/null", job_id, false, &err), CW_EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--ckpt-dir /dev/null: Not a directory"));
    CU_ASSERT_EQUAL(image_dir_choose(&chosen, "/dev/null/x", job_id, false, &err), CW_EINVAL);
    CU_ASSERT_EQUAL(image_dir_choose(&chosen, "/dev/shm//", job_id, false, &err), CW_OK);
    CU_ASSERT_EQUAL(image_dir_choose(&chosen, "/dev/shm/x/", job_id, false, &err), CW_OK);
}

TEST(memory_is_known_for_what_it_is)
{
    struct image_dir chosen;

    if (access("/dev/shm", W_OK) < 0)
        return;
    CU_ASSERT_EQUAL(image_dir_choose(&chosen, "/dev/shm/images", job_id, false, &err), CW_OK);
    CU_ASSERT_TRUE(chosen.in_memory);
}

static bool is_there(const struct image_dir *dir, const char *name)
{
    char path[IMAGE_DIR_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", dir->path, name);
    return access(path, F_OK) == 0;
}

/* An image of a job. */
static void put_image(const struct image_dir *dir, const char *job, uint32_t size)
{
    char path[IMAGE_DIR_MAX + 64];
    static uint8_t bytes[1 << 20];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", dir->path, job);
    mkdir(path, 0700);
    strcat(path, "/0.blocks");
    memset(bytes, 1, sizeof(bytes));
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CU_ASSERT_EQUAL(write(fd, bytes, size), (ssize_t)size);
    fsync(fd);
    close(fd);
}

#define OTHER "ff112233445566778899aabbccddeeff"

/* What is held counts, be it ours or another's; files that nobody of us wrote make the figures
 * differ by little. */
TEST(what_is_held_is_no_reason_to_refuse_more)
{
    struct image_dir empty, ours, others;

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    CU_ASSERT_EQUAL(image_dir_choose(&empty, scratch_dir, job_id, true, &err), CW_OK);
    put_image(&empty, empty.job, 1 << 20);
    CU_ASSERT_EQUAL(image_dir_choose(&ours, scratch_dir, job_id, true, &err), CW_OK);
    CU_ASSERT_EQUAL(cw_tree_bytes(scratch_dir), 1 << 20);
    put_image(&empty, OTHER, 1 << 20);
    CU_ASSERT_EQUAL(image_dir_choose(&others, scratch_dir, job_id, true, &err), CW_OK);
    CU_ASSERT_TRUE(others.bytes_max > 3 << 19);
    CU_ASSERT_EQUAL(scratch_remove(), 0);
}

/* Of the user's directory: what is of a job whose dispatcher is killed, and nothing else. */
TEST(images_of_dead_jobs_are_removed)
{
    static const uint8_t second_job[CW_ID_SIZE] = {9}, third_job[CW_ID_SIZE] = {8};
    struct image_dir dead, live, kept, next;

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    CU_ASSERT_EQUAL(image_dir_choose(&dead, scratch_dir, job_id, false, &err), CW_OK);
    CU_ASSERT_EQUAL(image_dir_choose(&live, scratch_dir, second_job, false, &err), CW_OK);
    CU_ASSERT_EQUAL(image_dir_choose(&kept, scratch_dir, third_job, true, &err), CW_OK);
    image_dir_hold(&dead);
    image_dir_hold(&live);
    image_dir_hold(&kept);
    put_image(&dead, dead.job, 4096);
    put_image(&dead, live.job, 4096);
    put_image(&dead, kept.job, 4096);
    put_image(&dead, OTHER, 4096);
    close(dead.held_fd); /* as the kernel does when it is killed */
    CU_ASSERT_EQUAL(image_dir_choose(&next, scratch_dir, third_job, false, &err), CW_OK);
    CU_ASSERT_FALSE(is_there(&dead, dead.job));
    CU_ASSERT_TRUE(is_there(&dead, live.job));
    CU_ASSERT_TRUE(is_there(&dead, kept.job));
    CU_ASSERT_TRUE(is_there(&dead, OTHER));
    image_dir_remove(&live);
    CU_ASSERT_FALSE(is_there(&dead, live.job));
    image_dir_remove(&kept);
    CU_ASSERT_TRUE(is_there(&dead, kept.job));
    CU_ASSERT_EQUAL(scratch_remove(), 0);
}

/* Also by a later job, where the one that had made it was killed. */
TEST(a_directory_that_was_made_goes)
{
    struct image_dir made, next;

    CU_ASSERT_EQUAL_FATAL(scratch_make(), 0);
    CU_ASSERT_EQUAL(scratch_end(), 0);
    CU_ASSERT_EQUAL(image_dir_choose(&made, scratch_dir, job_id, false, &err), CW_OK);
    leave(&made);
    image_dir_hold(&made);
    put_image(&made, made.job, 4096);
    close(made.held_fd);
    CU_ASSERT_EQUAL(image_dir_choose(&next, scratch_dir, job_id, false, &err), CW_OK);
    CU_ASSERT_FALSE(is_there(&next, next.job));
    image_dir_remove(&next);
    CU_ASSERT_TRUE(access(scratch_dir, F_OK) < 0);
}
