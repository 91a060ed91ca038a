#include "relay/inspect/tail.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define HOLE_STEP (1u << 20) /* so often it is asked whether a hole begins */

struct search {
    const struct inspect_journal *in;
    uint64_t journal; /* the one that counts ... */
    uint64_t parts;   /* ... and how many of its parts do */
    uint8_t *buffer;  /* of a part */
    uint32_t tried;
};

/* A header that is of such a commit, if its part is whole. */
static bool may_be_later(const struct search *s, const struct journal_part *part)
{
    return part->magic == JOURNAL_MAGIC && part->ends && part->size <= JOURNAL_PART_MAX &&
           (part->journal > s->journal ||
            (part->journal == s->journal && part->number >= s->parts));
}

static bool is_later(struct search *s, uint64_t at)
{
    struct journal_part part;
    ssize_t n = pread(s->in->fd, &part, sizeof(part), (off_t)at);

    if (n != (ssize_t)sizeof(part) || !may_be_later(s, &part) || s->tried++ >= INSPECT_PARTS_MAX)
        return false;
    n = pread(s->in->fd, s->buffer, part.size, (off_t)at);
    return n > 0 && journal_part_at(s->buffer, (uint64_t)n, &part) && may_be_later(s, &part);
}

/* Where the file has bytes next, from a whole page on: a file may be all hole. */
static uint64_t skip_hole(const struct inspect_journal *in, uint64_t at)
{
    off_t data = lseek(in->fd, (off_t)at, SEEK_DATA);

    if (data < 0)
        return errno == ENXIO ? in->size : at;
    return (uint64_t)data / JOURNAL_ALIGN * JOURNAL_ALIGN;
}

/* Parts begin at whole pages. */
static bool find(struct search *s, uint64_t from, uint64_t *at)
{
    for (*at = from; *at < s->in->size; *at += JOURNAL_ALIGN) {
        if (*at == from || *at % HOLE_STEP == 0)
            *at = skip_hole(s->in, *at);
        if (*at < s->in->size && is_later(s, *at))
            return true;
    }
    return false;
}

int inspect_tail(const struct inspect_files *files, struct inspect_tail *tail, struct cw_err *err)
{
    struct search s = {.buffer = malloc(JOURNAL_PART_MAX)};

    *tail = (struct inspect_tail){0};
    if (!s.buffer)
        return cw_err_set(err, CW_ENOMEM, "no memory");
    if (files->counts >= 0) {
        s.journal = files->journals[files->counts].summary.journal;
        s.parts = files->journals[files->counts].summary.committed;
    }
    for (int i = 0; i < INSPECT_JOURNALS && !tail->lost; i++) {
        uint64_t broke = i == files->counts ? files->journals[i].summary.end : 0;

        s.in = &files->journals[i];
        if (s.in->fd < 0 || !find(&s, broke, &tail->at))
            continue;
        tail->lost = true;
        tail->file = i;
        tail->broke = broke;
    }
    free(s.buffer);
    return CW_OK;
}
