#include "tests/unit/journal_site.h"
#include "common/err.h"
#include "relay/log/restore.h"
#include "tests/lib/journals.h"

#include <CUnit/CUnit.h>
#include <string.h>

void journal_site_start(struct journal_site *j, uint64_t log_memory, uint64_t seed)
{
    *j = (struct journal_site){.disk.seed = seed, .journal.number = 1};
    journal_site_open(j, left_new(), log_memory);
}

void journal_site_start_copies(struct journal_site *j, uint64_t log_memory, uint64_t seed)
{
    *j = (struct journal_site){.disk.seed = seed, .journal.copies = true};
    journal_site_open(j, left_new(), log_memory);
}

void journal_site_open(struct journal_site *j, struct ledger_memory *left, uint64_t log_memory)
{
    left_site_open(&j->site, left, log_memory, SITE_MEMORY);
    CU_ASSERT_EQUAL_FATAL(store_keep_journal(&j->site.store, &j->journal), CW_OK);
    j->site.ledger.commit = &j->site.store.commit;
}

void journal_site_step(struct journal_site *j)
{
    left_site_step(&j->site);
    j->step++;
    commit_want(&j->site.store.commit);
}

bool journal_site_ask(struct journal_site *j)
{
    struct log_store *store = &j->site.store;
    struct relay_log_io io;

    if (commit_next(&store->commit, &io)) {
        if (store->commit.ends)
            j->given = j->step;
    } else if (!store_next_io(store, &io)) {
        return false;
    }
    fake_disk_take(&j->disk, &io);
    return true;
}

bool journal_site_done(struct journal_site *j)
{
    struct log_store *store = &j->site.store;
    struct relay_log_done done;

    if (!fake_disk_done(&j->disk, &done))
        return false;
    if (done.segment) {
        store_io_done(store, &done);
    } else if (commit_done(&store->commit, done.error)) {
        store_committed(store);
        if (!done.error)
            j->acked = j->given;
    }
    return true;
}

void journal_site_settle(struct journal_site *j)
{
    do
        while (journal_site_ask(j))
            ;
    while (journal_site_done(j));
}

struct ledger_memory *journal_site_restore(struct journal_site *j)
{
    struct journal_summary summary;
    const struct fake_file *file = journals_find(&j->disk, &summary, &j->journal);
    struct ledger_memory *left = summary.commits > 0 ? left_new() : NULL;
    struct relay_region region = {.size = LEFT_REGION};
    struct cw_err err = {0};

    if (!left)
        return NULL;
    region.start = left_region(left);
    /* twice: who did it may be killed before anybody has used it */
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(restore(left, &region, file->bytes, &summary, &err), CW_OK);
    CU_ASSERT_STRING_EQUAL(err.text, "");
    return left;
}

/* --- owners -------------------------------------------------------------------------------------
 */
#define WHICH 2u /* of the chains of an entry */

static void save_owner(const void *of, void *body)
{
    const struct journal_owner *owner = of;
    struct journal_saved saved = {
        .value = owner->value, .content = owner->content, .end = chain_end(&owner->chain)};

    memcpy(body, &saved, sizeof(saved));
}

static uint8_t byte_at(uint64_t content, uint64_t position)
{
    return (uint8_t)(content + position * 37 + (position >> 8));
}

void journal_owner_enter(struct journal_site *j, struct journal_owner *owner, uint64_t content)
{
    *owner = (struct journal_owner){.content = content};
    chain_init(&owner->chain, &j->site.store, &j->site.pool);
    CU_ASSERT_TRUE_FATAL(
        ledger_enter(&j->site.ledger, &owner->entry, LEDGER_RANK, owner, save_owner));
    chain_keep(&owner->chain, &owner->entry, WHICH);
}

void journal_owner_set(struct journal_owner *owner, uint64_t value)
{
    owner->value = value;
    ledger_change(&owner->entry);
}

void journal_owner_append(struct journal_owner *owner, uint32_t size)
{
    uint64_t position;
    uint64_t held = 0;
    uint8_t *at = chain_append(&owner->chain, size, &position, &held);

    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    for (uint32_t i = 0; i < size; i++)
        at[i] = byte_at(owner->content, position + i);
}

void journal_owner_leave(struct journal_owner *owner)
{
    if (!owner->entry.ledger)
        return;
    chain_free(&owner->chain);
    ledger_leave(&owner->entry);
}

bool journal_owner_left(const struct site *s, uint32_t cell, struct journal_saved *saved)
{
    const void *body = ledger_find(&s->ledger, cell, LEDGER_RANK);

    if (body)
        memcpy(saved, body, sizeof(*saved));
    return body != NULL;
}

int journal_owner_return(struct journal_site *j, struct journal_owner *owner, uint32_t cell)
{
    struct journal_saved saved;

    CU_ASSERT_TRUE_FATAL(journal_owner_left(&j->site, cell, &saved));
    *owner = (struct journal_owner){.value = saved.value, .content = saved.content};
    chain_init(&owner->chain, &j->site.store, &j->site.pool);
    ledger_return(&j->site.ledger, &owner->entry, cell, owner, save_owner);
    return chain_return(&owner->chain, &owner->entry, WHICH, saved.end);
}

static bool are_right(uint64_t content, uint64_t position, const struct chain_bytes *bytes)
{
    for (uint32_t i = 0; i < bytes->size; i++)
        if (bytes->at[i] != byte_at(content, position + i))
            return false;
    return true;
}

/* Something is read from disk. */
static bool serve_read(struct journal_site *j)
{
    while (journal_site_ask(j))
        ;
    if (!journal_site_done(j))
        return false;
    store_end_round(&j->site.store);
    return true;
}

bool journal_owner_is_right(struct journal_site *j, const struct journal_owner *owner)
{
    uint64_t position = (uint64_t)owner->chain.first << CHAIN_SHIFT;
    enum chain_found found = CHAIN_HERE;
    struct chain_bytes bytes;
    bool right = true;

    while (right && found != CHAIN_END && found != CHAIN_LOST) {
        found = chain_read(&owner->chain, &position, &bytes);
        if (found == CHAIN_AWAY)
            right = serve_read(j);
        if (found != CHAIN_HERE)
            continue;
        right = are_right(owner->content, position, &bytes);
        position += bytes.size;
    }
    return right && found == CHAIN_END;
}

bool journal_owner_on_disk(const struct journal_site *j, const struct journal_owner *owner,
                           struct journal_saved *saved)
{
    struct journal_site next = {.disk = j->disk};
    struct ledger_memory *left = journal_site_restore(&next);
    struct journal_owner of;
    bool there;

    if (!left)
        return false;
    next.disk.count = 0;
    left_site_open(&next.site, left, SITE_MEMORY, 0);
    there = journal_owner_left(&next.site, owner->entry.cell, saved);
    CU_ASSERT_TRUE(there && saved->content == owner->content);
    if (there) {
        CU_ASSERT_EQUAL(journal_owner_return(&next, &of, owner->entry.cell), CW_OK);
        left_site_returned(&next.site);
        CU_ASSERT_TRUE(journal_owner_is_right(&next, &of));
        journal_owner_leave(&of);
    }
    left_site_step(&next.site);
    left_site_close(&next.site);
    return there;
}
