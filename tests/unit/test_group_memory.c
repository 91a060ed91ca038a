/* The channel memory of a group of ranks: the relay that is given it before there are ranks finds
 * what these have there, of whatever size that becomes; each group has its own. */
#include "dispatcher/node/group_memory.h"
#include "relay/channel_file.h"
#include "tests/unit/suites.h"

#include <CUnit/CUnit.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void finish(void);
SUITE_AFTER_EACH("group memory", finish);

#define DISK (64ull << 20)

static struct group_memory memory;
static struct channel_file relays; /* what the relay of group 3 was given */

static void start(void)
{
    relays = (struct channel_file){-1, -1};
    group_memory_init(&memory);
}

static void finish(void)
{
    group_memory_close(&memory);
    close(relays.memory);
    close(relays.file);
}

static struct cw_setup setup_in(uint32_t group)
{
    return (struct cw_setup){.flags = CW_SETUP_CHANNEL,
                             .channel_group = group,
                             .channel_ranks = 2,
                             .channel_bytes = cw_channel_bytes(2, 1 << 20),
                             .channel_disk = DISK};
}

static void give_relay(void)
{
    struct cw_err err = {0};

    CU_ASSERT_EQUAL_FATAL(group_memory_make(&memory, 3, &err), CW_OK);
    relays.memory = dup(memory.group[3].memory);
    relays.file = dup(memory.group[3].file); /* or -1 */
}

TEST(a_relay_has_what_ranks_have)
{
    const struct cw_setup setup = setup_in(3);
    const struct channel_fds *fds;
    struct relay_channel source;
    struct cw_err err = {0};
    struct stat file = {.st_size = 0};
    char text[4] = "";

    start();
    give_relay();
    source = channel_file_source(&relays);
    CU_ASSERT_EQUAL(source.size(source.ctx), 0);
    CU_ASSERT_FALSE(source.read(source.ctx, 0, text, 1));
    fds = group_memory_of(&memory, &setup, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fds);
    CU_ASSERT_PTR_EQUAL(group_memory_of(&memory, &setup, &err), fds);
    if (fds->file >= 0) {
        CU_ASSERT_EQUAL(fstat(fds->file, &file), 0);
        CU_ASSERT_TRUE((uint64_t)file.st_size <= DISK);
    }
    CU_ASSERT_EQUAL(source.size(source.ctx), setup.channel_bytes + (uint64_t)file.st_size);
    CU_ASSERT_EQUAL(pwrite(fds->memory, "abc", 3, 100), 3);
    CU_ASSERT_TRUE(source.read(source.ctx, 100, text, 3) && strcmp(text, "abc") == 0);
    if (file.st_size > 0) {
        CU_ASSERT_EQUAL(pwrite(fds->file, "def", 3, 5), 3);
        CU_ASSERT_TRUE(source.read(source.ctx, setup.channel_bytes + 5, text, 3));
        CU_ASSERT_STRING_EQUAL(text, "def");
        CU_ASSERT_EQUAL(ftruncate(fds->file, 0), 0); /* a rank can */
        CU_ASSERT_FALSE(source.read(source.ctx, setup.channel_bytes + 5, text, 3));
    }
    CU_ASSERT_NOT_EQUAL(ftruncate(fds->memory, 0), 0);
}

TEST(groups_have_their_own)
{
    const struct cw_setup three = setup_in(3), four = setup_in(4), none = {.channel_group = 3};
    const struct channel_fds *of_three, *of_four;
    struct cw_err err = {0};
    int before;

    start();
    of_three = group_memory_of(&memory, &three, &err);
    of_four = group_memory_of(&memory, &four, &err);
    CU_ASSERT_TRUE_FATAL(of_three && of_four && of_three->memory != of_four->memory);
    CU_ASSERT_EQUAL(group_memory_of(&memory, &none, &err)->memory, -1);
    CU_ASSERT_EQUAL(pwrite(of_three->memory, "abc", 3, 0), 3);
    before = dup(of_three->memory);
    give_relay(); /* it comes in another one's place: what that had is not its own */
    CU_ASSERT_EQUAL(channel_file_source(&relays).size(&relays), 0);
    of_three = group_memory_of(&memory, &three, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(of_three);
    CU_ASSERT_EQUAL(channel_file_source(&relays).read(&relays, 0, &(char[3]){0}, 3), true);
    close(before);
    CU_ASSERT_PTR_NULL(channel_file_source(&(struct channel_file){-1, -1}).read);
}
