#include "tests/lib/journals.h"

const struct fake_file *journals_find(const struct fake_disk *disk, struct journal_summary *summary,
                                      struct relay_journal *next)
{
    const struct fake_file *files = &disk->files[STORE_JOURNAL_0];
    struct journal_summary found[2];
    unsigned newest;

    for (unsigned i = 0; i < 2; i++)
        journal_look(files[i].bytes, files[i].high, &found[i]);
    newest = journal_newest(found);
    *summary = found[newest];
    *next = (struct relay_journal){.number = journal_next_number(found), .file = !newest};
    return &files[newest];
}
