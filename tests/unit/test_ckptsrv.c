/* The store of a checkpoint server: which units are whose, indexes, and images that are stored,
 * read back and dropped, with the end of the process before any operation on a file. */
#include "ckptsrv/fetch.h"
#include "ckptsrv/index.h"
#include "ckptsrv/put.h"
#include "ckptsrv/verify.h"
#include "tests/lib/image_maker.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

SUITE("checkpoint store");

#define RANKS 3u
#define NUMBERS 40u
#define BLOCKS 12u

static const uint8_t job[CW_ID_SIZE] = {1, 2, 3};

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % below;
}

/* --- units ---------------------------------------------------------------------------------------
 */

/* What is taken is nobody's; the file is as long as the last one in use, and within its bound. */
TEST(units_are_taken_once)
{
    struct extent held[64] = {0};
    uint8_t model[4096] = {0};
    struct units units = {0};

    random_state = 1;
    for (int step = 0; step < 20000; step++) {
        uint32_t i = draw(64);

        if (held[i].count) {
            units_release(&units, held[i]);
            memset(model + held[i].first, 0, held[i].count);
            held[i].count = 0;
        } else {
            uint64_t least = 1 + draw(16);
            uint64_t most = least + draw(40);

            if (!units_take(&units, least, most, 2000 - units.count, &held[i])) {
                held[i].count = 0;
                continue;
            }
            CU_ASSERT_FATAL(held[i].count >= least && held[i].count <= most);
            CU_ASSERT_FATAL(held[i].first + held[i].count <= 2000);
            for (uint64_t u = 0; u < held[i].count; u++)
                CU_ASSERT_FATAL(model[held[i].first + u]++ == 0);
        }
        CU_ASSERT(units.count == 0 || model[units.count - 1]);
    }
    for (int i = 0; i < 64; i++)
        if (held[i].count)
            units_release(&units, held[i]);
    CU_ASSERT(units.count == 0 && units.used == 0);
    units_clear(&units);
}

/* Holes are used before a file that may not grow is given up. */
TEST(holes_are_used)
{
    struct units units = {0};
    struct extent all;
    struct extent one;

    CU_ASSERT_FATAL(units_take(&units, 64, 64, 64, &all));
    for (uint64_t i = 1; i < 63; i += 2)
        units_release(&units, (struct extent){i, 1});
    for (int i = 0; i < 31; i++)
        CU_ASSERT(units_take(&units, 1, 16, 0, &one) && one.count == 1);
    CU_ASSERT_FALSE(units_take(&units, 1, 16, 0, &one));
    CU_ASSERT(units.used == 64);
    units_clear(&units);
}

TEST(units_of_two_images)
{
    struct units units = {0};
    struct extent all;

    CU_ASSERT_FATAL(units_take(&units, 8, 8, 8, &all));
    CU_ASSERT(units_refer(&units, all));
    units_release(&units, all);
    CU_ASSERT(units.count == 8);
    units_release(&units, all);
    CU_ASSERT(units.count == 0);
    units_clear(&units);
}

/* --- images --------------------------------------------------------------------------------------
 */

static char dir[64];
static struct vault *vault;

static struct image_plan plan_of(uint32_t rank, uint32_t number, uint32_t base)
{
    struct image_plan plan = {.rank = rank,
                              .incarnation = 1,
                              .number = number,
                              .base = base,
                              .blocks = BLOCKS,
                              .seed = 3};

    memcpy(plan.job, job, CW_ID_SIZE);
    return plan;
}

static bool open_vault(uint64_t max)
{
    struct cw_err err = {0};

    vault = vault_open(dir, max, &err);
    if (!vault)
        printf("# %s\n", err.text);
    return vault != NULL;
}

static void make_dir(void)
{
    strcpy(dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/cwckpt.XXXXXX" : "/tmp/cwckpt.XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
}

/* Of what was there before the vault, the directory is the last. */
static void remove_dir(void)
{
    vault_close(vault, true, NULL);
    vault = NULL;
    CU_ASSERT(rmdir(dir) == 0);
}

static int take_all(struct put *put, const struct image_stream *stream, struct cw_err *err)
{
    size_t from = 0;
    size_t to = 0;
    size_t taken;

    while (!err->code && to < stream->size) {
        to += 1 + draw(100000);
        to = to < stream->size ? to : stream->size;
        put_take(put, stream->bytes + from, to - from, &taken, err);
        from += taken;
    }
    return err->code;
}

/* Returns 0 when it is committed. */
static int store(uint32_t rank, uint32_t number, uint32_t base, struct cw_err *err)
{
    struct image_plan plan = plan_of(rank, number, base);
    struct put_request request = {.rank = rank, .incarnation = 1, .put = image_put(&plan)};
    struct image_stream stream = {0};
    struct cw_stored stored;
    struct put *put;

    memcpy(request.job, job, CW_ID_SIZE);
    put = put_new(vault, &request, &plan.base, err);
    if (!put)
        return err->code;
    image_make(&plan, &stream);
    if (take_all(put, &stream, err) == CW_OK && put_commit(put, &stored, err) == CW_OK) {
        CU_ASSERT(put_ended(put) && stored.bytes == stream.memory);
        put_tell(put);
    }
    put_free(put);
    free(stream.bytes);
    return err->code;
}

/* Whether the image is there; then it has to be what was stored. */
static bool is_there(uint32_t rank, uint32_t number)
{
    struct image_plan plan = plan_of(rank, number, 0);
    struct cw_image_ref ref = {rank, number};
    struct image_stream stream = {0};
    uint8_t *buffer = malloc(FETCH_BUFFER_MIN);
    struct cw_err err = {0};
    uint64_t bytes;
    struct fetch *fetch = fetch_new(vault, job, &ref, &bytes, &err);
    size_t at = 0;
    size_t got = 0;

    if (fetch) {
        image_make(&plan, &stream);
        CU_ASSERT(bytes == stream.size);
        do {
            CU_ASSERT(fetch_read(fetch, buffer, FETCH_BUFFER_MIN, &got, &err) == CW_OK);
            CU_ASSERT_FATAL(at + got <= stream.size);
            CU_ASSERT(memcmp(buffer, stream.bytes + at, got) == 0);
            at += got;
        } while (got > 0);
        CU_ASSERT(at == stream.size);
    }
    fetch_free(fetch);
    free(stream.bytes);
    free(buffer);
    return fetch != NULL;
}

static int drop(uint32_t rank, uint32_t number, struct cw_err *err)
{
    return vault_drop(vault, job, &(struct cw_image_ref){rank, number}, err);
}

/* What has to be there: of each rank, by number. */
static bool model[RANKS][NUMBERS];

static uint32_t newest(uint32_t rank)
{
    uint32_t number = 0;

    for (uint32_t n = 1; n < NUMBERS; n++)
        if (model[rank][n])
            number = n;
    return number;
}

static void forget_until(uint32_t rank, uint32_t number)
{
    memset(model[rank], 0, (number + 1) * sizeof(bool));
}

/* Of too many the oldest but one. */
static void forget_surplus(uint32_t rank)
{
    uint32_t count = 0, second = 0;

    for (uint32_t n = 1; n < NUMBERS; n++)
        if (model[rank][n] && ++count == 2)
            second = n;
    if (count > REGISTRY_IMAGES_MAX)
        model[rank][second] = false;
}

static void expect_model(void)
{
    for (uint32_t r = 0; r < RANKS; r++)
        for (uint32_t n = 1; n < NUMBERS; n++)
            CU_ASSERT(is_there(r, n) == model[r][n]);
}

static void random_step(void)
{
    uint32_t rank = draw(RANKS);
    uint32_t last = newest(rank);
    struct cw_err err = {0};

    if (draw(3) > 0 && last + 1 < NUMBERS) {
        CU_ASSERT(store(rank, last + 1, draw(4) ? last : 0, &err) == CW_OK);
        model[rank][last + 1] = true;
        forget_surplus(rank);
    } else if (last > 1) {
        CU_ASSERT(drop(rank, last - 1, &err) == CW_OK);
        forget_until(rank, last - 1);
    }
}

/* Also over a new start. */
TEST(random_images)
{
    random_state = 11;
    memset(model, 0, sizeof(model));
    make_dir();
    CU_ASSERT_FATAL(open_vault(0));
    for (int step = 0; step < 60; step++) {
        random_step();
        if (step % 10 == 9) {
            vault_close(vault, false, NULL);
            CU_ASSERT_FATAL(open_vault(0));
            expect_model();
        }
    }
    remove_dir();
}

/* --- the end at any time -------------------------------------------------------------------------
 */

static long operations;
static long last_operation; /* from the next one on all fail, as for a process that is no more */

static int dies(const char *what)
{
    (void)what;
    return operations++ >= last_operation ? EIO : 0;
}

/* An image may be there that nobody was told of, but none may be missing, and none be wrong. */
static void expect_model_at_least(void)
{
    for (uint32_t r = 0; r < RANKS; r++)
        for (uint32_t n = 1; n < NUMBERS; n++) {
            bool there = is_there(r, n);

            CU_ASSERT(there || !model[r][n]);
        }
}

/* Returns false once nothing failed. */
static bool script(void)
{
    static const struct {
        uint32_t store, base, drop;
    } steps[] = {{1, 0, 0}, {2, 1, 0}, {0, 0, 1}, {3, 2, 0}, {4, 3, 0}, {5, 0, 0}, {0, 0, 4}};
    struct cw_err err = {0};

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !err.code; i++) {
        if (steps[i].store && store(0, steps[i].store, steps[i].base, &err) == CW_OK)
            model[0][steps[i].store] = true;
        if (steps[i].drop) /* begun: it may be gone */
            forget_until(0, steps[i].drop);
        if (steps[i].drop)
            drop(0, steps[i].drop, &err);
    }
    return operations > last_operation;
}

TEST(ended_at_any_operation)
{
    bool died = true;

    for (last_operation = 0; died; last_operation++) {
        struct cw_err err = {0};

        random_state = (uint64_t)last_operation;
        memset(model, 0, sizeof(model));
        make_dir();
        CU_ASSERT_FATAL(open_vault(0));
        operations = 0;
        imgdir_fault = dies;
        died = script();
        vault_close(vault, false, NULL);
        imgdir_fault = NULL;
        CU_ASSERT_FATAL(open_vault(0));
        expect_model_at_least();
        /* it goes on */
        CU_ASSERT(store(0, 9, newest(0), &err) == CW_OK);
        CU_ASSERT(is_there(0, 9));
        remove_dir();
        CU_ASSERT_FATAL(last_operation < 1000);
    }
    CU_ASSERT(last_operation > 30);
}

/* --- bounds and damage ---------------------------------------------------------------------------
 */

/* What is refused leaves the room free. */
TEST(quota_is_kept)
{
    struct cw_err err = {0};
    uint64_t used;
    uint64_t max;

    random_state = 5;
    make_dir();
    CU_ASSERT_FATAL(open_vault(BLOCKS * CW_IMAGE_BLOCK));
    CU_ASSERT(store(0, 1, 0, &err) == CW_OK);
    CU_ASSERT(store(1, 1, 0, &err) == CW_ELIMIT);
    CU_ASSERT(strstr(err.text, "--max") != NULL);
    err = (struct cw_err){0};
    registry_use(vault_registry(vault), &used, &max);
    CU_ASSERT(used <= max && max == BLOCKS * CW_IMAGE_BLOCK);
    CU_ASSERT(is_there(0, 1));
    CU_ASSERT(drop(0, 1, &err) == CW_OK);
    registry_use(vault_registry(vault), &used, &max);
    CU_ASSERT(used == 0);
    CU_ASSERT(store(1, 1, 0, &err) == CW_OK && is_there(1, 1));
    remove_dir();
}

/* An image that is being read stays until it is read, though it is dropped and another one comes.
 */
TEST(dropped_while_it_is_read)
{
    struct image_plan plan = plan_of(0, 1, 0);
    struct image_stream stream = {0};
    struct cw_err err = {0};
    uint8_t *buffer = malloc(FETCH_BUFFER_MIN);
    struct fetch *fetch;
    uint64_t bytes;
    size_t at = 0;
    size_t got;

    make_dir();
    image_make(&plan, &stream);
    CU_ASSERT_FATAL(open_vault(0) && store(0, 1, 0, &err) == CW_OK);
    fetch = fetch_new(vault, job, &(struct cw_image_ref){0, 1}, &bytes, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fetch);
    CU_ASSERT(drop(0, 1, &err) == CW_OK && !is_there(0, 1));
    CU_ASSERT(store(0, 2, 0, &err) == CW_OK);
    while (fetch_read(fetch, buffer, FETCH_BUFFER_MIN, &got, &err) == CW_OK && got > 0) {
        CU_ASSERT(memcmp(buffer, stream.bytes + at, got) == 0);
        at += got;
    }
    CU_ASSERT(at == stream.size);
    fetch_free(fetch);
    CU_ASSERT(is_there(0, 2));
    free(buffer);
    free(stream.bytes);
    remove_dir();
}

static void path_of(char path[128], uint32_t rank, uint32_t number)
{
    char text[IMGDIR_JOB_TEXT];

    imgdir_job_text(text, job);
    snprintf(path, 128, "%s/%s/%u.%u.index", dir, text, rank, number);
}

static void set_byte(const char *path, long at, uint8_t value)
{
    FILE *file = fopen(path, "r+");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT(fseek(file, at, SEEK_SET) == 0 && fputc(value, file) == value);
    CU_ASSERT(fclose(file) == 0);
}

static void set_version(uint32_t number, uint8_t version)
{
    char path[128];

    path_of(path, 0, number);
    set_byte(path, offsetof(struct index_header, version), version);
}

/* What image 2 of rank 0 needs is not known: the other images and ranks go on, with higher numbers,
 * and image 2 is whole once it can be read again. */
static void go_on_beside_image_2(void)
{
    struct cw_err err = {0};

    CU_ASSERT(is_there(0, 1) && !is_there(0, 2) && is_there(1, 1));
    CU_ASSERT(store(0, 2, 1, &err) == CW_EPROTO);
    err = (struct cw_err){0};
    for (uint32_t n = 3; n < 9; n++)
        CU_ASSERT(store(0, n, n == 3 ? 1 : n - 1, &err) == CW_OK && is_there(0, n));
    CU_ASSERT(drop(0, 7, &err) == CW_OK && !is_there(0, 1));
    CU_ASSERT(store(1, 2, 1, &err) == CW_OK && drop(1, 2, &err) == CW_OK);
}

/* Also when nothing else of the rank is left. */
TEST(versions_are_left_alone)
{
    static const uint8_t versions[] = {0, INDEX_VERSION + 1};
    struct cw_err err = {0};

    for (size_t i = 0; i < sizeof(versions); i++) {
        make_dir();
        CU_ASSERT_FATAL(open_vault(0));
        CU_ASSERT(store(0, 1, 0, &err) == CW_OK && store(0, 2, 1, &err) == CW_OK &&
                  store(1, 1, 0, &err) == CW_OK);
        vault_close(vault, false, NULL);
        set_version(2, versions[i]);
        CU_ASSERT_FATAL(open_vault(0));
        go_on_beside_image_2();
        CU_ASSERT(drop(0, 9, &err) == CW_OK);
        vault_close(vault, false, NULL);
        set_version(2, INDEX_VERSION);
        CU_ASSERT_FATAL(open_vault(0));
        CU_ASSERT(is_there(0, 2) && !is_there(0, 8));
        CU_ASSERT(verify_image(vault_dir(vault), job, 0, 2, &err) == CW_OK);
        remove_dir();
    }
}

/* The index is of this version, the image in it of another one. */
TEST(image_of_another_version)
{
    const size_t at = sizeof(struct index_header) + sizeof(struct cw_image_record) +
                      offsetof(struct cw_image_header, version);
    struct index_maker maker = {0};
    struct cw_err err = {0};
    bool doubtful;
    uint8_t *bytes;
    size_t size;

    make_dir();
    CU_ASSERT_FATAL(open_vault(0) && store(0, 1, 0, &err) == CW_OK);
    CU_ASSERT_FATAL(imgdir_get_index(vault_dir(vault), job, 0, 1, &bytes, &size, &err) == CW_OK);
    CU_ASSERT(!index_is_foreign(bytes, size));
    for (uint8_t version = CW_IMAGE_VERSION - 1; version <= CW_IMAGE_VERSION + 1; version += 2) {
        bytes[at] = version;
        CU_ASSERT(!index_is_foreign(bytes, size)); /* it is damaged */
        maker = (struct index_maker){.bytes = bytes, .used = size};
        index_finish(&maker, 0);
        CU_ASSERT(index_is_foreign(bytes, size));
        imgdir_put_index(vault_dir(vault), job, 0, 1, bytes, size, &doubtful, &err);
        vault_close(vault, false, NULL);
        CU_ASSERT_FATAL(open_vault(0));
        CU_ASSERT(!is_there(0, 1) && imgdir_blocks_size(vault_dir(vault), job, 0) > 0);
        CU_ASSERT(registry_has_job(vault_registry(vault), job));
    }
    free(bytes);
    remove_dir();
}

/* An index that cannot be read stops neither the server nor others; it is there again later. */
TEST(an_index_that_cannot_be_read)
{
    struct cw_err err = {0};
    char path[128];
    char away[160];

    make_dir();
    CU_ASSERT_FATAL(open_vault(0));
    CU_ASSERT(store(0, 1, 0, &err) == CW_OK && store(0, 2, 1, &err) == CW_OK &&
              store(1, 1, 0, &err) == CW_OK);
    vault_close(vault, false, NULL);
    path_of(path, 0, 2);
    snprintf(away, sizeof(away), "%s.away", path);
    CU_ASSERT_FATAL(rename(path, away) == 0 && mkdir(path, 0700) == 0);
    CU_ASSERT_FATAL(open_vault(0));
    go_on_beside_image_2();
    vault_close(vault, false, NULL);
    CU_ASSERT_FATAL(rmdir(path) == 0 && rename(away, path) == 0);
    CU_ASSERT_FATAL(open_vault(0));
    CU_ASSERT(is_there(0, 2) && is_there(0, 8));
    remove_dir();
}

/* Names that no image can have do not count. */
TEST(names_that_cannot_be)
{
    static const char *const names[] = {"4294967295.blocks", "4294967295.1.index", "0.0.index"};
    struct cw_err err = {0};
    char paths[3][128];
    char text[IMGDIR_JOB_TEXT];

    make_dir();
    CU_ASSERT_FATAL(open_vault(0) && store(0, 1, 0, &err) == CW_OK);
    vault_close(vault, false, NULL);
    imgdir_job_text(text, job);
    for (int i = 0; i < 3; i++) {
        FILE *file;

        snprintf(paths[i], sizeof(paths[i]), "%s/%s/%s", dir, text, names[i]);
        file = fopen(paths[i], "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        fclose(file);
    }
    CU_ASSERT_FATAL(open_vault(0));
    CU_ASSERT(is_there(0, 1));
    for (int i = 0; i < 3; i++)
        CU_ASSERT(unlink(paths[i]) == 0);
    remove_dir();
}

/* --- commits that are in doubt -------------------------------------------------------------------
 */

static int syncs, first_bad, last_bad;

static int sync_fails(const char *what)
{
    if (strcmp(what, "sync") != 0)
        return 0;
    syncs++;
    return syncs >= first_bad && syncs <= last_bad ? EIO : 0;
}

/* Of a put: the blocks, the index, the directory; then that of the removal. */
static void fail_to_store(int first, int last)
{
    struct cw_err err = {0};

    syncs = 0;
    first_bad = first;
    last_bad = last;
    imgdir_fault = sync_fails;
    CU_ASSERT(store(0, 1, 0, &err) == CW_ESYS);
    imgdir_fault = NULL;
    CU_ASSERT(syncs == (first < 3 ? first : 4));
}

static uint64_t bytes_in_use(void)
{
    uint64_t used;
    uint64_t max;

    registry_use(vault_registry(vault), &used, &max);
    return used;
}

static void count_told(void *ctx, const struct cw_stored *image)
{
    (void)image;
    ++*(int *)ctx;
}

TEST(doubtful_commits_leave_nothing)
{
    struct cw_err err = {0};
    int told = 0;

    random_state = 9;
    make_dir();
    CU_ASSERT_FATAL(open_vault(0));
    for (int first = 1; first <= 3; first++) {
        fail_to_store(first, first);
        CU_ASSERT(bytes_in_use() == 0 && !registry_has_job(vault_registry(vault), job));
    }
    fail_to_store(3, 4); /* it could not be removed either */
    registry_each(vault_registry(vault), job, count_told, &told);
    CU_ASSERT(told == 0 && bytes_in_use() > 0);
    CU_ASSERT(store(0, 2, 0, &err) == CW_OK && is_there(0, 2));
    CU_ASSERT(drop(0, 2, &err) == CW_OK);
    CU_ASSERT(bytes_in_use() == 0 && !registry_has_job(vault_registry(vault), job));
    remove_dir();
}

TEST(damage_to_an_index_is_found)
{
    struct index_summary summary;
    struct cw_err err = {0};
    uint8_t *bytes;
    size_t size;

    random_state = 7;
    make_dir();
    CU_ASSERT_FATAL(open_vault(0) && store(0, 1, 0, &err) == CW_OK);
    CU_ASSERT_FATAL(imgdir_get_index(vault_dir(vault), job, 0, 1, &bytes, &size, &err) == CW_OK);
    CU_ASSERT_PTR_NULL(index_check(bytes, size, &summary));
    CU_ASSERT(summary.image.number == 1 && summary.blocks == BLOCKS);
    for (int i = 0; i < 2000; i++) {
        uint32_t at = draw((uint32_t)size);
        uint8_t bit = (uint8_t)(1u << draw(8));

        bytes[at] ^= bit;
        CU_ASSERT_PTR_NOT_NULL(index_check(bytes, size, &summary));
        bytes[at] ^= bit;
        CU_ASSERT_PTR_NOT_NULL(index_check(bytes, at, &summary));
    }
    free(bytes);
    CU_ASSERT(verify_image(vault_dir(vault), job, 0, 1, &err) == CW_OK);
    remove_dir();
}
