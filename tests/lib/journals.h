/* The journals on a simulated disk, as one who takes over finds them. */
#ifndef TESTS_JOURNALS_H
#define TESTS_JOURNALS_H

#include "relay/log/commit.h"
#include "tests/lib/fake_disk.h"

/* The journal that counts, if any has a commit, and in *next where another one goes. */
const struct fake_file *journals_find(const struct fake_disk *disk, struct journal_summary *summary,
                                      struct relay_journal *next);

#endif
